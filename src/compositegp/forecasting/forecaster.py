"""The forecaster: a series with time stamps in, the next values with error bars out."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils._param_validation import Interval, StrOptions

from compositegp.backend import Booleans, Floats, blas_threads_for
from compositegp.forecasting.clock import YEARS_AHEAD, dates_of, holidays_of
from compositegp.forecasting.descriptions import describe
from compositegp.forecasting.effects import KERNEL_PARTS, Effect, Effects, column_labels
from compositegp.forecasting.fitted_series import FittedSeries
from compositegp.forecasting.forecast_parts import ForecastParts, find_parts
from compositegp.forecasting.grid import Grid, Rhythm, column_histories, on_grid
from compositegp.forecasting.local_times import check_zone
from compositegp.forecasting.memory import Memory
from compositegp.forecasting.model_choice import choose_model, clock_effects, column_effects, history_effects
from compositegp.forecasting.observations import DUPLICATES, Observed, observe
from compositegp.forecasting.seasons import CANDIDATES, Season, given_seasons
from compositegp.forecasting.series_learning import (
    Candidate,
    Learned,
    Task,
    averaged_over_kernels,
    begin_recursion,
    learn_candidate,
    members,
    memory_windows,
)
from compositegp.forecasting.stored_series import from_values, to_values
from compositegp.forecasting.target_scales import TARGET_SCALES, scale_in_words, scale_name, takes
from compositegp.forecasting.timeline import Horizon, Timeline
from compositegp.means import Estimated
from compositegp.predictive import PredictiveDistribution, TargetTransform
from compositegp.storage import Fields, damaged, read_archive, write_archive
from compositegp.validation import are_finite

FORMAT, VERSION = "compositegp forecaster", 4
_OF_THE_MACHINE = ("n_jobs",)  # parameters that are not part of a model
_NEWER = {"theta_uncertainty": False}  # parameters that earlier files lack, and what they stood for
_LONGEST_TEXT = 10_000  # characters of a text that is stored with a model
_FEWEST_VALUES = 8  # that a model is learned from


class CompositeGPForecaster(BaseEstimator):  # type: ignore[misc]
    """Forecasts of a time series with error bars.

    A series is a sum of effects (level and trend, profiles of the day for each type of day, the time of year, smooth
    functions of further columns that differ by the hour) and of a Gaussian process of the time difference (short and
    medium memory, patterns that drift, noise). Everything is learned from the task itself: each step of a horizon given
    the values before it, at origins in the past. Parts that do not improve such forecasts are left out.

    Parameters
    ----------
    target_transform : "auto", None, "sqrt", "fourth_root" or "log"
        The scale on which the series is modeled; ``auto`` takes the one whose past forecasts score best: as it is, a
        root where no value is negative, or the logarithm where all are positive. With a root or "log" forecasts are
        never negative.
    horizon : int, str or Timedelta, optional
        The horizon to learn for; by default a day, for daily data a week, for monthly data a year.
    seasons : "auto" or list
        "day", "week", "year" or durations such as "12h"; ``auto`` takes those that improve forecasts.
    timezone : str, optional
        Zone of the clock that the series follows; by default that of its time stamps. Time stamps without a zone are
        times of this clock; where it goes back, the first of two equal ones is the first instant.
    holidays : str or list of dates, optional
        A country such as "SE" or "AU-VIC" (needs the package holidays), or dates.
    history : int
        Number of latest steps to learn from.
    n_neighbors : int
        Number of known values that a forecast is made from: those of the last two weeks, with fewer and fewer of the
        older ones where these are more.
    duplicates : {"error", "mean", "last"}
        What to do with time stamps that occur more than once.
    search : bool
        Try models with other parts, and keep what improves past forecasts. Without it, all parts are taken as they are,
        which is about ten times faster.
    n_jobs : int, optional
        Number of processes, as in joblib.
    theta_uncertainty : bool
        Whether forecasts of a series of up to 672 steps are averaged over the kernels that it allows: with seasons or
        without, with a short memory or without, and with other hyper-parameters, each as likely as the series makes it.
        ``kernel_`` is the likeliest. Without it that one makes the forecasts, as with longer series, and with short
        ones that share the hyper-parameters of many (`fit_many`).

    Attributes
    ----------
    score_ : float
        Mean log density of a value in forecasts of the later part of the training data, larger is better; not kept in
        files.
    windows_ : list of Windows
        The latest windows of the series less its effects, which tell about the kernel; not kept in files.

    Examples
    --------
    >>> index = pd.date_range("2024-01-01", periods=24 * 40, freq="h", tz="Europe/Stockholm")
    >>> hours = np.arange(len(index))
    >>> noise = np.random.default_rng(0).normal(size=len(index))
    >>> series = pd.Series(5 + np.sin(2 * np.pi * hours / 24) + 0.1 * noise, index=index)
    >>> forecast = CompositeGPForecaster(None, search=False).fit(series).predict("3h", quantiles=[0.05, 0.95])
    >>> list(forecast.columns), str(forecast.index[0])
    (['mean', 'std', 'q0.05', 'q0.95'], '2024-02-10 00:00:00+01:00')
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "target_transform": [StrOptions({"auto", "fourth_root", "log", "sqrt"}), None],
        "horizon": "no_validation",
        "seasons": [StrOptions({"auto"}), list, tuple],
        "timezone": [str, None],
        "holidays": "no_validation",
        "history": [Interval(Integral, 1, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "duplicates": [StrOptions(set(DUPLICATES))],
        "search": ["boolean"],
        "n_jobs": [Integral, None],
        "theta_uncertainty": ["boolean"],
    }

    def __init__(
        self,
        target_transform: str | None = "auto",
        *,
        horizon: Horizon | None = None,
        seasons: str | Sequence[str | pd.Timedelta] = "auto",
        timezone: str | None = None,
        holidays: str | Iterable[Any] | None = None,
        history: int = 100_000,
        n_neighbors: int = 672,
        duplicates: str = "error",
        search: bool = True,
        n_jobs: int | None = None,
        theta_uncertainty: bool = True,
    ) -> None:
        self.target_transform = target_transform
        self.horizon = horizon
        self.seasons = seasons
        self.timezone = timezone
        self.holidays = holidays
        self.history = history
        self.n_neighbors = n_neighbors
        self.duplicates = duplicates
        self.search = search
        self.n_jobs = n_jobs
        self.theta_uncertainty = theta_uncertainty

    @blas_threads_for(0)
    def fit(self, y: pd.Series | pd.DataFrame | Observed, X: pd.DataFrame | None = None) -> "CompositeGPForecaster":
        """Learn from a series.

        Parameters
        ----------
        y : pandas Series with a DatetimeIndex, DataFrame of one column, or Observed
            NaN is "not observed". The same instant is never counted twice where the clocks change.
        X : pandas DataFrame with the same index, optional
            Further columns whose future is known. They may be missing in part.

        Returns
        -------
        self
        """
        self._validate_params()
        seen = observe(y, X, duplicates=self.duplicates, zone=self.timezone)
        timeline = self.timeline_of(seen)
        task, notes = self._task(seen, timeline)
        values = task.grid.values[np.isfinite(task.grid.values)]
        if len(values) < _FEWEST_VALUES:
            raise ValueError(
                f"the series has {len(values)} observed value(s) in its latest {self.history} steps, too few to learn "
                f"from. Give at least {_FEWEST_VALUES}."
            )
        if not np.ptp(values):
            raise ValueError("the series is constant: there is nothing to forecast. Check the target column.")
        labels = self._labels(task, seen.columns)
        effects, fixed = self._effects(task, timeline, labels)
        learned, tried = choose_model(
            task,
            self._transforms(values),
            effects,
            history_effects(task.grid, task.rhythm, labels),
            fixed=fixed,
            search=self.search,
            averaged=self.theta_uncertainty,
            n_jobs=self.n_jobs,
        )
        self._take(seen, timeline, task, learned, seen.notes + notes + tried)
        return self

    @blas_threads_for(0)
    def refit(
        self, y: pd.Series | Observed, X: pd.DataFrame | None = None, *, theta: Floats | None = None
    ) -> "CompositeGPForecaster":
        """Learn coefficients and scale of errors anew, with the parts that `fit` chose and a kernel that is given.

        Nothing is chosen and the kernel is not learned, so that it is much faster than `fit`. Where forecasts are
        averaged over kernels, they go on being so, with the same weights, unless `theta` is given.

        Parameters
        ----------
        y, X
            As for `fit`.
        theta : array of shape (p,), optional
            Logarithms of the hyper-parameters, as in ``kernel_.theta``; by default those of the model.

        Returns
        -------
        self
        """
        before = self._fitted()
        self._validate_params()
        kernel = before.kernel if theta is None else before.kernel.clone_with_theta(np.asarray(theta, dtype=float))
        seen = observe(y, X, duplicates=self.duplicates, zone=self.timezone)
        if seen.columns != before.columns:
            raise ValueError(
                f"X must have the columns {before.columns} that the model was fitted with; found {seen.columns}."
            )
        timeline = self.timeline_of(seen)
        task, notes = self._task(seen, timeline)
        labels = self._labels(task, seen.columns)
        offered = self._effects(task, timeline, labels)[0]
        for more in history_effects(task.grid, task.rhythm, labels).values():
            offered = offered + more
        kinds = {one.name: one.kind for one in before.effects.effects}
        kept = [replace(one, kind=kinds[one.name]) for one in offered if one.name in kinds]
        candidate = Candidate(before.transform, kept, Memory())
        learned = learn_candidate(task, candidate, kernel, rounds=1, learn_kernel=False)
        learned = replace(learned, names=before.names)
        if theta is None:
            learned = averaged_over_kernels(task, learned, before.members)
        self._take(seen, timeline, task, learned, seen.notes + notes)
        return self

    def _take(self, seen: Observed, timeline: Timeline, task: Task, learned: Learned, notes: list[str]) -> None:
        """Keep what was learned, and the latest values."""
        empty = [
            f"column {name} has no value in what is learned from, and is left out"
            for name, column in zip(seen.columns, task.grid.columns.T, strict=False)
            if not np.isfinite(column).any()
        ]
        self.score_, self.windows_ = learned.score, memory_windows(task, learned)
        kept = slice(-2 * int(task.geometry.lags.max()), None)
        grid = task.grid
        self._series = FittedSeries(
            timeline,
            task.block,
            learned.candidate.transform,
            learned.kernel,
            learned.names,
            begin_recursion(task, learned),
            replace(task.effects, effects=learned.candidate.effects),
            learned.center,
            learned.information,
            learned.scale,
            learned.recent,
            int(task.geometry.lags.max()),
            self.n_neighbors,
            grid.first + len(grid.values),
            Grid(grid.first + len(grid.values) - len(grid.values[kept]), grid.values[kept], grid.columns[kept]),
            seen.columns,
            notes + empty,
            None if learned.whole is None else learned.whole.values[kept],
            members(task, learned),
        )

    @blas_threads_for(0)
    def update(
        self,
        y: pd.Series | pd.DataFrame | Observed,
        X: pd.DataFrame | None = None,
        *,
        late: str = "error",
        max_gap: pd.Timedelta | None = None,
        learn: bool = False,
    ) -> "CompositeGPForecaster":
        """Take in new observations.

        Each complete horizon of them teaches the coefficients of the effects and the scale of errors. The oldest
        observations are dropped. It does not matter in how many parts observations arrive.

        Parameters
        ----------
        y, X
            As for `fit`.
        late : {"error", "skip"}
            What to do with observations that are not newer than the latest one of the model.
        max_gap : pandas Timedelta, optional
            How far an observation may be ahead of the one before it: a wrong year would end the series. 30 days by
            default, or 1000 steps if they are longer.
        learn : bool
            Each complete segment of seven horizons (one, for a series that is forecast from all its past) also teaches
            the kernel's hyper-parameters, by the paper's running average: what `fit` knew and what each segment tells
            are weighted by their Fisher information. Without it they stay as they are. Horizons that are taken in
            without it teach them nothing later either. Forecasts that are averaged over kernels (`theta_uncertainty`)
            are made by the one that learns from then on.

        Returns
        -------
        self
        """
        series = self._fitted()
        self._validate_params()
        if not isinstance(learn, bool | np.bool_):
            raise ValueError(f"learn must be True or False; found {learn!r}.")
        if late not in ("error", "skip"):
            raise ValueError(f"late must be error or skip; found {late!r}.")
        seen = observe(y, X, duplicates=self.duplicates, gaps=False, zone=self.timezone)
        series.timeline.check_zone(seen.zone is not None)
        if seen.columns != series.columns:
            raise ValueError(
                f"X must have the columns {series.columns} that the model was fitted with; found {seen.columns}."
            )
        places = np.round(series.timeline.places(seen.stamps))
        new = series.is_new(places)
        if not new.all() and late == "error":
            raise ValueError(
                f"{int((~new).sum())} observation(s) are not newer than the latest known, {self.last_}. Leave them "
                "out, or use late='skip'."
            )
        if new.any():
            _check_gaps(seen.stamps[new], places[new], series, max_gap)
            later, _ = on_grid(seen.take(new), series.timeline, int(places[-1] - series.last))  # all of them
            self._check_scale(series, later.values)
            first = int(series.last) + 1
            size = later.first + len(later.values) - first
            values = np.full(size, np.nan)
            values[later.first - first :] = later.values
            columns = np.full((size, len(series.columns)), np.nan)
            columns[later.first - first :] = later.columns
            series = self._with_holidays(series, seen.stamps[new][-1])
            points = series.points_at(first + np.arange(float(size)), columns)
            self._series = series.with_observations(Grid(first, values, points[:, 1:]), learn=bool(learn))
        return self

    def predict(
        self,
        horizon: Horizon,
        quantiles: Sequence[float] = (0.025, 0.25, 0.5, 0.75, 0.975),
        X: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """Forecast the steps after the latest observation.

        Parameters
        ----------
        horizon : int, str or Timedelta
            Steps, or a duration such as "24h".
        quantiles : sequence of floats between 0 and 1
        X : pandas DataFrame, optional
            The further columns in those steps, if the model was fitted with any.

        Returns
        -------
        pandas DataFrame
            Columns ``mean``, ``std`` and ``q…`` of the values that will be observed, indexed by their times.
        """
        series = self._fitted()
        levels = [float(level) for level in quantiles]
        if not all(0 < level < 1 for level in levels):
            raise ValueError(f"quantiles must be numbers between 0 and 1; found {quantiles!r}.")
        times = series.timeline.stamps(series.next_places(horizon))
        found = self.predict_distribution(horizon, X, joint=False)  # in memory that is linear in the horizon
        table = {"mean": found.mean, "std": found.std} | {f"q{level:g}": found.quantile(level) for level in levels}
        return pd.DataFrame(table, index=times)

    @blas_threads_for(0)
    def predict_distribution(
        self,
        horizon: Horizon | pd.DatetimeIndex,
        X: pd.DataFrame | None = None,
        *,
        joint: bool = True,
        latent: bool = False,
    ) -> PredictiveDistribution:
        """Forecast as distributions: mean, standard deviation, quantiles, intervals, densities, draws, scores.

        Parameters
        ----------
        horizon : int, str, Timedelta or DatetimeIndex
            Steps after the latest observation, a duration such as "24h", or the times themselves.
        X : pandas DataFrame, optional
            The further columns at those times, if the model was fitted with any.
        joint : bool
            Keep the covariance of all the times, so that draws are joint. Without it memory grows with the horizon
            only, not with its square.
        latent : bool
            Forecast the series without noise rather than new observations.

        Returns
        -------
        PredictiveDistribution
        """
        series = self._fitted()
        if isinstance(horizon, pd.DatetimeIndex):
            places = np.round(series.timeline.places(self._instants(series, horizon)))
            if not series.is_new(places).all():
                raise ValueError(f"horizon must have times after the latest observation, {self.last_}.")
        else:
            places = series.next_places(horizon)
        points = series.points_at(places, self._extra(series, X, places))
        series = self._with_holidays(series, series.timeline.stamps([places.max()])[0], 0)
        return series.forecast(points, joint=joint, latent=latent)

    @blas_threads_for(0)
    def parts(self, horizon: Horizon, X: pd.DataFrame | None = None) -> ForecastParts:
        """What each effect (level, trend, seasons, further columns) and each kind of memory contributes to a forecast.

        The means add up to that of the forecast on the scale of the model: with a `target_transform` it is that of the
        transformed series, so that parts of a logarithm are factors.

        Parameters
        ----------
        horizon : int, str or Timedelta
            Steps, or a duration such as "24h".
        X : pandas DataFrame, optional
            The further columns in those steps, if the model was fitted with any.

        Returns
        -------
        ForecastParts
            ``parts.table`` is a data frame; ``parts.covariance`` has the covariances of the parts at each time.
        """
        series = self._fitted()
        places = series.next_places(horizon)
        points = series.points_at(places, self._extra(series, X, places))
        return find_parts(self._with_holidays(series, series.timeline.stamps([places.max()])[0], 0), points)

    def describe(self) -> list[str]:
        """What was learned, in words: one line for each effect and for each part of the kernel."""
        series = self._fitted()
        return describe(series)

    @property
    def kernel_(self) -> Kernel:
        """The learned kernel of the time in steps: a sum of `parts_`."""
        return self._fitted().kernel

    @property
    def parts_(self) -> dict[str, Kernel]:
        """The parts of the kernel by their names: short memory, day pattern, …, noise."""
        return self._fitted().parts

    @property
    def effects_(self) -> dict[str, slice]:
        """The effects by their names: which coefficients of `mean_` belong to each."""
        return self._fitted().effects.columns

    @property
    def mean_(self) -> Estimated:
        """The effects, a mean with estimated coefficients, as in `posterior`."""
        return self._fitted().mean

    @property
    def target_transform_(self) -> str | None:
        """The scale on which the series is modeled: None, "sqrt", "fourth_root" or "log"."""
        return scale_name(self._fitted().transform)

    @property
    def theta_standard_errors_(self) -> Floats:
        """Relative standard errors of the kernel's hyper-parameters, in the order of ``kernel_.theta``."""
        return self._fitted().recursion.standard_errors

    @property
    def seasons_(self) -> list[Season]:
        """The seasons of the model, shortest first."""
        series = self._fitted()
        steps = {name: length / series.timeline.mean_step for name, length in CANDIDATES.items()}
        found = []
        for effect in series.effects.effects:
            if effect.season is not None:
                period = float(effect.numbers[0]) if effect.season == "cycle" else steps[effect.season]
                found.append(Season(effect.name, period))
        return sorted(found, key=lambda season: season.period)

    @property
    def timeline_(self) -> Timeline:
        """How the model counts time: its origin, time step and time zone."""
        return self._fitted().timeline

    @property
    def observations_(self) -> pd.DataFrame:
        """The latest observations, which a forecast is made from: columns ``value`` and the further ones."""
        series = self._fitted()
        rows, k = series.observed, len(series.columns)
        index = series.timeline.stamps(series.grid.first + rows.astype(np.float64))
        table = pd.DataFrame(series.grid.columns[rows][:, :k], columns=series.columns, index=index)
        table.insert(0, "value", series.grid.values[rows], allow_duplicates=True)
        return table

    @property
    def notes_(self) -> list[str]:
        """What a user should know about the series: missing values, gaps, duplicates, what was tried."""
        series = self._fitted()
        return series.notes + series.outliers_in_words()

    @property
    def last_(self) -> pd.Timestamp:
        """Time of the latest observation."""
        series = self._fitted()
        return series.timeline.stamps([series.last])[0]

    def knows(self, times: pd.DatetimeIndex) -> Booleans:
        """Whether the model has taken in a value at each of some times; True for those before what it still keeps.

        Parameters
        ----------
        times : DatetimeIndex of shape (n,)

        Returns
        -------
        boolean array of shape (n,)
        """
        series = self._fitted()
        rows = np.round(series.timeline.places(self._instants(series, times))).astype(np.int64) - series.grid.first
        inside = (rows >= 0) & (rows < len(series.grid.values))
        known = np.isfinite(series.grid.values[np.where(inside, rows, 0)])
        return np.asarray(np.where(inside, known, rows < 0))

    def save(self, path: str | Path, **more: Any) -> None:
        """Write the fitted forecaster to a file, which is replaced as a whole or not at all and holds no code.

        Parameters
        ----------
        path : str or Path
        **more
            Numbers or text to be stored with it, which `load_with` returns.
        """
        given = {name: value for name, value in self.get_params(deep=False).items() if name not in _OF_THE_MACHINE}
        given["horizon"] = None if self.horizon is None else str(self.horizon)
        if not isinstance(self.seasons, str):
            given["seasons"] = [str(season) for season in self.seasons]
        if self.holidays is not None and not isinstance(self.holidays, str):
            given["holidays"] = [str(date) for date in dates_of(self.holidays)]
        write_archive(path, FORMAT, VERSION, {"parameters": given, **to_values(self._fitted()), "more": more})

    @classmethod
    def load(cls, path: str | Path) -> "CompositeGPForecaster":
        """Read a forecaster that `save` wrote; no code of the file is run."""
        return cls.load_with(path)[0]

    @classmethod
    def load_with(cls, path: str | Path) -> tuple["CompositeGPForecaster", dict[str, Any]]:
        """Read a forecaster, and what was stored with it.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        CompositeGPForecaster
        dict
            The further keywords of `save`.
        """
        content = read_archive(path, FORMAT, VERSION)
        try:
            parts = Fields(content, ["parameters", "timeline", "series", "more"])
            names = [name for name in cls().get_params(deep=False) if name not in _OF_THE_MACHINE]
            given = Fields(parts["parameters"], [name for name in names if name not in _NEWER], list(_NEWER))
            values: dict[str, Any] = {name: given[name] for name in names}
            model = cls(**values | {name: old for name, old in _NEWER.items() if values[name] is None})
            model._check_stored_parameters()
            model._series = from_values(parts["timeline"], parts["series"])
            return model, _plain_values(parts.dictionary("more"))
        except Exception as error:  # what is in the file may be none of our values
            raise damaged(path, error) from error

    def _check_stored_parameters(self) -> None:
        self._validate_params()
        for name in ("seasons", "holidays"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str) and not all(isinstance(one, str) for one in value):
                raise ValueError(f"{name} must be a text or a list of texts")
        if self.horizon is not None and not isinstance(self.horizon, str):
            raise ValueError("horizon must be a text")

    def takes(self, values: Floats) -> bool:
        """Whether the scale of the model has all of some values: a logarithm has no zero, and a root nothing below it.

        Parameters
        ----------
        values : array of shape (n,)
            NaN is "not observed".

        Returns
        -------
        bool
        """
        values = np.asarray(values, dtype=np.float64)
        try:
            self._fitted().transform.forward(values[np.isfinite(values)])
        except ValueError:
            return False
        return True

    def timeline_of(self, seen: Observed) -> Timeline:
        """How the time of a series is counted, by the zone of its time stamps or `timezone`."""
        if self.timezone is None:
            return seen.timeline
        check_zone(self.timezone)
        return Timeline.of(seen.stamps, self.timezone)

    def _task(self, seen: Observed, timeline: Timeline) -> tuple[Task, list[str]]:
        """What is to be learned: the series on a grid, its clock, its horizon and its patterns."""
        rhythm = Rhythm.of(timeline)
        block = rhythm.block if self.horizon is None else timeline.steps(self.horizon)
        grid, notes = on_grid(seen, timeline, self.history)
        block = min(block, max(len(grid.values) // 4, 1))
        histories = [column_histories(column, rhythm.per_day) for column in grid.columns.T]
        grid = Grid(grid.first, grid.values, np.column_stack([grid.columns, *histories]))
        if self.holidays is None:
            dates = dates_of([])
        elif isinstance(self.holidays, str):
            dates = holidays_of(self.holidays, seen.stamps[0], seen.stamps[-1])
        else:
            dates = dates_of(self.holidays)
        patterns = rhythm.patterns
        if not isinstance(self.seasons, str):
            given = given_seasons(self.seasons, timeline.mean_step)
            patterns = {one.name: one.period for one in given if one.name != "year" or one.period < rhythm.reach}
        longest = len(grid.values) / 3
        patterns = {name: period for name, period in patterns.items() if period <= longest}
        return Task(grid, Effects([], timeline, dates), rhythm, block, patterns, self.n_neighbors), notes

    def _labels(self, task: Task, columns: list[str]) -> list[str]:
        """Names of the effects of further columns, which are none of a season or of a part of the kernel."""
        seasons = [] if isinstance(self.seasons, str) else list(map(str, self.seasons))
        patterns = [f"{name} pattern" for name in (*CANDIDATES, *task.patterns)]
        return column_labels(columns, [*seasons, *patterns, *KERNEL_PARTS])

    def _effects(self, task: Task, timeline: Timeline, columns: list[str]) -> tuple[list[Effect], list[str]]:
        """Effects to begin with, and the names of those that stay."""
        if isinstance(self.seasons, str):  # "auto"
            return clock_effects(task.grid, task.rhythm) + column_effects(task.grid, task.rhythm, columns), []
        given = given_seasons(self.seasons, timeline.mean_step)
        effects = clock_effects(task.grid, task.rhythm, [season.name for season in given])
        for season in given:
            if season.name not in ("day", "week", "year"):
                effects.append(Effect(season.name, "cycle", numbers=np.array([season.period])))
        return effects + column_effects(task.grid, task.rhythm, columns), [season.name for season in given]

    def _transforms(self, values: Floats) -> list[TargetTransform]:
        """The scales to try."""
        if self.target_transform != "auto":
            chosen = TARGET_SCALES[self.target_transform]
            chosen.forward(values)  # refuses values that it cannot take
            return [chosen]
        return [scale for scale in TARGET_SCALES.values() if takes(scale, values)]

    def _with_holidays(self, series: FittedSeries, last: pd.Timestamp, ahead: int = YEARS_AHEAD) -> FittedSeries:
        """The series with the holidays of its country until some years after a time; those that it has stay."""
        known = series.effects.holidays
        if not isinstance(self.holidays, str) or not len(known):
            return series
        latest = pd.Timestamp(known[-2:][0]).year  # the last one may be observed in the year after its own
        if last.year + ahead <= latest:
            return series
        try:
            found = holidays_of(self.holidays, pd.Timestamp(year=latest + 2, month=1, day=1), last)
        except ValueError as error:  # the package that the model was made with is not here
            warnings.warn(f"holidays after {latest} are not known: {error}", UserWarning, stacklevel=3)
            return series
        later = found[found > known[-1]]
        return replace(series, effects=replace(series.effects, holidays=np.concatenate([known, later])))

    def _check_scale(self, series: FittedSeries, values: Floats) -> None:
        """Refuse values that the scale of the model does not have."""
        try:
            series.transform.forward(values[np.isfinite(values)])
        except ValueError as error:
            if self.target_transform != "auto":
                raise
            scale = scale_in_words(scale_name(series.transform))
            raise ValueError(
                f"{error} The model chose the {scale} when there were no such values: fit it anew with them, or with "
                "another target_transform."
            ) from error

    def _instants(self, series: FittedSeries, index: pd.DatetimeIndex) -> pd.DatetimeIndex:
        """Time stamps in UTC; those without a zone are times of the clock that `timezone` names."""
        return series.timeline.instants(index, local=self.timezone is not None)

    def _extra(self, series: FittedSeries, X: pd.DataFrame | None, places: Floats) -> Floats | None:
        """The further columns at some times in steps (n,), found by their own times if they have any: shape (n, k)."""
        if not series.columns:
            return None
        by_time = isinstance(X, pd.DataFrame) and isinstance(X.index, pd.DatetimeIndex)
        if (
            not isinstance(X, pd.DataFrame)
            or list(map(str, X.columns)) != series.columns
            or (len(X) != len(places) and not by_time)
        ):
            raise ValueError(
                f"X must be a DataFrame of the columns {series.columns} at the {len(places)} steps of the horizon; "
                f"found {'nothing' if X is None else getattr(X, 'shape', X)}."
            )
        values = np.asarray(X, dtype=np.float64)
        if not by_time:
            return values
        rows = series.timeline.rows_at(places, self._instants(series, X.index))
        if (rows < 0).any():
            missing = series.timeline.stamps(places[rows < 0][:1])[0]
            raise ValueError(f"X has no row for {missing}, which is in the horizon.")
        return np.asarray(values[rows])

    def _fitted(self) -> FittedSeries:
        if not hasattr(self, "_series"):
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet. Call fit first.")
        return self._series

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_series")


def _plain_values(values: dict[str, Any]) -> dict[str, Any]:
    """Values that are stored with a model: numbers, text, and lists of texts."""
    for name, value in values.items():
        texts = value if isinstance(value, list) else [value] if isinstance(value, str) else []
        plain = value is None or isinstance(value, bool) or are_finite(value) or isinstance(value, str | list)
        if not plain or any(not isinstance(text, str) or len(text) > _LONGEST_TEXT for text in texts):
            raise ValueError(f"{name!r:.60} is neither a number nor text; found {type(value).__name__}")
    return values


def _check_gaps(
    stamps: pd.DatetimeIndex, places: Floats, series: FittedSeries, max_gap: pd.Timedelta | None
) -> None:
    """Check that new observations follow each other; a ValueError names one that is too far ahead."""
    timeline = series.timeline
    allowed = timeline.longest_gap if max_gap is None else max_gap
    steps = np.diff(places, prepend=float(series.last))
    far = int(np.argmax(steps))
    if steps[far] > allowed / timeline.step + 1:
        raise ValueError(
            f"y has an observation at {stamps[far].tz_convert(timeline.zone)}, {steps[far]:.0f} steps after the one "
            f"before it. Leave it out if its time is wrong, or give max_gap, which is {allowed}, to take it in."
        )
