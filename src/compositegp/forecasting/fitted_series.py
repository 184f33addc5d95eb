"""A fitted model of a series: what was learned, and the latest observations."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.linalg import LinAlgError
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Booleans, Floats
from compositegp.composite import Composite
from compositegp.forecasting.seasons import Season
from compositegp.forecasting.timeline import Horizon, Timeline
from compositegp.means import MeanLike
from compositegp.posteriors import Belief, Marginals, nearest, posterior

_GROUP = 1024  # steps that are forecast at a time, where no covariance is asked for
_SAME_TIME = 1e-9  # steps within which two times are the same


@dataclass(frozen=True, eq=False)
class FittedSeries:
    """What a fitted forecaster has; never changed, only replaced, so that a failed update changes nothing.

    Attributes
    ----------
    timeline : Timeline
    seasons : list of Season
    kernel : scikit-learn kernel
    mean : Estimated, or as in `posterior`
    theta_standard_errors : array of shape (p,)
        Relative standard errors of the kernel's hyper-parameters.
    X : array of shape (n, 1 + k)
        Times of the latest observations, in steps, and their further columns.
    y : array of shape (n,)
        Their targets, on the model's scale.
    columns : list of str
        Names of the further columns.
    notes : list of str
    """

    timeline: Timeline
    seasons: list[Season]
    kernel: Kernel
    mean: MeanLike
    theta_standard_errors: Floats
    X: Floats
    y: Floats
    columns: list[str]
    notes: list[str]

    @property
    def last(self) -> float:
        """Time of the latest observation, in steps."""
        return float(self.X[-1, 0])

    def is_new(self, points: Floats) -> Booleans:
        """Which points are later than the latest observation: a boolean array of shape (n,)."""
        return points[:, 0] > self.last + _SAME_TIME

    def with_observations(self, points: Floats, targets: Floats, count: int) -> "FittedSeries":
        """The same model with later observations; only the latest `count` of all are kept."""
        X, y = np.concatenate([self.X, points]), np.concatenate([self.y, targets])
        return replace(self, X=X[-count:], y=y[-count:])

    def next_places(self, horizon: Horizon) -> Floats:
        """Times of the steps after the latest observation, in steps."""
        return np.asarray(self.last + 1.0 + np.arange(self.timeline.steps(horizon)), dtype=np.float64)

    def marginals(self, Z: Floats) -> Marginals:
        """Beliefs about single latent values at points of shape (M, 1 + k), in memory that is linear in M."""
        try:
            return nearest(
                self.kernel,
                self.X,
                self.y,
                Z,
                n_neighbors=len(self.X),
                group_size=min(len(Z), _GROUP),
                mean=self.mean,
            )
        except LinAlgError as error:
            raise LinAlgError(
                f"No forecast can be made from the latest {len(self.X)} observations: {error}"
            ) from error

    def belief(self, Z: Floats) -> Belief:
        """Belief about the latent values at points of shape (M, 1 + k): the exact GP on the latest observations."""
        try:
            return posterior(self.kernel, self.X, self.y, Z, Composite.full(len(self.X)), mean=self.mean)
        except LinAlgError as error:
            raise LinAlgError(
                f"No forecast can be made from the latest {len(self.X)} observations: {error}"
            ) from error
