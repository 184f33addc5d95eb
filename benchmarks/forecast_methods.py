"""Methods of `benchmarks/forecast.py`: each forecasts the last horizons of a case from the values before them."""

import logging
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from forecast_series import Case

LEVELS = np.round(np.arange(0.05, 0.96, 0.05), 3)
TAILS = (0.025, 0.975)
QUANTILES = [*LEVELS.tolist(), *TAILS]
# Values that statsforecast sees: with more it would take hours.
_RECENT = {"hour": 24 * 7 * 12, "half hour": 48 * 7 * 8, "day": 365 * 3, "month": 10_000, "quarter": 10_000}
_PROPHET_SEES = 40_000  # values
_PROPHET_FITS = 4
IN_WORDS = (
    f"What each method sees: those of statsforecast the latest {_RECENT['hour'] // (24 * 7)} weeks of hours, "
    f"{_RECENT['half hour'] // (48 * 7)} weeks of half hours, {_RECENT['day'] // 365} years of days and all months and "
    "quarters, no further columns and no holidays, with gaps filled in by a line; they are learned anew before each "
    "horizon. AutoETS, AutoTheta and AutoARIMA (with approximation) have the shortest season alone, the seasonal "
    "naive forecast the longest, MSTL all of them, with AutoETS for the rest. LightGBM sees all values, lags of up to "
    "two weeks, the calendar, holidays and further columns, and is learned once. Prophet sees the latest "
    f"{_PROPHET_SEES:,} values and further columns, and is learned some {_PROPHET_FITS} times. compositegp sees all "
    "values, holidays and further columns, and is learned once, or up to twelve times if the series has at most 1,000 "
    "values."
)
_CALENDAR = {"month": "MS", "quarter": "QS"}  # steps that differ in length


class Result(NamedTuple):
    """Quantiles (n, 21) and means (n,) of all the test values, and the values."""

    mean: np.ndarray
    quantiles: np.ndarray
    observed: np.ndarray


def compositegp(case: Case) -> Result:
    from compositegp.forecasting import CompositeGPForecaster, cross_validation

    frame = pd.DataFrame({"ds": case.y.index, "y": case.y.to_numpy()})
    if case.X is not None:
        frame = pd.concat([frame, case.X.reset_index(drop=True)], axis=1)
    forecaster = CompositeGPForecaster(**case.options)
    done = cross_validation(forecaster, frame, case.horizon, case.origins, quantiles=QUANTILES)
    return Result(done["mean"].to_numpy(), done[[f"q{q:g}" for q in QUANTILES]].to_numpy(), done["y"].to_numpy())


def _regular(case: Case) -> pd.Series:
    """The series on a regular grid, gaps filled in, for libraries that need one."""
    step = case.y.index.to_series().diff().mode().iloc[0]
    y = case.y if case.kind in _CALENDAR else case.y.asfreq(step)
    return y.interpolate().tz_localize(None) if y.index.tz is not None else y.interpolate()


def statsforecast(model: str) -> Callable[[Case], Result]:
    def run(case: Case) -> Result:
        from statsforecast import StatsForecast
        from statsforecast.models import MSTL, AutoARIMA, AutoETS, AutoTheta, SeasonalNaive

        longest, shortest = case.periods[-1], case.periods[0]
        made = {
            "seasonal naive": lambda: SeasonalNaive(longest),
            "AutoETS": lambda: AutoETS(season_length=shortest),
            "AutoTheta": lambda: AutoTheta(season_length=shortest),
            "AutoARIMA": lambda: AutoARIMA(season_length=shortest, approximation=True),
            "MSTL": lambda: MSTL(case.periods, trend_forecaster=AutoETS(model="ZZN")),
        }[model]()
        y = _regular(case)
        y = y.iloc[-(_RECENT[case.kind] + case.origins * case.horizon) :]
        frame = pd.DataFrame({"unique_id": "a", "ds": y.index, "y": y.to_numpy()})
        frequency = _CALENDAR.get(case.kind) or pd.infer_freq(y.index[:100])
        widths = sorted({round(100 * abs(2 * q - 1), 3) for q in QUANTILES} - {0.0})
        done = StatsForecast([model_ := made], freq=frequency).cross_validation(
            df=frame, h=case.horizon, step_size=case.horizon, n_windows=case.origins, level=widths
        )
        name = repr(model_)
        columns = []
        for q in QUANTILES:
            width = round(100 * abs(2 * q - 1), 3)
            label = f"{width:g}" if f"{name}-lo-{width:g}" in done else f"{width}"
            columns.append(done[name if q == 0.5 else f"{name}-{'lo' if q < 0.5 else 'hi'}-{label}"].to_numpy())
        there = case.y.index.tz_localize(None) if case.y.index.tz is not None else case.y.index
        known = done["ds"].isin(there[case.y.notna().to_numpy()]).to_numpy()
        return Result(done[name].to_numpy()[known], np.column_stack(columns)[known], done["y"].to_numpy()[known])

    return run


