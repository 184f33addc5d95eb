"""The forecaster: a series with time stamps in, the next values with error bars out."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.linalg import LinAlgError
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats
from compositegp.composite import Composite, segment
from compositegp.estimators import Predictive
from compositegp.forecasting.seasons import Season, find_seasons, given_seasons
from compositegp.forecasting.series_model import describe, kernel_of, mean_of
from compositegp.forecasting.timeline import DUPLICATES, Observed, Timeline, observe, zone_of
from compositegp.kernels import diagonal
from compositegp.learning import learn
from compositegp.means import Estimated
from compositegp.posteriors import posterior
from compositegp.predictive import AsTheyAre, Log
from compositegp.storage import read_archive, unreadable, write_archive
from compositegp.validation import check_count

FORMAT, VERSION = "compositegp forecaster", 1
_SEGMENT = 512


@dataclass(frozen=True, eq=False)
class Known:
    """What a fitted forecaster knows; never changed, only replaced.

    Attributes
    ----------
    timeline : Timeline
    seasons : list of Season
    kernel : scikit-learn kernel
    mean : Estimated
    errors : array of shape (p,)
        Relative standard errors of the kernel's hyper-parameters.
    X : array of shape (n, 1 + k)
        Times of the latest observations, in steps, and further columns.
    y : array of shape (n,)
        Their targets, on the model's scale.
    columns : list of str
        Names of the further columns.
    notes : list of str
    """

    timeline: Timeline
    seasons: list[Season]
    kernel: Kernel
    mean: Estimated
    errors: Floats
    X: Floats
    y: Floats
    columns: list[str]
    notes: list[str]

    @property
    def last(self) -> float:
        """Time of the latest observation, in steps."""
        return float(self.X[-1, 0])


class CompositeGPForecaster(BaseEstimator):  # type: ignore[misc]
    """Forecasts of a time series with error bars.

    What repeats every day or week is in the mean, as a profile with a level for each step; what is left is correlated
    over short and medium times, with patterns that drift. All of it is learned from segments of the series. A forecast
    is that of an exact Gaussian process on the latest observations, around a profile that all of them have told.

    Parameters
    ----------
    transform : None or "log"
        Model the logarithm: forecasts are then log-normal and never negative.
    seasons : "auto" or list
        "day", "week", "year" or durations such as "12h"; ``auto`` takes those that the data show.
    history : int
        Latest observations to learn from.
    keep : int
        Latest observations that a forecast is made from; older ones are dropped.
    duplicates : {"error", "mean", "last"}
        What to do with time stamps that occur more than once.
    tolerance : float
        Relative standard error of the hyper-parameters at which no more segments are read.
    n_jobs : int, optional
        Processes to use, as in joblib.
    progress : bool
        Show a progress bar of learning on a terminal.

    Examples
    --------
    >>> index = pd.date_range("2024-01-01", periods=24 * 40, freq="h", tz="Europe/Stockholm")
    >>> hours = np.arange(len(index))
    >>> noise = np.random.default_rng(0).normal(size=len(index))
    >>> series = pd.Series(5 + np.sin(2 * np.pi * hours / 24) + 0.1 * noise, index=index)
    >>> forecast = CompositeGPForecaster().fit(series).predict("3h", quantiles=[0.05, 0.95])
    >>> list(forecast.columns), str(forecast.index[0])
    (['mean', 'std', 'q0.05', 'q0.95'], '2024-02-10 00:00:00+01:00')
    """

    def __init__(
        self,
        transform: str | None = None,
        *,
        seasons: Any = "auto",
        history: int = 20_000,
        keep: int = 1024,
        duplicates: str = "error",
        tolerance: float = 0.1,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> None:
        self.transform = transform
        self.seasons = seasons
        self.history = history
        self.keep = keep
        self.duplicates = duplicates
        self.tolerance = tolerance
        self.n_jobs = n_jobs
        self.progress = progress

    def fit(self, y: Any, X: Any = None) -> "CompositeGPForecaster":
        """Learn from a series.

        Parameters
        ----------
        y : pandas Series with a DatetimeIndex
            Time zones and daylight saving are handled by counting in UTC. NaN is "not observed".
        X : pandas DataFrame with the same index, optional
            Further columns whose future is known.

        Returns
        -------
        self
        """
        self._check()
        seen = observe(y, X, duplicates=self.duplicates)
        timeline = Timeline.of(seen.stamps, zone_of(y.index))
        part = slice(-self.history, None)
        points, targets = self._points(timeline, seen)
        points, targets = points[part], targets[part]
        if not np.ptp(targets):
            raise ValueError("the series is constant: there is nothing to forecast. Check the target column.")
        seasons, notes = self._seasons(points[:, 0], targets, timeline)
        mean = mean_of(seasons, points[:, 0], targets)
        kernel = kernel_of(seasons, float(targets.var()), points.shape[1] - 1)
        result = learn(
            kernel,
            points,
            targets,
            segment(points, _SEGMENT, "sequential"),
            mean=mean,
            tolerance=self.tolerance,
            n_jobs=self.n_jobs,
            progress=self.progress,
            warn=False,
        )
        columns = [] if X is None else [str(name) for name in X.columns]
        recent = slice(-check_count(self.keep, "keep"), None)
        self._known = Known(
            timeline,
            seasons,
            result.kernel,
            result.mean,
            result.theta_standard_errors,
            points[recent],
            targets[recent],
            columns,
            seen.notes + notes,
        )
        return self

    def update(self, y: Any, X: Any = None, *, late: str = "error") -> "CompositeGPForecaster":
        """Take in new observations without learning anew, and drop what is no longer needed.

        Parameters
        ----------
        y, X
            As for `fit`.
        late : {"error", "skip"}
            What to do with observations that are not newer than the latest known.

        Returns
        -------
        self
        """
        known = self._fitted()
        seen = observe(y, X, duplicates=self.duplicates, gaps=False)
        points, targets = self._points(known.timeline, seen)
        new = points[:, 0] > known.last + 1e-9
        if not new.all() and late != "skip":
            raise ValueError(
                f"{int((~new).sum())} observation(s) are not newer than the latest known, "
                f"{known.timeline.stamps([known.last])[0]}. Leave them out, or use late='skip'."
            )
        if points.shape[1] != known.X.shape[1]:
            raise ValueError(f"X must have the columns {known.columns} that the model was fitted with.")
        if new.any():
            latest = slice(-check_count(self.keep, "keep"), None)
            X_all, y_all = (
                np.concatenate([known.X, points[new]])[latest],
                np.concatenate([known.y, targets[new]])[latest],
            )
            self._known = replace(known, X=X_all, y=y_all)
        return self

    def predict(
        self, horizon: Any, quantiles: Any = (0.025, 0.25, 0.5, 0.75, 0.975), X: Any = None
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
            Columns ``mean``, ``std`` and ``q…``, of observations; the index has the times.
        """
        known = self._fitted()
        levels = [float(level) for level in quantiles]
        if not all(0 < level < 1 for level in levels):
            raise ValueError(f"quantiles must be numbers between 0 and 1; found {quantiles!r}.")
        places = self._future(known, known.timeline.steps(horizon))
        found = self.predictive(places, self._extra(known, X, len(places)))
        mean, std = found.mean_and_std()
        table = {"mean": mean, "std": std} | {f"q{level:g}": found.quantile(level) for level in levels}
        return pd.DataFrame(table, index=known.timeline.stamps(places))

    def predictive(self, places: Floats, extra: Floats | None = None) -> Predictive:
        """Joint predictive distribution of observations at some times, in steps."""
        known = self._fitted()
        Z = np.column_stack([places] if extra is None else [places, extra])
        try:
            belief = posterior(known.kernel, known.X, known.y, Z, Composite.full(len(known.X)), mean=known.mean)
        except LinAlgError as error:
            raise LinAlgError(f"The latest {len(known.X)} observations cannot be forecast from: {error}") from error
        noise = diagonal(known.kernel, Z) - diagonal(known.kernel, Z, noise=False)
        return Predictive.of_belief(self._scale(), 0.0, belief, np.asarray(noise))

    def describe(self) -> list[str]:
        """What was learned, in words."""
        known = self._fitted()
        return describe(known.kernel, known.seasons, known.timeline.step, known.errors)

    @property
    def notes_(self) -> list[str]:
        """What a user has to know about the series: gaps, duplicates, seasons."""
        return list(self._fitted().notes)

    @property
    def last_(self) -> pd.Timestamp:
        """Time of the latest observation."""
        known = self._fitted()
        return known.timeline.stamps([known.last])[0]

    @property
    def step_(self) -> pd.Timedelta:
        """Time step of the series."""
        return self._fitted().timeline.step

    def save(self, path: str | Path, **more: Any) -> None:
        """Write the fitted forecaster to a file, all of it or nothing; it holds no code.

        Further keywords are numbers or text to be stored beside it, which `load_with` returns.
        """
        known = self._fitted()
        timeline = known.timeline
        content = {
            "parameters": self.get_params(),
            "timeline": {"origin": timeline.origin.isoformat(), "step": timeline.step.value, "zone": timeline.zone},
            "seasons": [tuple(season) for season in known.seasons],
            "known": {
                name: getattr(known, name) for name in ("kernel", "mean", "errors", "X", "y", "columns", "notes")
            },
            "more": more,
        }
        write_archive(path, FORMAT, VERSION, content)

    @classmethod
    def load(cls, path: str | Path) -> "CompositeGPForecaster":
        """Read a forecaster that `save` wrote; runs no code from the file."""
        return cls.load_with(path)[0]

    @classmethod
    def load_with(cls, path: str | Path) -> tuple["CompositeGPForecaster", dict[str, Any]]:
        """Read a forecaster, and what was stored beside it."""
        content = read_archive(path, FORMAT, VERSION)
        try:
            model = cls(**content["parameters"])
            counted = content["timeline"]
            step = pd.Timedelta(counted["step"], unit="ns")
            timeline = Timeline(pd.Timestamp(counted["origin"]), step, counted["zone"])
            seasons = [Season(*season) for season in content["seasons"]]
            model._known = Known(timeline, seasons, **content["known"])
            return model, content["more"]
        except (KeyError, TypeError, ValueError) as error:
            raise unreadable(path, f"a part of it is missing or damaged ({error})") from error

    def _check(self) -> None:
        if self.transform not in (None, "log"):
            raise ValueError(f"transform must be None or 'log'; found {self.transform!r}.")
        if self.duplicates not in DUPLICATES:
            raise ValueError(f"duplicates must be one of {', '.join(DUPLICATES)}; found {self.duplicates!r}.")
        check_count(self.history, "history")

    def _scale(self) -> AsTheyAre:
        return Log() if self.transform == "log" else AsTheyAre()

    def _points(self, timeline: Timeline, seen: Observed) -> tuple[Floats, Floats]:
        return np.column_stack([timeline.places(seen.stamps), seen.extra]), self._scale().forward(seen.values)

    def _seasons(self, places: Floats, values: Floats, timeline: Timeline) -> tuple[list[Season], list[str]]:
        if isinstance(self.seasons, str) and self.seasons == "auto":
            return find_seasons(places, values, timeline.step)
        return given_seasons(self.seasons, timeline.step), []

    def _future(self, known: Known, count: int) -> Floats:
        return np.asarray(known.last + 1.0 + np.arange(count))

    def _extra(self, known: Known, X: Any, count: int) -> Floats | None:
        if not known.columns:
            return None
        if not isinstance(X, pd.DataFrame) or list(map(str, X.columns)) != known.columns or len(X) != count:
            raise ValueError(
                f"X must be a DataFrame of the columns {known.columns} at the {count} steps of the horizon; found "
                f"{'nothing' if X is None else getattr(X, 'shape', X)}."
            )
        return np.asarray(X, dtype=np.float64)

    def _fitted(self) -> Known:
        if not hasattr(self, "_known"):
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet. Call fit first.")
        return self._known

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_known")
