"""The forecaster: a series with time stamps in, the next values with error bars out."""

from collections.abc import Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils._param_validation import Interval, StrOptions

from compositegp.backend import Floats
from compositegp.composite import segment
from compositegp.forecasting.fitted_series import FittedSeries
from compositegp.forecasting.seasons import Season, find_seasons, given_seasons
from compositegp.forecasting.series_model import describe, kernel_of, mean_of
from compositegp.forecasting.stored_series import from_values, to_values
from compositegp.forecasting.timeline import DUPLICATES, Horizon, Observed, Timeline, in_utc, observe
from compositegp.kernels import noise_variance
from compositegp.learning import CompositeLikelihood, LearningMethod, as_learning_method, learn
from compositegp.means import MeanLike
from compositegp.predictive import IdentityTarget, LogTarget, PredictiveDistribution, TargetTransform
from compositegp.storage import Fields, damaged, read_archive, write_archive
from compositegp.validation import are_finite

FORMAT, VERSION = "compositegp forecaster", 2
_SEGMENT = 512  # observations of a segment to learn from: about three weeks of hours
_OF_THE_MACHINE = ("n_jobs",)  # parameters that are not part of a model
_LONGEST_TEXT = 10_000  # characters of a text that is stored with a model


class CompositeGPForecaster(BaseEstimator):  # type: ignore[misc]
    """Forecasts of a time series with error bars.

    A pattern that repeats every day or week is in the mean, as a profile with a level for each step. Deviations from it
    are correlated over short and medium times, and the pattern may drift. All of it is learned from segments of the
    series. A forecast is that of an exact Gaussian process on the latest observations.

    Parameters
    ----------
    target_transform : None or "log"
        With "log" the logarithm is modelled: forecasts are log-normal and never negative.
    seasons : "auto" or list
        "day", "week", "year" or durations such as "12h"; ``auto`` takes those that the data show.
    history : int
        Number of latest observations to learn from.
    n_neighbors : int
        Number of latest observations that a forecast is made from; older ones are dropped.
    duplicates : {"error", "mean", "last"}
        What to do with time stamps that occur more than once.
    learning : {"composite_likelihood", "fisher_average"} or object
        As in `CompositeGPRegressor`; by default ``CompositeLikelihood(tolerance=0.1, start="kernel")``.
    n_jobs : int, optional
        Number of processes, as in joblib.
    verbose : bool
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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "target_transform": [StrOptions({"log"}), None],
        "seasons": [StrOptions({"auto"}), list, tuple],
        "history": [Interval(Integral, 1, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "duplicates": [StrOptions(set(DUPLICATES))],
        "learning": "no_validation",
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        target_transform: str | None = None,
        *,
        seasons: str | Sequence[str | pd.Timedelta] = "auto",
        history: int = 20_000,
        n_neighbors: int = 1024,
        duplicates: str = "error",
        learning: LearningMethod | str = "composite_likelihood",
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.target_transform = target_transform
        self.seasons = seasons
        self.history = history
        self.n_neighbors = n_neighbors
        self.duplicates = duplicates
        self.learning = learning
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, y: pd.Series | Observed, X: pd.DataFrame | None = None) -> "CompositeGPForecaster":
        """Learn from a series.

        Parameters
        ----------
        y : pandas Series with a DatetimeIndex, or Observed
            Times are counted in UTC, so that time zones and daylight saving do not matter. NaN is "not observed".
        X : pandas DataFrame with the same index, optional
            Further columns whose future is known.

        Returns
        -------
        self
        """
        self._validate_params()
        seen = observe(y, X, duplicates=self.duplicates)
        timeline = seen.timeline
        points, targets = (part[-self.history :] for part in self._points(timeline, seen))
        if not np.ptp(targets):
            raise ValueError("the series is constant: there is nothing to forecast. Check the target column.")
        seasons, notes = self._seasons(points[:, 0], targets, timeline)
        spreads = points[:, 1:].std(axis=0)
        result = learn(
            kernel_of(seasons, float(targets.var()), np.where(spreads > 0, spreads, 1.0)),
            points,
            targets,
            segment(points, _SEGMENT, "sequential"),
            mean=mean_of(seasons, points[:, 0], targets),
            learning=self._learning(),
            conditioning_size=0,
            n_jobs=self.n_jobs,
            verbose=bool(self.verbose),
            warn=False,
        )
        self._series = FittedSeries(
            timeline,
            seasons,
            result.kernel,
            result.mean,
            result.theta_standard_errors,
            points[-self.n_neighbors :],
            targets[-self.n_neighbors :],
            seen.columns,
            seen.notes + notes,
        )
        return self

    def update(
        self, y: pd.Series | Observed, X: pd.DataFrame | None = None, *, late: str = "error"
    ) -> "CompositeGPForecaster":
        """Take in new observations. The hyper-parameters stay as they are, and the oldest observations are dropped.

        Parameters
        ----------
        y, X
            As for `fit`.
        late : {"error", "skip"}
            What to do with observations that are not newer than the latest one of the model.

        Returns
        -------
        self
        """
        series = self._fitted()
        self._validate_params()
        if late not in ("error", "skip"):
            raise ValueError(f"late must be error or skip; found {late!r}.")
        seen = observe(y, X, duplicates=self.duplicates, gaps=False)
        if seen.columns != series.columns:
            raise ValueError(
                f"X must have the columns {series.columns} that the model was fitted with; found {seen.columns}."
            )
        points, targets = self._points(series.timeline, seen)
        new = series.is_new(points)
        if not new.all() and late == "error":
            raise ValueError(
                f"{int((~new).sum())} observation(s) are not newer than the latest known, {self.last_}. Leave them "
                "out, or use late='skip'."
            )
        if new.any():
            self._series = series.with_observations(points[new], targets[new], self.n_neighbors)
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
        found = self.predict_distribution(horizon, X)
        table = {"mean": found.mean, "std": found.std} | {f"q{level:g}": found.quantile(level) for level in levels}
        return pd.DataFrame(table, index=times)

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
            places = series.timeline.places(in_utc(horizon))
        else:
            places = series.next_places(horizon)
        extra = self._extra(series, X, len(places))
        Z = np.column_stack([places] if extra is None else [places, extra])
        noise = np.zeros(len(Z)) if latent else np.asarray(noise_variance(series.kernel, Z))
        transform = self._transform()
        if joint:
            return PredictiveDistribution.of_belief(series.belief(Z), noise, transform=transform)
        found = series.marginals(Z)
        return PredictiveDistribution.of_marginals(found.mean, found.variance + noise, transform=transform)

    def describe(self) -> list[str]:
        """What was learned, in words: one line for each part of the kernel."""
        series = self._fitted()
        return describe(series.kernel, series.seasons, series.timeline.step, series.theta_standard_errors)

    @property
    def kernel_(self) -> Kernel:
        """The learned kernel, of points (time in steps, further columns)."""
        return self._fitted().kernel

    @property
    def mean_(self) -> MeanLike:
        """The learned mean, as in `posterior`."""
        return self._fitted().mean

    @property
    def theta_standard_errors_(self) -> Floats:
        """Relative standard errors of the kernel's hyper-parameters, in the order of ``kernel_.theta``."""
        return self._fitted().theta_standard_errors

    @property
    def seasons_(self) -> list[Season]:
        """The seasons of the model, shortest first."""
        return list(self._fitted().seasons)

    @property
    def timeline_(self) -> Timeline:
        """How the model counts time: its origin, time step and time zone."""
        return self._fitted().timeline

    @property
    def observations_(self) -> pd.DataFrame:
        """The latest observations, which a forecast is made from: columns ``value`` and the further ones."""
        series = self._fitted()
        table = pd.DataFrame(series.X[:, 1:], columns=series.columns, index=series.timeline.stamps(series.X[:, 0]))
        table.insert(0, "value", self._transform().inverse(series.y), allow_duplicates=True)
        return table

    @property
    def notes_(self) -> list[str]:
        """What a user should know about the series: missing values, gaps, duplicates, seasons."""
        return list(self._fitted().notes)

    @property
    def last_(self) -> pd.Timestamp:
        """Time of the latest observation."""
        series = self._fitted()
        return series.timeline.stamps([series.last])[0]

    def save(self, path: str | Path, **more: Any) -> None:
        """Write the fitted forecaster to a file, which is replaced as a whole or not at all and holds no code.

        Parameters
        ----------
        path : str or Path
        **more
            Numbers or text to be stored with it, which `load_with` returns.
        """
        given = {name: value for name, value in self.get_params(deep=False).items() if name not in _OF_THE_MACHINE}
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
            parts = Fields(content, ["parameters", "timeline", "seasons", "series", "more"])
            names = [name for name in cls().get_params(deep=False) if name not in _OF_THE_MACHINE]
            given = Fields(parts["parameters"], names, _OF_THE_MACHINE)  # in files of earlier versions
            model = cls(**{name: given[name] for name in names})
            model._check_stored_parameters()
            model._series = from_values(parts["timeline"], parts["seasons"], parts["series"])
            return model, _plain_values(parts.dictionary("more"))
        except Exception as error:  # what is in the file may be none of our values
            raise damaged(path, error) from error

    def _check_stored_parameters(self) -> None:
        self._validate_params()
        as_learning_method(self.learning)
        if not isinstance(self.seasons, str) and not all(isinstance(season, str) for season in self.seasons):
            raise ValueError("seasons must be 'auto' or a list of texts")

    def _transform(self) -> TargetTransform:
        return LogTarget() if self.target_transform == "log" else IdentityTarget()

    def _learning(self) -> LearningMethod:
        if self.learning == "composite_likelihood":  # the parts of the model begin at values of their own
            return CompositeLikelihood(tolerance=0.1, start="kernel")
        return as_learning_method(self.learning)

    def _points(self, timeline: Timeline, seen: Observed) -> tuple[Floats, Floats]:
        """Points (time in steps, further columns) and targets on the model's scale."""
        return np.column_stack([timeline.places(seen.stamps), seen.extra]), self._transform().forward(seen.values)

    def _seasons(self, places: Floats, values: Floats, timeline: Timeline) -> tuple[list[Season], list[str]]:
        if isinstance(self.seasons, str):  # "auto"
            return find_seasons(places, values, timeline.step)
        return given_seasons(self.seasons, timeline.step), []

    def _extra(self, series: FittedSeries, X: pd.DataFrame | None, count: int) -> Floats | None:
        if not series.columns:
            return None
        if not isinstance(X, pd.DataFrame) or list(map(str, X.columns)) != series.columns or len(X) != count:
            raise ValueError(
                f"X must be a DataFrame of the columns {series.columns} at the {count} steps of the horizon; found "
                f"{'nothing' if X is None else getattr(X, 'shape', X)}."
            )
        return np.asarray(X, dtype=np.float64)

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