def lightgbm(case: Case) -> Result:
    from lightgbm import LGBMRegressor
    from skforecast.recursive import ForecasterRecursive

    y = _regular(case)
    frequency = _CALENDAR.get(case.kind) or pd.infer_freq(y.index[:100])
    y = y.asfreq(frequency)
    local = case.options.get("timezone")
    index = y.index if local is None else y.index.tz_localize("UTC").tz_convert(local)
    calendar = pd.DataFrame({"month": index.month, "weekday": index.day_of_week, "hour": index.hour}, index=y.index)
    if "holidays" in case.options:
        calendar["holiday"] = index.strftime("%Y-%m-%d").isin(case.options["holidays"]).astype(int)
    if case.X is not None:
        extra = case.X.tz_localize(None) if case.X.index.tz is not None else case.X
        calendar = calendar.join(extra)
    day = case.periods[0]
    lags = sorted({*range(1, min(day, 48) + 1), *(k * day for k in (1, 2, 3, 7, 14)), *case.periods})
    lags = [lag for lag in lags if lag < len(y) // 3]
    regressor = LGBMRegressor(
        n_estimators=300, learning_rate=0.05, num_leaves=31, n_jobs=2, verbose=-1, random_state=0
    )
    forecaster = ForecasterRecursive(regressor, lags=lags, binner_kwargs={"n_bins": 10})
    train = len(y) - case.origins * case.horizon
    forecaster.fit(y.iloc[:train], exog=calendar.iloc[:train], store_in_sample_residuals=True)
    means, quantiles = [], []
    for origin in range(case.origins):
        start = train + origin * case.horizon
        rows = slice(start, start + case.horizon)
        drawn = forecaster.predict_bootstrapping(
            steps=case.horizon,
            last_window=y.iloc[start - max(lags) - 1 : start],
            exog=calendar.iloc[rows],
            n_boot=100,
            use_in_sample_residuals=True,
            use_binned_residuals=True,
        ).to_numpy()
        point = forecaster.predict(
            steps=case.horizon, last_window=y.iloc[start - max(lags) - 1 : start], exog=calendar.iloc[rows]
        )
        means.append(point.to_numpy())
        quantiles.append(np.quantile(drawn, QUANTILES, axis=1).T)
    there = case.y.index.tz_localize(None) if case.y.index.tz is not None else case.y.index
    known = y.index[train:].isin(there[case.y.notna().to_numpy()])
    return Result(np.concatenate(means)[known], np.concatenate(quantiles)[known], y.to_numpy()[train:][known])


def prophet(case: Case) -> Result:
    from prophet import Prophet

    logging.getLogger("cmdstanpy").setLevel(logging.ERROR)
    y = _regular(case)
    means, quantiles, observed = [], [], []
    train = len(y) - case.origins * case.horizon
    every = max(1, case.origins // _PROPHET_FITS)  # without learning it does not look at the latest values
    for first in range(0, case.origins, every):
        start = train + first * case.horizon
        stop = min(start + every * case.horizon, len(y))
        past = y.iloc[max(0, start - _PROPHET_SEES) : start]
        model = Prophet(uncertainty_samples=200)
        if case.X is not None:
            extra = case.X.tz_localize(None) if case.X.index.tz is not None else case.X
            for name in extra:
                model.add_regressor(name)
        frame = pd.DataFrame({"ds": past.index, "y": past.to_numpy()})
        future = pd.DataFrame({"ds": y.index[start:stop]})
        if case.X is not None:
            frame, future = (part.join(extra.ffill(), on="ds") for part in (frame, future))
        model.fit(frame)
        drawn = model.predictive_samples(future)["yhat"]
        means.append(drawn.mean(axis=1))
        quantiles.append(np.quantile(drawn, QUANTILES, axis=1).T)
        observed.append(y.to_numpy()[start:stop])
    return Result(np.concatenate(means), np.concatenate(quantiles), np.concatenate(observed))


METHODS: dict[str, tuple[str, Callable[[Case], Result]]] = {
    "compositegp": ("compositegp", compositegp),
    "seasonal naive": ("statsforecast", statsforecast("seasonal naive")),
    "AutoETS": ("statsforecast", statsforecast("AutoETS")),
    "AutoTheta": ("statsforecast", statsforecast("AutoTheta")),
    "MSTL": ("statsforecast", statsforecast("MSTL")),
    "AutoARIMA": ("statsforecast", statsforecast("AutoARIMA")),
    "LightGBM": ("skforecast", lightgbm),
    "Prophet": ("prophet", prophet),
}
