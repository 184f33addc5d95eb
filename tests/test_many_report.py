"""The page of many series: one at a time, chosen by a click, and static without Plotly."""

import importlib.util

import numpy as np
import pandas as pd
import pytest
from browser import dump_probed_page

from compositegp.cli.many_report import SeriesResults, render_many_report

INDEX = pd.date_range("2024-01-01", periods=60, freq="h", tz="Europe/Stockholm")


def results(name, errors=True):
    levels = (0.025, 0.25, 0.5, 0.75, 0.975)
    forecast = pd.DataFrame({"mean": 1.0, "std": 1.0} | {f"q{q}": 1.0 + q for q in levels}, index=INDEX[-12:])
    table = pd.DataFrame(
        {"observed": np.arange(12.0), "mean": 5.0, "step": np.arange(12), "PIT": 0.5}, INDEX[24:36]
    )
    return SeriesResults(
        name,
        pd.Series(np.sin(np.arange(48.0)), INDEX[:48], name="nox"),
        forecast,
        [f"what {name} learned"],
        [],
        pd.DataFrame({"RMSE": [1.0]}, index=["compositegp, mean"]) if errors else None,
        table if errors else None,
    )


def page_of(*names):
    overview = pd.DataFrame({"RMSE": [1.25] * len(names)}, index=pd.Index(names, name="station"))
    return render_many_report("nox of all", overview, [results(name) for name in names], {"c": "is empty"})


def test_every_series_has_a_row_an_option_and_a_section():
    page = page_of("north", "<south>")
    assert "<south>" not in page
    for number, name in enumerate(("north", "&lt;south&gt;")):
        assert f'<a href="#series-{number}">{name}</a></td><td>1.25</td>' in page
        assert f'<option value="{number}">{name}</option>' in page
        assert f'<section class="series" id="series-{number}">\n<h2>{name}</h2>' in page
        assert f"<li>what {name} learned</li>" in page
    assert "<li>c: is empty</li>" in page
    assert "no gaps, no duplicates, no missing values" in page


def test_pictures_are_interactive_on_a_screen_and_static_in_print():
    pytest.importorskip("plotly", reason="no plotly: pip install 'compositegp[report]'")
    page = page_of("north", "south")
    assert page.count('<img class="static"') == 4  # a forecast and a backtest each
    assert page.count('<div class="interactive"') == 4
    assert "@media print { .interactive { display: none; } }" in page
    assert "@media screen { .static { display: none; } }" in page


def test_without_plotly_the_pictures_are_static(monkeypatch):
    monkeypatch.setattr("compositegp.cli.many_report.find_spec", lambda name: None)
    page = page_of("north", "south")
    assert page.count("data:image/png;base64,") == 4  # a forecast and a backtest each
    assert "const figures = [];" in page
    assert 'class="interactive"' not in page
    assert "@media screen" not in page


def test_a_series_is_chosen_by_a_click_in_a_browser(tmp_path):
    probe = (
        "window.onload = () => {"
        "const shown = () => sections.filter(one => !one.hidden).map(one => one.querySelector('h2').textContent);"
        "const first = shown(); document.querySelectorAll('#overview a')[1].click();"
        "window.addEventListener('hashchange', () => setTimeout(() => {"
        "const svg = sections[1].querySelectorAll('.main-svg');"
        "const wide = svg.length ? Math.round(svg[0].getBoundingClientRect().width) : 0;"
        "document.body.dataset.seen = [first.join('+'), shown().join('+'), choice.value, wide].join(' '); }, 0)) };"
    )
    found = dump_probed_page(page_of("north", "south"), probe, tmp_path, "--virtual-time-budget=5000")
    first, then, value, wide = found.split('data-seen="')[1].split('"')[0].split()
    assert (first, then, value) == ("north", "south", "1")
    if importlib.util.find_spec("plotly") is not None:
        assert int(wide) > 300
