"""The forecaster in sktime's words. Needs sktime (``pip install 'compositegp[sktime]'``)."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sktime.forecasting.base import BaseForecaster

from compositegp.forecasting.forecaster import CompositeGPForecaster
from compositegp.predictive import PredictiveDistribution

__all__ = ["SktimeForecaster"]

_FIRST = pd.Timestamp("2000-01-01 12:00")  # of an index of whole numbers, whose steps are taken as seconds


class SktimeForecaster(BaseForecaster):  # type: ignore[misc]
    """`CompositeGPForecaster` as a forecaster of sktime: it fits into its pipelines, searches and evaluations.

    The index may have time stamps, periods or whole numbers. Whole numbers have no calendar: no day, week or year is
    looked for.

    Parameters
    ----------
    target_transform, horizon, seasons, timezone, holidays, history, n_neighbors, search, n_jobs
        As in `CompositeGPForecaster`; without `horizon` the largest step of ``fh`` is learned for, if it is known in
        ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from compositegp.forecasting.sktime import SktimeForecaster
    >>> y = pd.Series(np.sin(np.arange(60.0)), index=pd.period_range("2020-01", periods=60, freq="M"))
    >>> forecaster = SktimeForecaster(None, search=False).fit(y, fh=[1, 2, 3])
    >>> list(forecaster.predict_interval(coverage=0.9).columns)
    [(0, 0.9, 'lower'), (0, 0.9, 'upper')]
    """

    _tags: ClassVar[dict[str, Any]] = {
        "y_inner_mtype": "pd.Series",
        "X_inner_mtype": "pd.DataFrame",
        "scitype:y": "univariate",
        "capability:exogenous": True,
        "capability:missing_values": True,
        "capability:insample": False,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "requires-fh-in-fit": False,
        "X-y-must-have-same-index": True,
        "enforce_index_type": None,
        "capability:update": True,
        "python_dependencies": ["compositegp"],
    }

    def __init__(
        self,
        target_transform: str | None = "auto",
        horizon: int | str | None = None,
        seasons: str | Sequence[str] = "auto",
        timezone: str | None = None,
        holidays: str | Iterable[Any] | None = None,
        history: int = 100_000,
        n_neighbors: int = 672,
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
        self.search = search
        self.n_jobs = n_jobs
        self.theta_uncertainty = theta_uncertainty
        super().__init__()

    def _fit(self, y: pd.Series, X: pd.DataFrame | None, fh: Any) -> "SktimeForecaster":
        given = self.get_params(deep=False)
        if self.horizon is None and fh is not None:
            given["horizon"] = max(int(max(fh.to_relative(self.cutoff))), 1)
        self._name = y.name
        self.model_ = CompositeGPForecaster(**given).fit(_with_times(y), _columns(X))
        return self

    def _update(
        self, y: pd.Series, X: pd.DataFrame | None = None, update_params: bool = True
    ) -> "SktimeForecaster":
        if y.notna().any():
            self.model_.update(_with_times(y), _columns(X), late="skip")
        return self

    def _predict(self, fh: Any, X: pd.DataFrame | None) -> pd.Series:
        index, found, rows = self._distribution(fh, X)
        return pd.Series(found.mean[rows], index=index, name=self._name)

    def _predict_quantiles(self, fh: Any, X: pd.DataFrame | None, alpha: Sequence[float]) -> pd.DataFrame:
        index, found, rows = self._distribution(fh, X)
        columns = pd.MultiIndex.from_product([self._get_varnames(), alpha])
        return pd.DataFrame(np.column_stack([found.quantile(a)[rows] for a in alpha]), index=index, columns=columns)

    def _predict_var(self, fh: Any, X: pd.DataFrame | None = None, cov: bool = False) -> pd.DataFrame:
        if cov:
            raise NotImplementedError(
                "predict_var(cov=True) is not supported: draw from model_.predict_distribution(times).sample(n)."
            )
        index, found, rows = self._distribution(fh, X)
        return pd.DataFrame(found.std[rows] ** 2, index=index, columns=self._get_varnames())

    def _distribution(self, fh: Any, X: pd.DataFrame | None) -> tuple[pd.Index, PredictiveDistribution, np.ndarray]:
        """Distributions of the steps of a horizon: their index, the distributions, and which of them are wanted.

        The further columns are taken at all the times of X, since what they were before a step matters too.
        """
        index = fh.to_absolute_index(self.cutoff)
        wanted = _times(index)
        if X is None or not len(self.model_.observations_.columns[1:]):
            return index, self.model_.predict_distribution(wanted, joint=False), np.arange(len(wanted))
        given = _columns(X)
        assert given is not None
        timeline, local = self.model_.timeline_, self.timezone is not None

        def steps(index: pd.DatetimeIndex) -> np.ndarray:
            return np.round(timeline.places(timeline.instants(index, local=local)))

        later = given[steps(given.index) > steps(self._last)[0]]
        later = later[~later.index.duplicated()]
        found = self.model_.predict_distribution(later.index, later, joint=False)
        rows = later.index.get_indexer(wanted)
        if (rows < 0).any():
            raise ValueError(f"X has no row for {index[rows < 0][0]}, which is in the forecasting horizon.")
        return index, found, rows

    @property
    def _last(self) -> pd.DatetimeIndex:
        return pd.DatetimeIndex([self.model_.last_])

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Parameters by which sktime's own tests make forecasters."""
        cheap: dict[str, Any] = {"target_transform": None, "seasons": [], "search": False}
        return [{**cheap, "n_neighbors": 12}, {**cheap, "n_neighbors": 8, "horizon": 3}]


def _times(index: pd.Index) -> pd.DatetimeIndex:
    """Time stamps of an index: those of periods are their starts, whole numbers are counted in seconds."""
    if isinstance(index, pd.DatetimeIndex):
        return index
    if isinstance(index, pd.PeriodIndex):
        return index.to_timestamp()
    if pd.api.types.is_integer_dtype(index.dtype):
        return pd.DatetimeIndex(_FIRST + pd.to_timedelta(index.to_numpy(), unit="s"))
    raise ValueError(f"the index must have time stamps, periods or whole numbers; found {index.dtype}.")


def _with_times(y: pd.Series) -> pd.Series:
    return y.set_axis(_times(y.index))


def _columns(X: pd.DataFrame | None) -> pd.DataFrame | None:
    return None if X is None else X.set_axis(_times(X.index)).set_axis(list(map(str, X.columns)), axis=1)
