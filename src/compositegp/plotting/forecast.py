"""Pictures of forecasts."""

from typing import TYPE_CHECKING

from compositegp.plotting import style

if TYPE_CHECKING:
    import pandas as pd

_HORIZONS_SHOWN = 7  # observed values before the forecast, in horizons


def draw_forecast(history: "pd.Series", forecast: "pd.DataFrame", target: str) -> bytes:
    r"""Draw the end of a series, and the median and the 50 % and 95 % bands of its forecast.

    Parameters
    ----------
    history : pandas Series with a DatetimeIndex
    forecast : pandas DataFrame
        From `CompositeGPForecaster.predict`, with its default quantiles.
    target : str
        Name of the series.

    Returns
    -------
    bytes
        Content of a PNG file.

    Examples
    --------
    >>> import pandas as pd
    >>> index = pd.date_range("2024-01-01", periods=4, freq="h")
    >>> quantiles = {f"q{level}": [1.0 + level] for level in (0.025, 0.25, 0.5, 0.75, 0.975)}
    >>> draw_forecast(pd.Series([1.0, 2, 3], index[:3]), pd.DataFrame(quantiles, index[3:]), "load")[:4]
    b'\x89PNG'
    """
    figure, axes = style.figure(size=(9, 4.2))
    shown = history.dropna().sort_index().iloc[-_HORIZONS_SHOWN * len(forecast) :]
    axes.plot(shown.index, shown, color=style.BLACK, lw=1, label="observed")
    for lower, upper, alpha, label in (("q0.025", "q0.975", 0.2, "95 %"), ("q0.25", "q0.75", 0.4, "50 %")):
        band = forecast[lower], forecast[upper]
        axes.fill_between(forecast.index, *band, color=style.BLUE, alpha=alpha, lw=0, label=label)
    axes.plot(forecast.index, forecast["q0.5"], color=style.BLUE, lw=1.6, label="median")
    name = style.literal(target)
    axes.set(ylabel=name, title=f"Forecast of {name} from {forecast.index[0]:%Y-%m-%d %H:%M}")
    axes.legend(frameon=False, ncols=4, loc="upper left")
    axes.margins(x=0.01)
    figure.autofmt_xdate()
    return style.png(figure, dpi=120)


def draw_parts(parts: "pd.DataFrame", target: str) -> bytes:
    r"""Draw what each part contributes to a forecast, with bands of two standard deviations.

    Parameters
    ----------
    parts : pandas DataFrame
        From ``CompositeGPForecaster.parts(horizon).table``.
    target : str
        Name of the series.

    Returns
    -------
    bytes
        Content of a PNG file.

    Examples
    --------
    >>> import pandas as pd
    >>> columns = pd.MultiIndex.from_product([["level", "day"], ["mean", "std"]])
    >>> index = pd.date_range("2024-01-01", periods=2, freq="h")
    >>> draw_parts(pd.DataFrame([[5.0, 0.1, 1.0, 0.1], [5.0, 0.1, 0.0, 0.1]], index, columns), "load")[:4]
    b'\x89PNG'
    """
    names = list(dict.fromkeys(parts.columns.get_level_values(0)))
    figure, axes = style.figure(len(names), 1, size=(9, 1.0 + 1.25 * len(names)), sharex=True, squeeze=False)
    for place, name in zip(axes[:, 0], names, strict=True):
        mean, std = parts[name, "mean"], parts[name, "std"]
        place.fill_between(parts.index, mean - 2 * std, mean + 2 * std, color=style.BLUE, alpha=0.25, lw=0)
        place.plot(parts.index, mean, color=style.BLUE, lw=1.4)
        place.set_title(style.literal(name), fontsize=9, loc="left")
        place.margins(x=0.01)
    figure.suptitle(f"Parts of the forecast of {style.literal(target)}", fontsize=11)
    figure.autofmt_xdate()
    return style.png(figure, dpi=110)
