"""Interactive pictures: figures as Plotly takes them (data and layout as JSON), made without Plotly."""

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from compositegp.plotting import style
from compositegp.plotting.backtests import COLORS, LEVELS, BacktestCurves

if TYPE_CHECKING:
    import pandas as pd

_HORIZONS_SHOWN = 28  # observed values before the forecast, in horizons: more than the static picture has
_MOST_SHOWN = 20_000


def forecast_figure(history: "pd.Series", forecast: "pd.DataFrame", target: str) -> dict[str, Any]:
    """The end of a series, and the median and the 50 % and 95 % bands of its forecast.

    Parameters
    ----------
    history : pandas Series with a DatetimeIndex
    forecast : pandas DataFrame
        From `CompositeGPForecaster.predict`, with its default quantiles.
    target : str
        Name of the series.

    Returns
    -------
    dict
        ``data`` and ``layout`` of Plotly, of values that JSON has.

    Examples
    --------
    >>> import pandas as pd
    >>> index = pd.date_range("2024-01-01", periods=4, freq="h")
    >>> quantiles = {f"q{level}": [1.0 + level] for level in (0.025, 0.25, 0.5, 0.75, 0.975)}
    >>> figure = forecast_figure(pd.Series([1.0, 2, 3], index[:3]), pd.DataFrame(quantiles, index[3:]), "load")
    >>> [trace["name"] for trace in figure["data"]]
    ['observed', '95 %', '50 %', 'median']
    """
    shown = history.dropna().sort_index().iloc[-min(_HORIZONS_SHOWN * len(forecast), _MOST_SHOWN) :]
    traces = [_line(shown.index, shown, "observed", style.BLACK)]
    for lower, upper, alpha, name in (("q0.025", "q0.975", 0.2, "95 %"), ("q0.25", "q0.75", 0.4, "50 %")):
        traces.append(_band(forecast.index, forecast[lower], forecast[upper], name, alpha))
    traces.append(_line(forecast.index, forecast["q0.5"], "median", style.BLUE))
    return _figure(traces, {"yaxis": {"title": {"text": escape(target)}}})


def parts_figure(parts: "pd.DataFrame") -> dict[str, Any]:
    """What each part contributes to a forecast, with bands of two standard deviations.

    Parameters
    ----------
    parts : pandas DataFrame
        From ``CompositeGPForecaster.parts(horizon).table``.

    Returns
    -------
    dict
        As in `forecast_figure`.

    Examples
    --------
    A band and a line for each part:

    >>> import pandas as pd
    >>> index = pd.date_range("2024-01-01", periods=3, freq="h")
    >>> columns = pd.MultiIndex.from_product([["level", "day"], ["mean", "std"]])
    >>> parts = pd.DataFrame([[5.0, 1.0, 0.5, 0.1]] * 3, index, columns)
    >>> figure = parts_figure(parts)
    >>> [trace["name"] for trace in figure["data"]], figure["data"][0]["y"]
    (['level', 'level', 'day', 'day'], [3.0, 3.0, 3.0, 7.0, 7.0, 7.0])
    """
    colors = (style.BLUE, style.ORANGE, style.GREEN, style.GRAY, style.BLACK)
    traces = []
    for number, name in enumerate(dict.fromkeys(parts.columns.get_level_values(0))):
        mean, std, color = parts[name, "mean"], parts[name, "std"], colors[number % len(colors)]
        group = {"legendgroup": str(name)}
        band = _band(parts.index, mean - 2 * std, mean + 2 * std, escape(str(name)), 0.15, color)
        traces += [band | group | {"showlegend": False}, _line(parts.index, mean, escape(str(name)), color) | group]
    return _figure(traces, {})


