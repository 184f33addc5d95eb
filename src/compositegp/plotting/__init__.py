"""Pictures; they need matplotlib (``pip install 'compositegp[plot]'``)."""

from compositegp.plotting.analysis import plot_confidence, plot_errors, plot_trade_off
from compositegp.plotting.forecast import draw_forecast

__all__ = [
    "draw_forecast",
    "plot_confidence",
    "plot_errors",
    "plot_trade_off",
]
