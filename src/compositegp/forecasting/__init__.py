"""Forecasts of time series: pandas in, pandas out. Needs pandas (``pip install 'compositegp[cli]'``)."""

from compositegp.forecasting.aggregation import PERIODS, aggregate_forecast, check_aggregation
from compositegp.forecasting.backtesting import Backtest, backtest, cross_validation
from compositegp.forecasting.forecast_parts import ForecastParts
from compositegp.forecasting.forecaster import CompositeGPForecaster
from compositegp.forecasting.local_times import in_utc, in_zone, zone_of
from compositegp.forecasting.many_series import ManyBacktests, ManySeries, backtest_many, fit_many
from compositegp.forecasting.observations import Observed, observe
from compositegp.forecasting.seasons import Season, given_seasons
from compositegp.forecasting.target_scales import scale_in_words
from compositegp.forecasting.timeline import Timeline

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
    "check_aggregation",
    "cross_validation",
    "fit_many",
    "given_seasons",
    "in_utc",
    "in_zone",
    "observe",
    "scale_in_words",
    "zone_of",
]
