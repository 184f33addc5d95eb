"""Forecasts beside other libraries: RMSE, MAE, CRPS, coverage and seconds on every series of the data folder.

    python benchmarks/forecast.py [--series electricity bikes …] [--methods compositegp mstl …] [--origins 60]

Peers: seasonal naive, AutoETS, AutoTheta, MSTL and AutoARIMA of statsforecast, LightGBM on lags and calendar by
skforecast (intervals by its conformal residuals), Prophet. Those that are not installed are left out. Each method
forecasts the same horizons at the end of a series from the values before them. The CRPS is 2 × the mean pinball loss
over 19 quantiles for all of them. Defaults of compositegp come from origins inside the training parts, but test scores
of electricity and of the NOx series had been seen when two of them were settled (the share of the windows that errors
are learned from, and that the scale follows recent errors), so that these two test parts are not untouched.
"""

import argparse
import importlib.util
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from data import folder

LEVELS = np.round(np.arange(0.05, 0.96, 0.05), 3)
TAILS = (0.025, 0.975)
QUANTILES = [*LEVELS.tolist(), *TAILS]
_RECENT = {"hour": 24 * 7 * 12, "half hour": 48 * 7 * 8, "day": 365 * 3, "month": 10_000}  # that statsforecast sees


class Case(NamedTuple):
    """A series to forecast: how it is called, its values, further columns, horizon, origins, periods, clock."""

    y: pd.Series
    X: pd.DataFrame | None
    horizon: int
    origins: int
    periods: list[int]
    kind: str
    options: dict


def cases(origins: int) -> dict[str, Case]:
    """All the series of the data folder."""
    base = folder()
    if base is None:
        raise SystemExit("no data: set COMPOSITEGP_DATA to a folder that holds the series")
    found: dict[str, Case] = {}
    table = pd.read_csv(base / "vic_electricity_halfhourly_2012_2014.csv.gz", parse_dates=["Time"]).set_index(
        "Time"
    )
    closed = table.index[table["Holiday"]].tz_convert("Australia/Melbourne").date
    clock = {"timezone": "Australia/Melbourne", "holidays": sorted({str(day) for day in closed})}
    half = table["Demand"].astype(float)
    found["electricity"] = Case(half, None, 48, origins, [48, 336], "half hour", clock)
    found["electricity with temperature"] = Case(
        half, table[["Temperature"]].astype(float), 48, origins, [48, 336], "half hour", clock
    )
    bikes = pd.read_csv(base / "series/bike_sharing_dataset_clean.csv.gz", parse_dates=["date_time"])
    bikes = bikes.set_index("date_time")
    weather = bikes[["holiday", "temp", "hum", "windspeed"]].astype(float)
    weather = weather.assign(rain=bikes["weather"].map({"clear": 0.0, "mist": 1.0, "rain": 2.0}))
    found["bikes"] = Case(bikes["users"], None, 24, origins, [24, 168], "hour", {})
    found["bikes with weather"] = Case(bikes["users"], weather, 24, origins, [24, 168], "hour", {})
    buildings = pd.read_csv(base / "series/bdg2_hourly_sample.csv.gz", parse_dates=["timestamp"], index_col=0)
    for name in buildings:
        found[name] = Case(buildings[name].dropna(), None, 24, origins, [24, 168], "hour", {})
    users = pd.read_csv(base / "series/bicimad_users.csv.gz", parse_dates=["date"], index_col=0)["users"].astype(
        float
    )
    found["users a day"] = Case(users, None, 7, min(origins, 30), [7], "day", {})
    spending = pd.read_csv(base / "series/h2o.csv.gz", parse_dates=["fecha"], index_col="fecha")["x"]
    found["spending a month"] = Case(spending, None, 12, 3, [12], "month", {})
    fuel = pd.read_csv(base / "series/consumos-combustibles-mensual.csv.gz", parse_dates=["Fecha"], index_col=0)
    for name in fuel:
        found[f"fuel: {name}"] = Case(fuel[name], None, 12, 6, [12], "month", {})
    from compositegp.datasets import nox_emissions

    found["NOx, robustbase"] = Case(nox_emissions(), None, 24, origins, [24, 168], "hour", {})
    stockholm = pd.read_csv(base / "nox_stockholm_2009_2014.csv.gz", parse_dates=["timestamp"], index_col=0)
    for name in ("nox_essingeleden", "nox_hornsgatan"):
        found[name] = Case(stockholm[name].iloc[-4 * 8766 :], None, 24, 364, [24, 168], "hour", {})
    return found


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
    y = case.y if case.kind == "month" else case.y.asfreq(step)
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
        frequency = "MS" if case.kind == "month" else pd.infer_freq(y.index[:100])
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
    frequency = "MS" if case.kind == "month" else pd.infer_freq(y.index[:100])
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
    import logging

    from prophet import Prophet

    logging.getLogger("cmdstanpy").setLevel(logging.ERROR)
    y = _regular(case)
    means, quantiles, observed = [], [], []
    train = len(y) - case.origins * case.horizon
    every = max(1, case.origins // 4)  # learned anew four times: it does not look at the latest values otherwise
    for first in range(0, case.origins, every):
        start = train + first * case.horizon
        stop = min(start + every * case.horizon, len(y))
        past = y.iloc[max(0, start - 40_000) : start]
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


def scores(result: Result) -> dict[str, float]:
    y = result.observed[:, None]
    error = y - result.quantiles[:, : len(LEVELS)]
    pinball = np.maximum(LEVELS * error, (LEVELS - 1) * error)

    def inside(low: float, high: float) -> float:
        lower, upper = (result.quantiles[:, QUANTILES.index(q)] for q in (low, high))
        return float(np.mean((lower <= result.observed) & (result.observed <= upper)))

    return {
        "RMSE": float(np.sqrt(np.mean((result.mean - result.observed) ** 2))),
        "MAE": float(np.mean(np.abs(result.quantiles[:, QUANTILES.index(0.5)] - result.observed))),
        "CRPS": float(2 * pinball.mean()),
        "50 %": inside(0.25, 0.75),
        "80 %": inside(0.1, 0.9),
        "95 %": inside(*TAILS),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", nargs="+")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--origins", type=int, default=60)
    parser.add_argument("--out", type=Path, help="a JSON file that results are added to")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    known = json.loads(arguments.out.read_text()) if arguments.out and arguments.out.exists() else {}
    all_cases = cases(arguments.origins)
    for name in arguments.series or all_cases:
        case = all_cases[name]
        print(f"\n{name}: {len(case.y)} values, {case.origins} horizons of {case.horizon}")
        print(
            "| method | RMSE | MAE | CRPS | 50 % | 80 % | 95 % | CPU seconds |\n|---|---|---|---|---|---|---|---|"
        )
        for method in arguments.methods:
            package, run = METHODS[method]
            if importlib.util.find_spec(package) is None:
                continue
            start = time.process_time()
            try:
                found = scores(run(case))
            except Exception as error:  # a peer that fails on a series is reported, and the others go on
                print(f"| {method} | failed: {type(error).__name__}: {str(error)[:80]} |", flush=True)
                continue
            found["seconds"] = time.process_time() - start
            known.setdefault(name, {})[method] = found
            cells = [f"{found[key]:.4g}" for key in ("RMSE", "MAE", "CRPS")]
            cells += [f"{found[key]:.3f}" for key in ("50 %", "80 %", "95 %")]
            print(f"| {method} | " + " | ".join([*cells, f"{found['seconds']:.0f}"]) + " |", flush=True)
            if arguments.out:
                arguments.out.write_text(json.dumps(known, indent=1))


if __name__ == "__main__":
    main()
