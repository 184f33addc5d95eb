"""Standard distributions, of location zero and scale one, that predictions are made of."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.special import chdtri, gammaln, logsumexp, ndtr, ndtri, stdtr, stdtrit

from compositegp.backend import Floats


class Family(Protocol):
    """A standard distribution, of mean zero, for each of some points."""

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
        from scoringrules import crps_normal  # here: an import of the package does not wait for it

        return np.asarray(crps_normal(z, 0.0, 1.0))

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
        from scoringrules import crps_t

        return np.asarray(crps_t(z, self.df, 0.0, 1.0))

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


_SCALES = 15  # normal distributions that a mixture consists of
_STEPS = 60  # of a quantile, at most
_CLOSE = 1e-13  # relative step at which it has been found


@dataclass(frozen=True, eq=False)
class NormalMixture:
    """Student's t distribution with its scale limited: an equal mixture of fifteen centered normal distributions.

    For targets that are modeled by their logarithm, where the exponential of a t variable has no mean.

    Attributes
    ----------
    df : float
        Degrees of freedom, above 2, of the t distribution whose scales √(df / χ²) the mixture has at equal steps of
        probability.

    Examples
    --------
    >>> float(NormalMixture(5.0).cdf(np.array(0.0))), float(NormalMixture(5.0).quantile(0.975).round(2))
    (0.5, 2.53)
    """

    df: float

    @cached_property
    def scales(self) -> Floats:
        """Standard deviations of the normal distributions, shape (15,)."""
        levels = (np.arange(_SCALES) + 0.5) / _SCALES
        return np.asarray(np.sqrt(self.df / chdtri(self.df, levels)))

    @property
    def std(self) -> float:
        """Standard deviation of the mixture."""
        return float(np.sqrt(np.mean(self.scales**2)))

    def cdf(self, z: Floats) -> Floats:
        """Probability of a value of at most z."""
        return np.asarray(ndtr(np.asarray(z)[..., None] / self.scales).mean(axis=-1))

    def quantile(self, q: Any) -> Floats:
        """The value that is exceeded with probability 1 − q, by Newton's steps on log F that stay in a bracket."""
        levels = np.asarray(q, dtype=np.float64)
        tail = np.minimum(levels, 1 - levels)  # the same on both sides
        scales, unit = self.scales, ndtri(tail)
        low, high, z = unit * scales.max(), unit * scales.min(), unit * np.median(scales)
        with np.errstate(invalid="ignore", divide="ignore"):  # at a probability of zero
            for _ in range(_STEPS):
                below, before = self.cdf(z), z
                error = np.log(below) - np.log(tail)
                low, high = np.where(error < 0, z, low), np.where(error < 0, high, z)
                z = before - error * below / self._density(z)
                z = np.where((z >= low) & (z <= high), z, 0.5 * (low + high))
                if not (np.abs(z - before) > _CLOSE * np.abs(z)).any():
                    break
        z = np.where(tail == 0, -np.inf, z)
        return np.asarray(np.where(levels < 0.5, z, 0 - z))

    def logpdf(self, z: Floats) -> Floats:
        """Logarithm of the density."""
        scales = self.scales
        each = -0.5 * (np.asarray(z)[..., None] / scales) ** 2 - np.log(scales * np.sqrt(2 * np.pi))
        return np.asarray(logsumexp(each, axis=-1) - np.log(_SCALES))

    def _density(self, z: Floats) -> Floats:
        units = np.asarray(z)[..., None] / self.scales
        return np.asarray((np.exp(-0.5 * units**2) / (self.scales * np.sqrt(2 * np.pi))).mean(axis=-1))

    def crps(self, z: Floats) -> Floats:
        """Continuous ranked probability score of the outcome z: ``E|Z − z| − ½ E|Z − Z′|``."""
        scales = self.scales
        distance = _mean_distance(np.asarray(z)[..., None], scales).mean(axis=-1)
        pairs = np.sqrt(scales[:, None] ** 2 + scales**2)
        return np.asarray(distance - 0.5 * _mean_distance(np.zeros(()), pairs).mean())

    def sample(self, shape: tuple[int, ...], generator: Any) -> Floats:
        """Scales, drawn at random."""
        return np.asarray(generator.choice(self.scales, size=shape))

    def take(self, points: Any) -> "NormalMixture":
        """The same."""
        return self

    def shared(self) -> "NormalMixture":
        """The same."""
        return self

    def shaped(self, ndim: int) -> "NormalMixture":
        """The same."""
        return self


def _mean_distance(z: Floats, scale: Floats) -> Floats:
    """E|Z − z| for a centered normal Z."""
    r = z / scale
    density = np.exp(-0.5 * r**2) / np.sqrt(2 * np.pi)
    return np.asarray(scale * (2 * density + r * (2 * ndtr(r) - 1)))
