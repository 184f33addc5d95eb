"""Standard distributions, of location zero and scale one, that predictions are made of."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scoringrules
from scipy.special import gammaln, ndtr, ndtri, stdtr, stdtrit

from compositegp.backend import Floats


class Family(Protocol):
    """A standard distribution, symmetric about zero, for each of some points."""

    @property
    def std(self) -> Any:
        """Standard deviation of a variable of scale one."""

    def cdf(self, z: Floats) -> Floats:
        """Probability of a value of at most z."""

    def quantile(self, q: Any) -> Floats:
        """The value that is exceeded with probability 1 − q."""

    def logpdf(self, z: Floats) -> Floats:
        """Logarithm of the density."""

    def crps(self, z: Floats) -> Floats:
        """Continuous ranked probability score of the outcome z."""

    def sample(self, shape: tuple[int, ...], generator: Any) -> Floats:
        """Factors by which standard normal draws become draws of this family; they broadcast to `shape`."""

    def take(self, points: Any) -> "Family":
        """The family at some of the points."""

    def shared(self) -> "Family":
        """One family for all the points, for joint draws."""

    def shaped(self, ndim: int) -> "Family":
        """The family for arrays with that many axes, of which the first are the points."""


class Normal:
    """The standard normal distribution."""

    std = 1.0

    def cdf(self, z: Floats) -> Floats:
        """Probability of a value of at most z."""
        return np.asarray(ndtr(z))

    def quantile(self, q: Any) -> Floats:
        """The value that is exceeded with probability 1 − q."""
        return np.asarray(ndtri(q))

    def logpdf(self, z: Floats) -> Floats:
        """Logarithm of the density."""
        return np.asarray(-0.5 * (z**2 + np.log(2 * np.pi)))

    def crps(self, z: Floats) -> Floats:
        """Continuous ranked probability score of the outcome z."""
        return np.asarray(scoringrules.crps_normal(z, 0.0, 1.0))

    def sample(self, shape: tuple[int, ...], generator: Any) -> Floats:
        """Ones."""
        return np.ones(())

    def take(self, points: Any) -> "Normal":
        """The same."""
        return self

    def shared(self) -> "Normal":
        """The same."""
        return self

    def shaped(self, ndim: int) -> "Normal":
        """The same."""
        return self


@dataclass(frozen=True, eq=False)
class StudentT:
    """Student's t distribution, its degrees of freedom a number for each point.

    Attributes
    ----------
    df : array of shape (M,), or (1,) for all the points
        Above 2, so that there is a variance.
    """

    df: Floats

    @property
    def std(self) -> Floats:
        """√(df / (df − 2))."""
        return np.sqrt(self.df / (self.df - 2))

    def cdf(self, z: Floats) -> Floats:
        """Probability of a value of at most z."""
        return np.asarray(stdtr(self.df, z))

    def quantile(self, q: Any) -> Floats:
        """The value that is exceeded with probability 1 − q."""
        return np.asarray(stdtrit(self.df, q))

    def logpdf(self, z: Floats) -> Floats:
        """Logarithm of the density."""
        df = self.df
        normalizer = gammaln(0.5 * (df + 1)) - gammaln(0.5 * df) - 0.5 * np.log(df * np.pi)
        return np.asarray(normalizer - 0.5 * (df + 1) * np.log1p(z**2 / df))

    def crps(self, z: Floats) -> Floats:
        """Continuous ranked probability score of the outcome z."""
        return np.asarray(scoringrules.crps_t(z, self.df, 0.0, 1.0))

    def sample(self, shape: tuple[int, ...], generator: Any) -> Floats:
        """√(df / χ²_df): with one factor for all the points of a draw, joint draws are of a multivariate t."""
        return np.asarray(np.sqrt(self.df / generator.chisquare(self.df, size=shape)))

    def take(self, points: Any) -> "StudentT":
        """The family at some of the points."""
        return self if self.df.size == 1 else StudentT(self.df[points])

    def shared(self) -> "StudentT":
        """One family for all the points: the geometric mean of the degrees of freedom."""
        return StudentT(np.exp(np.log(self.df).mean(keepdims=True)))

    def shaped(self, ndim: int) -> "StudentT":
        """The family for arrays with that many axes, of which the first are the points."""
        return StudentT(self.df.reshape(-1, *(1,) * (ndim - 1)))