def backtest_figure(forecasts: "pd.DataFrame") -> dict[str, Any]:
    """Errors by step of the horizon and by hour of day, the PIT and the reliability of a backtest.

    Parameters
    ----------
    forecasts : pandas DataFrame
        ``Backtest.forecasts``.

    Returns
    -------
    dict
        As in `forecast_figure`.

    Examples
    --------
    Errors of 1 and 3 in two horizons of one step:

    >>> import pandas as pd
    >>> columns = {"observed": [1.0, 5.0], "mean": 2.0, "step": [1, 1], "PIT": [0.2, 0.7]}
    >>> figure = backtest_figure(pd.DataFrame(columns, pd.date_range("2024-01-01", periods=2, freq="h")))
    >>> [trace["name"] for trace in figure["data"]]
    ['compositegp', 'compositegp', 'PIT', 'calibrated', 'share inside']
    >>> round(figure["data"][0]["y"][0] ** 2, 9), figure["data"][1]["y"]
    (5.0, [1.0, 3.0])
    """
    curves = BacktestCurves.of(forecasts)
    traces = []
    for axis, rows in (("", curves.by_step), ("2", curves.by_hour)):
        for name, line in rows.items():
            one = _line(line.index, line, name, COLORS[name])
            traces.append(one | _axes(axis) | {"legendgroup": name, "showlegend": axis == ""})
    centers = (np.arange(len(curves.pit)) + 0.5) / len(curves.pit)
    bars = {"type": "bar", "x": _numbers(centers), "y": _numbers(curves.pit), "name": "PIT", "showlegend": False}
    traces.append(bars | _axes("3") | {"marker": {"color": style.BLUE, "opacity": 0.6}})
    traces.append(_line([0, 1], [0, 1], "calibrated", style.GRAY) | _axes("4") | {"showlegend": False})
    share = _line(LEVELS, curves.reliability, "share inside", style.BLUE)
    traces.append(share | _axes("4") | {"showlegend": False})
    titles = {
        "": ("step of the horizon", "RMSE"),
        "2": (curves.hour, "RMSE"),
        "3": ("probability integral transform", "density"),
        "4": ("level of the interval", "share inside"),
    }
    layout: dict[str, Any] = {
        "grid": {"rows": 2, "columns": 2, "pattern": "independent", "ygap": 0.3},
        "height": 640,
    }
    for axis, (x, y) in titles.items():
        layout |= {
            f"xaxis{axis}": {"title": {"text": x}},
            f"yaxis{axis}": {"title": {"text": y}, "rangemode": "tozero"},
        }
    return _figure(traces, layout)


def _figure(traces: list[dict[str, Any]], layout: dict[str, Any]) -> dict[str, Any]:
    common = {"margin": {"l": 60, "r": 10, "t": 30, "b": 50}, "template": "none", "hovermode": "x"}
    return {
        "data": traces,
        "layout": common | {"legend": {"orientation": "h", "y": 1.1}, "autosize": True} | layout,
    }


def _axes(number: str) -> dict[str, str]:
    return {"xaxis": f"x{number}", "yaxis": f"y{number}"}


def _line(x: Any, y: Any, name: str, color: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": _places(x),
        "y": _numbers(y),
        "name": name,
        "line": {"color": color, "width": 1.5},
    }


def _band(x: Any, lower: Any, upper: Any, name: str, alpha: float, color: str = style.BLUE) -> dict[str, Any]:
    """An area between two curves: along the one and back along the other."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    places = _places(x)
    return {
        "type": "scatter",
        "mode": "lines",
        "x": places + places[::-1],
        "y": _numbers(lower) + _numbers(upper)[::-1],
        "name": name,
        "fill": "toself",
        "fillcolor": f"rgba({red},{green},{blue},{alpha})",
        "line": {"width": 0},
        "hoverinfo": "skip",
    }


def _places(x: Any) -> list[Any]:
    """Numbers, or times as their clock shows them: Plotly has no time zones."""
    if hasattr(x, "tz"):
        return [stamp.isoformat() for stamp in (x if x.tz is None else x.tz_localize(None))]
    return _numbers(x)


def _numbers(values: Any) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in np.asarray(values, dtype=float)]
