"""What a backtest shows: errors by horizon and by hour of day beside simple forecasts, PIT and reliability."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from compositegp.plotting import style

if TYPE_CHECKING:
    import pandas as pd

COLORS = {
    "compositegp": style.BLUE,
    "decomposition": style.GREEN,
    "seasonal naive": style.ORANGE,
    "persistence": style.GRAY,
}
METHODS = {name: "mean" if name == "compositegp" else name for name in COLORS}
LEVELS = np.linspace(0.05, 0.95, 19)
_BINS = 20


class BacktestCurves(NamedTuple):
    """The numbers of the pictures.

    Attributes
    ----------
    by_step : dict of pandas Series
        RMSE of each method by step of the horizon.
    by_hour : dict of pandas Series
        RMSE of each method by hour of day; by day of the week where all values are of one hour.
    hour : {"hour of day", "day of the week"}
    pit : array of shape (20,)
        Density of the PIT in twentieths.
    reliability : array of shape (19,)
        Share of the values inside the central intervals of the levels 0.05, 0.1, …, 0.95.
    """

    by_step: dict[str, Any]
    by_hour: dict[str, Any]
    hour: str
    pit: Any
    reliability: Any

    @classmethod
    def of(cls, forecasts: "pd.DataFrame") -> "BacktestCurves":
        """The curves of ``Backtest.forecasts``."""
        hours, hour = forecasts.index.hour, "hour of day"
        if len(set(hours)) == 1:
            hours, hour = forecasts.index.dayofweek, "day of the week"
        squares = {
            name: (forecasts[column] - forecasts["observed"]) ** 2
            for name, column in METHODS.items()
            if column in forecasts
        }
        steps, pit = forecasts["step"].to_numpy(), forecasts["PIT"].to_numpy()
        density = np.histogram(pit, _BINS, (0, 1))[0] * (_BINS / len(pit))
        return cls(
            {name: np.sqrt(square.groupby(steps).mean()) for name, square in squares.items()},
            {name: np.sqrt(square.groupby(np.asarray(hours)).mean()) for name, square in squares.items()},
            hour,
            density,
            np.array([np.mean(np.abs(2 * pit - 1) <= level) for level in LEVELS]),
        )


def draw_backtest(forecasts: "pd.DataFrame") -> bytes:
    r"""Draw errors by step of the horizon and by hour of day, the PIT and the reliability of a backtest.

    Parameters
    ----------
    forecasts : pandas DataFrame
        ``Backtest.forecasts``.

    Returns
    -------
    bytes
        Content of a PNG file.

    Examples
    --------
    >>> import pandas as pd
    >>> columns = {"observed": [1.0, 2.0], "mean": 1.5, "step": [1, 2], "PIT": [0.2, 0.7]}
    >>> draw_backtest(pd.DataFrame(columns, index=pd.date_range("2024-01-01", periods=2, freq="h")))[:4]
    b'\x89PNG'
    """
    curves = BacktestCurves.of(forecasts)
    figure, axes = style.figure(2, 2, size=(9, 6))
    for place, rows, label in (
        (axes[0, 0], curves.by_step, "step of the horizon"),
        (axes[0, 1], curves.by_hour, curves.hour),
    ):
        for name, line in rows.items():
            place.plot(line.index, line, color=COLORS[name], marker="." if len(line) < 40 else None, label=name)
        place.set(xlabel=label, ylabel="RMSE", title=f"Errors by {label}")
        place.set_ylim(bottom=0)
    axes[0, 0].legend(frameon=False)
    left, right = axes[1]
    left.bar((np.arange(_BINS) + 0.5) / _BINS, curves.pit, 1 / _BINS, color=style.BLUE, alpha=0.6)
    left.axhline(1.0, color=style.GRAY, lw=1)
    left.set(xlabel="probability integral transform", ylabel="density", title="PIT: flat where calibrated")
    right.plot([0, 1], [0, 1], color=style.GRAY, lw=1)
    right.plot(LEVELS, curves.reliability, color=style.BLUE)
    right.set(xlabel="level of the interval", ylabel="share inside", title="Reliability", xlim=(0, 1), ylim=(0, 1))
    return style.png(figure, dpi=110)
