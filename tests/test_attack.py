"""A few cases of each part of the attack, in this process; `make attack` runs thousands of them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from attack.__main__ import BEGIN, END, parts, report, write_report
from attack.cases import Budget, command, ended
from attack.figures import BAD, Figures, as_table
from attack.model_rows import compared

from compositegp.forecasting import CompositeGPForecaster


@pytest.mark.parametrize("name", parts())
@pytest.mark.filterwarnings("ignore")
def test_a_few_cases_end_well(name):
    part, rows = parts()[name], {}
    few = (part.quick + 1) // 2
    part.run(Budget(seed=1, most=few), rows)
    failures = [failure for figures in rows.values() for failure in figures.failures]
    assert not failures, "\n".join(failures)
    assert sum(figures.counts["tried"] for figures in rows.values()) >= few


def test_how_a_call_ended_is_judged():
    def fail(error):
        raise error

    assert ended(lambda: 3).value == 3
    assert ended(lambda: fail(ValueError("m.cgp is damaged")), names="m.cgp").outcome == "refused"
    assert ended(lambda: fail(ValueError("something")), names="m.cgp").outcome == "unclear"
    assert ended(lambda: fail(ValueError("two\nlines"))).outcome == "unclear"
    assert ended(lambda: fail(TypeError("oh"))).outcome == "tracebacks"
    assert ended(lambda: [None for _ in iter(int, 1)], seconds=0.2).outcome == "hangs"
    assert command("info").outcome == "right"
    assert command("regress", "no such file.csv", "--target", "y", "--save", "x").outcome == "refused"


def test_rows_that_are_lost_changed_or_counted_twice_are_seen(rng, tmp_path):
    y = pd.Series(10 + rng.normal(size=192), index=pd.date_range("2024-02-01", periods=192, freq="h"))
    start, path, new = tmp_path / "start.cgp", tmp_path / "model.cgp", y[72:-1]
    CompositeGPForecaster(None, n_neighbors=200, search=False).fit(y[:72]).save(start)

    def outcome(rows, change=lambda series: series):
        model = CompositeGPForecaster.load(start).update(rows)
        model._series = change(model._series)
        model.save(path)
        return compared(path, start, new).outcome

    def twice(series):
        once = series.information
        return replace(series, information=replace(once, matrix=2 * once.matrix, moment=2 * once.moment))

    assert outcome(new) == "right"
    assert outcome(new[:-1]) == outcome(new.drop(new.index[-9])) == "lost"
    assert new.index[1] not in CompositeGPForecaster.load(path).observations_.index
    assert outcome(new.drop(new.index[1])) == "wrong"  # older than the rows that the model keeps
    assert outcome(new.where(np.arange(len(new)) != 50, 10.0)) == "wrong"
    assert outcome(new, twice) == "wrong"
    assert outcome(y[72:]) in ("lost", "twice")  # a row that nobody sent


def test_a_case_can_be_seen_again():
    one = [rng.random() for _, rng in Budget(seed=3, most=5).cases("name")]
    assert one[4] == next(rng.random() for _, rng in Budget(seed=3, only=4).cases("name"))
    assert one[4] != next(rng.random() for _, rng in Budget(seed=4, only=4).cases("name"))


@pytest.mark.parametrize("outcome", BAD)
def test_figures_tell_what_should_be_zero(outcome):
    figures = Figures()
    figures.add("right")
    assert figures.n_bad == 0
    figures.add(outcome, "--part x --case 3")
    again = Figures()
    again.merge(figures.to_json())
    assert (again.n_bad, again.counts["tried"]) == (1, 2)
    assert again.failures == [f"{outcome}: --part x --case 3"]
    assert "| x | 2 | 1 | 0 |" in as_table({"x": again})


def test_figures_are_written_between_the_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n{BEGIN}\nold\n{END}\n\nEnd.\n")
    write_report(page, report({"x": Figures()}, 0, 1.0))
    text = page.read_text()
    assert text.startswith("# Page\n")
    assert text.endswith("End.\n")
    assert "old" not in text
    assert "| x | 0 |" in text
    write_report(page, "new")
    assert page.read_text() == f"# Page\n\n{BEGIN}\n\nnew\n\n{END}\n\nEnd.\n"
