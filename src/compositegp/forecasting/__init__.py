"""Forecasts of time series: pandas in, pandas out. Needs pandas (``pip install 'compositegp[cli]'``)."""

from compositegp.forecasting.backtest import Backtest, backtest
from compositegp.forecasting.forecaster import CompositeGPForecaster

__all__ = ["Backtest", "CompositeGPForecaster", "backtest"]
