"""Pictures; they need matplotlib (``pip install 'compositegp[plot]'``)."""

from compositegp.plotting.analysis import plot_confidence, plot_errors, plot_trade_off
from compositegp.plotting.backtests import draw_backtest
from compositegp.plotting.forecast import draw_forecast, draw_parts
from compositegp.plotting.interactive import backtest_figure, forecast_figure, parts_figure
from compositegp.plotting.maps import MapPicture, draw_map
from compositegp.plotting.validation import draw_validation, plot_neighbor_curve, plot_validation
from compositegp.plotting.variograms import draw_variogram, variogram

__all__ = [
    "MapPicture",
    "backtest_figure",
    "draw_backtest",
    "draw_forecast",
    "draw_map",
    "draw_parts",
    "draw_validation",
    "draw_variogram",
    "forecast_figure",
    "parts_figure",
    "plot_confidence",
    "plot_errors",
    "plot_neighbor_curve",
    "plot_trade_off",
    "plot_validation",
    "variogram",
]
