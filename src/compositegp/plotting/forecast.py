"""Pictures of forecasts."""

import io
from typing import Any

import pandas as pd

from compositegp.storage import write_atomically

BLUE, BLACK = "#0072B2", "#222222"


def draw_forecast(history: pd.Series, forecast: pd.DataFrame, target: str) -> bytes:
    """A PNG picture of the last of a series, and the median, 50 % and 95 % bands of its forecast."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 4.2), layout="constrained")
    shown = history.dropna().sort_index().iloc[-7 * len(forecast) :]
    axes.plot(shown.index, shown, color=BLACK, lw=1, label="observed")
    axes.fill_between(
        forecast.index, forecast["q0.025"], forecast["q0.975"], color=BLUE, alpha=0.2, lw=0, label="95 %"
    )
    axes.fill_between(
        forecast.index, forecast["q0.25"], forecast["q0.75"], color=BLUE, alpha=0.4, lw=0, label="50 %"
    )
    axes.plot(forecast.index, forecast["q0.5"], color=BLUE, lw=1.6, label="median")
    axes.set(ylabel=target, title=f"Forecast of {target} from {forecast.index[0]:%Y-%m-%d %H:%M}")
    axes.legend(frameon=False, ncols=4, loc="upper left")
    axes.margins(x=0.01)
    figure.autofmt_xdate()
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=120)
    pyplot.close(figure)
    return buffer.getvalue()


def write_picture(path: Any, picture: bytes) -> None:
    """Write a picture, all of it or nothing."""
    write_atomically(path, picture)
