"""Many series of one table: a model each, in parallel, which learn from each other where they are short."""

import copy
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import clone

from compositegp.backend import Floats
from compositegp.forecasting.aggregation import aggregate_forecast
from compositegp.forecasting.backtesting import Backtest, backtest
from compositegp.forecasting.forecaster import CompositeGPForecaster
from compositegp.forecasting.observations import Observed, observe
from compositegp.forecasting.rolling_forecasts import rows_before
from compositegp.forecasting.shared_learning import Member, common_thetas
from compositegp.forecasting.timeline import Horizon
from compositegp.validation import check_count

Report = Callable[[int, int], None]
_FEWEST_TO_SHARE = 3  # models with the same parts that learn from each other
_WORTH = 0.002  # nats a value that a kernel of its own may gain by chance; series that gain more are short


@dataclass(frozen=True, eq=False)
class ManySeries:
    """Fitted models of many series.

    Attributes
    ----------
    models : dict
        A `CompositeGPForecaster` for each series that could be learned, by its name.
    failures : dict
        Why the others could not, by name.
    n_shared : int
        Number of models that took the kernel that they share with others.
    id_col, time_col : str
        Names of the columns of tables.

    Examples
    --------
    One of two series has no value:

    >>> times = pd.date_range("2024-01-01", periods=24 * 4, freq="h")
    >>> a = pd.DataFrame({"unique_id": "a", "ds": times, "y": np.random.default_rng(0).normal(size=len(times))})
    >>> b = pd.DataFrame({"unique_id": "b", "ds": times, "y": np.nan})
    >>> fitted = fit_many(CompositeGPForecaster(None, seasons=[], search=False), pd.concat([a, b]))
    >>> isinstance(fitted, ManySeries), list(fitted.models), list(fitted.failures)
    (True, ['a'], ['b'])
    >>> fitted.predict("2h", [0.5]).columns.tolist()
    ['unique_id', 'ds', 'mean', 'std', 'q0.5']
    """

    models: dict[Any, CompositeGPForecaster]
    failures: dict[Any, str]
    n_shared: int
    id_col: str
    time_col: str

    def predict(
        self,
        horizon: Horizon,
        quantiles: Sequence[float] = (0.025, 0.25, 0.5, 0.75, 0.975),
        X: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """Forecast the steps after the latest observation of each series.

        Parameters
        ----------
        horizon : int, str or Timedelta
        quantiles : sequence of floats between 0 and 1
        X : pandas DataFrame, optional
            The further columns over the horizons, if there are any, with the columns of names and of times.

        Returns
        -------
        pandas DataFrame
            One row for each step of each series: columns `id_col`, `time_col`, ``mean``, ``std`` and ``q…``.
        """
        found = []
        for name, forecast in self.predict_each(horizon, quantiles, X):
            if isinstance(forecast, ValueError):
                raise ValueError(f"series {name!r}: {forecast}") from forecast
            found.append(forecast)
        if not found:
            raise ValueError("there is no model to forecast by: see failures.")
        return pd.concat(found, ignore_index=True)

    def predict_each(
        self, horizon: Horizon, quantiles: Sequence[float], X: pd.DataFrame | None = None
    ) -> Iterator[tuple[Any, pd.DataFrame | ValueError]]:
        """Forecasts as in `predict`, one series at a time: its name, and its table or what is wrong."""
        yield from self._each(lambda model, columns: model.predict(horizon, quantiles, columns), X, self.time_col)

    def aggregate_each(
        self, horizon: Horizon, period: str, quantiles: Sequence[float], X: pd.DataFrame | None = None
    ) -> Iterator[tuple[Any, pd.DataFrame | ValueError]]:
        """Forecasts of averages over periods as in `aggregate_forecast`, one series at a time: see `predict_each`."""

        def averages(model: CompositeGPForecaster, columns: pd.DataFrame | None) -> pd.DataFrame:
            return aggregate_forecast(model, horizon, period, quantiles, columns)

        yield from self._each(averages, X, period)

    def _each(
        self,
        make: Callable[[CompositeGPForecaster, pd.DataFrame | None], pd.DataFrame],
        X: pd.DataFrame | None,
        time_col: str,
    ) -> Iterator[tuple[Any, pd.DataFrame | ValueError]]:
        """A table of each series with columns of its name and its times, or what is wrong."""
        future = {} if X is None else dict(iter(X.groupby(self.id_col, sort=False)))
        for name, model in self.models.items():
            try:
                table = make(model, self._future(model, future.get(name)))
            except ValueError as error:
                yield name, error
                continue
            table.index.name = time_col
            table = table.reset_index()
            table.insert(0, self.id_col, name)
            yield name, table

    def _future(self, model: CompositeGPForecaster, given: pd.DataFrame | None) -> pd.DataFrame | None:
        """The further columns of a series with their times."""
        columns = list(model.observations_.columns[1:])
        if not columns:
            return None
        if given is None:
            return pd.DataFrame(columns=columns, index=pd.DatetimeIndex([], tz=model.timeline_.zone))
        return given[columns].set_axis(pd.DatetimeIndex(given[self.time_col]))


@dataclass(frozen=True, eq=False)
class ManyBacktests:
    """Backtests of many series.

    Attributes
    ----------
    scores : pandas DataFrame
        One row for each series and method, as in `Backtest`.
    forecasts : pandas DataFrame
        As in `Backtest`, with a column of the names.
    failures : dict
        Why a series has no backtest, by name.

    Examples
    --------
    A series of a day is too short for three horizons of half a day:

    >>> times = pd.date_range("2024-01-01", periods=24 * 4, freq="h")
    >>> y = np.random.default_rng(0).normal(size=len(times))
    >>> a = pd.DataFrame({"unique_id": "a", "ds": times, "y": y})
    >>> table = pd.concat([a, a[:24].assign(unique_id="b")])
    >>> found = backtest_many(CompositeGPForecaster(None, seasons=[], search=False), table, "12h", 3)
    >>> isinstance(found, ManyBacktests), list(found.failures)
    (True, ['b'])
    >>> found.scores.loc["a"].index.tolist(), len(found.forecasts)
    (['compositegp, mean', 'compositegp, median', 'persistence'], 36)
    """

    scores: pd.DataFrame
    forecasts: pd.DataFrame
    failures: dict[Any, str]


def fit_many(
    forecaster: CompositeGPForecaster,
    df: pd.DataFrame,
    *,
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
    share: bool = True,
    n_jobs: int | None = None,
    report: Report = lambda done, total: None,
) -> ManySeries:
    """Fit a model to each series of a long table, in parallel.

    With `share`, series whose models have the same parts learn from each other: one kernel is learned by the windows of
    all of them, in units of their standard deviations, and a short series takes it unless its past forecasts speak for
    its own. A series that cannot be learned does not stop the others.

    Parameters
    ----------
    forecaster : CompositeGPForecaster
        A copy of it is fitted to each series.
    df : pandas DataFrame
        Columns of the series' names, times and values; all others are further columns whose future is known.
    id_col, time_col, target_col : str
        Names of the columns.
    share : bool
    n_jobs : int, optional
        Number of processes, as in joblib.
    report : callable
        Called with the number of steps done, and the number of all: each series counts when it is fitted and, with
        `share`, when it was offered the kernel that it shares.

    Returns
    -------
    ManySeries

    Examples
    --------
    >>> times = pd.date_range("2024-01-01", periods=24 * 12, freq="h")
    >>> noise = np.random.default_rng(0).normal(size=(3, len(times)))
    >>> parts = [pd.DataFrame({"unique_id": name, "ds": times, "y": y}) for name, y in zip("abc", noise)]
    >>> fitted = fit_many(CompositeGPForecaster(None, seasons=[], search=False), pd.concat(parts))
    >>> list(fitted.models), fitted.predict(2, [0.5])["unique_id"].tolist()
    (['a', 'b', 'c'], ['a', 'a', 'b', 'b', 'c', 'c'])
    """
    series, failures = split_series(forecaster, df, id_col, time_col, target_col)
    models, n_shared = _fit(forecaster, series, failures, share, n_jobs, report)
    return ManySeries(models, failures, n_shared, id_col, time_col)


def backtest_many(
    forecaster: CompositeGPForecaster,
    df: pd.DataFrame,
    horizon: Horizon,
    n_origins: int,
    *,
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
    share: bool = True,
    refit_every: int | None = None,
    n_jobs: int | None = None,
    report: Report = lambda done, total: None,
) -> ManyBacktests:
    """Score forecasts of the last `n_origins` horizons of each series of a long table.

    All models are learned from the values before these horizons, with what they share.

    Parameters
    ----------
    forecaster, df, id_col, time_col, target_col, share, n_jobs
        As in `fit_many`.
    horizon, n_origins
        As in `backtest`.
    refit_every : int, optional
        Each series learns everything anew after as many horizons, from its own values alone; never by default.
    report : callable
        As in `fit_many`; each series also counts when it is scored.

    Returns
    -------
    ManyBacktests

    Examples
    --------
    Noise is forecast by its mean, and not by its last value:

    >>> times = pd.date_range("2024-01-01", periods=24 * 4, freq="h")
    >>> noise = np.random.default_rng(0).normal(size=(2, len(times)))
    >>> table = pd.concat([pd.DataFrame({"unique_id": name, "ds": times, "y": y}) for name, y in zip("ab", noise)])
    >>> found = backtest_many(CompositeGPForecaster(None, seasons=[], search=False), table, "6h", n_origins=2)
    >>> error = found.scores["RMSE"].unstack()
    >>> (error["compositegp, mean"] < error["persistence"]).to_dict()
    {'a': True, 'b': True}
    """
    if refit_every is not None:
        check_count(refit_every, "refit_every")
    series, failures = split_series(forecaster, df, id_col, time_col, target_col)
    before = {}
    for name, seen in series.items():
        try:
            before[name] = seen.take(rows_before(forecaster, seen, horizon, n_origins))
        except ValueError as error:
            failures[name] = str(error)
    learned = _n_stages(share) * len(before)
    total = learned + len(before)
    model: CompositeGPForecaster = clone(forecaster).set_params(horizon=horizon)
    models, _ = _fit(model, before, failures, share, n_jobs, lambda done, _: report(done, total))
    work = (
        delayed(_attempt)(backtest, model, series[name], horizon, n_origins, refit_every=refit_every, fitted=True)
        for name, model in models.items()
    )
    found: dict[Any, Backtest] = {}
    for name, (result, reason) in _in_order(models, work, n_jobs, report, learned, total):
        if reason is None:
            found[name] = result
        else:
            failures[name] = reason
    if not found:
        raise ValueError(f"no series could be scored. The first: {next(iter(failures.values()), 'there is none')}")
    scores = pd.concat({name: one.scores for name, one in found.items()}, names=[id_col, "method"])
    tables = [one.forecasts.rename_axis(time_col).reset_index() for one in found.values()]
    for name, table in zip(found, tables, strict=True):
        table.insert(0, id_col, name)
    return ManyBacktests(scores, pd.concat(tables, ignore_index=True), failures)


def split_series(
    forecaster: CompositeGPForecaster, df: pd.DataFrame, id_col: str, time_col: str, target_col: str
) -> tuple[dict[Any, Observed], dict[Any, str]]:
    """The series of a long table by their names, and what is wrong with those that cannot be read."""
    for name in (id_col, time_col, target_col):
        if name not in df.columns:
            raise ValueError(f"df must have the column {name!r}; found {list(df.columns)}.")
    columns = [name for name in df.columns if name not in (id_col, time_col, target_col)]
    series, failures = {}, {}
    for name, part in df.groupby(id_col, sort=False, observed=True):
        index = pd.DatetimeIndex(part[time_col])
        extra = part[columns].set_axis(index) if columns else None
        values = pd.Series(part[target_col].to_numpy(), index=index)
        try:
            series[name] = observe(values, extra, duplicates=forecaster.duplicates, zone=forecaster.timezone)
        except ValueError as error:
            failures[name] = str(error)
    if not series and not failures:
        raise ValueError(f"df has no series: column {id_col!r} is empty.")
    return series, failures


def _fit(
    forecaster: CompositeGPForecaster,
    series: dict[Any, Observed],
    failures: dict[Any, str],
    share: bool,
    n_jobs: int | None,
    report: Report,
) -> tuple[dict[Any, CompositeGPForecaster], int]:
    """Models of all series, and the number of those that took something from others; `failures` gets the rest."""
    single = clone(forecaster).set_params(n_jobs=1)
    total = _n_stages(share) * len(series)
    work = (delayed(_attempt)(clone(single).fit, seen) for seen in series.values())
    models: dict[Any, CompositeGPForecaster] = {}
    for name, (model, error) in _in_order(series, work, n_jobs, report, 0, total):
        if error is None:
            models[name] = model
        else:
            failures[name] = error
    if not share:
        return models, 0
    changed = _shared_thetas(models, series)
    work = (delayed(_attempt)(_shared, models[name], series[name], theta) for name, theta in changed.items())
    n_shared = 0
    for name, (model, error) in _in_order(changed, work, n_jobs, report, total - len(changed), total):
        if error is None and model is not None:  # otherwise it keeps its own
            models[name], n_shared = model, n_shared + 1
    report(total, total)
    return models, n_shared


def _n_stages(share: bool) -> int:
    """How often a series counts until its model is there: when it is fitted, and when it was offered what is shared."""
    return 2 if share else 1


def _shared(model: CompositeGPForecaster, seen: Observed, theta: Floats) -> CompositeGPForecaster | None:
    """The model with hyper-parameters that it shares; None if past forecasts speak for its own.

    Its own are better for the values that they were learned from, by half a nat for each by chance; by Akaike's
    criterion they have to be better by one.
    """
    own = model.score_
    changed = copy.copy(model).refit(seen, theta=theta)
    return changed if changed.score_ > own - len(theta) / len(seen) else None


def _shared_thetas(models: dict[Any, CompositeGPForecaster], series: dict[Any, Observed]) -> dict[Any, Floats]:
    """Common hyper-parameters for the series that are short."""
    alike: defaultdict[Hashable, list[Any]] = defaultdict(list)
    for name, model in models.items():
        alike[_kind(model)].append(name)
    found: dict[Any, Floats] = {}
    for names in alike.values():
        short = [len(models[name].kernel_.theta) > _WORTH * len(series[name]) for name in names]
        if len(names) < _FEWEST_TO_SHARE or not any(short):
            continue
        thetas = common_thetas([_member(models[name]) for name in names])
        found |= {name: theta for name, theta, is_short in zip(names, thetas, short, strict=True) if is_short}
    return found


def _member(model: CompositeGPForecaster) -> Member:
    series = model._fitted()
    return Member(model.kernel_, max(float(np.std(series.targets[series.observed])), 1e-150), model.windows_)


def _kind(model: CompositeGPForecaster) -> Hashable:
    """What models have in common that can learn from each other: parts, scale and time step."""
    parts = [(name, tuple(one.name for one in part.hyperparameters)) for name, part in model.parts_.items()]
    smoothness = [str(value) for name, value in model.kernel_.get_params().items() if name.endswith("nu")]
    timeline = model.timeline_
    return str(parts), str(smoothness), model.target_transform_, timeline.step, timeline.unit, timeline.months


def _attempt(task: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, str | None]:
    """A result, or what is wrong with the data or the numerics."""
    try:
        return task(*arguments, **options), None
    except ValueError as error:  # a LinAlgError is one too
        return None, str(error)


def _in_order(
    names: Iterable[Any], work: Iterable[Any], n_jobs: int | None, report: Report, done: int, total: int
) -> Iterator[tuple[Any, tuple[Any, str | None]]]:
    """Names with results, as they are ready."""
    results = Parallel(n_jobs=n_jobs, return_as="generator")(work)
    for number, (name, result) in enumerate(zip(names, results, strict=True)):
        yield name, result
        report(done + number + 1, total)
