"""Forecasts of time series: pandas in, pandas out. Needs pandas (``pip install 'compositegp[cli]'``)."""

from compositegp.forecasting.aggregation import PERIODS, aggregate_forecast
from compositegp.forecasting.backtesting import Backtest, backtest, cross_validation
from compositegp.forecasting.forecast_parts import ForecastParts
from compositegp.forecasting.forecaster import CompositeGPForecaster
from compositegp.forecasting.many_series import ManyBacktests, ManySeries, backtest_many, fit_many
from compositegp.forecasting.seasons import Season, given_seasons
from compositegp.forecasting.target_scales import scale_in_words
from compositegp.forecasting.timeline import Observed, Timeline, in_utc, observe, zone_of

__all__ = [
    "PERIODS",
    "Backtest",
    "CompositeGPForecaster",
    "ForecastParts",
    "ManyBacktests",
    "ManySeries",
    "Observed",
    "Season",
    "Timeline",
    "aggregate_forecast",
    "backtest",
    "backtest_many",
    "cross_validation",
    "fit_many",
    "given_seasons",
    "in_utc",
    "observe",
    "scale_in_words",
    "zone_of",
]
