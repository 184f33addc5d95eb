"""The predictive distribution: what a model says about values that were not observed, in the target's own unit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr
from sklearn.utils import check_random_state

from compositegp.backend import Floats, add_to_diagonal, psd_root
from compositegp.posteriors import Belief
from compositegp.predictive.families import Family, Normal, NormalMixture
from compositegp.predictive.target_transforms import IdentityTarget, LogTarget, TargetTransform
from compositegp.predictive.two_piece import TwoPieceT
from compositegp.validation import check_count

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_TAIL = 1e-9  # probability in each tail that numerical integrals leave out
_SHORTER_TAILS = (1e-6, 1e-4, 0.005)  # the same where a transformation of the target does not reach so far


@dataclass(frozen=True, eq=False, repr=False)
class PredictiveDistribution:
    """Predictions at M points as distributions, in the target's own unit.

    On the model's scale a value is location + scale · ε, with ε of a standard family; a transform takes it to the
    target's unit. Everything is vectorized over the points. With t outputs the arrays have shape (M, t) in the place of
    (M,).

    Attributes
    ----------
    location, scale : arrays of shape (M,)
        On the model's scale.
    transform : TargetTransform
        From the target's unit to the model's scale.
    family : Family
        Of the standardized value: normal, or Student's t, skewed or not. Its mean is zero.
    covariance : array of shape (M, M) or None
        Joint covariance on the model's scale, for a family of scale one; None where each point was predicted alone. The
        outputs share it, up to `output_scale`.
    output_scale : array of shape () or (t,), or of shape (M, t) where outputs differ from point to point

    Examples
    --------
    >>> found = PredictiveDistribution(np.array([0.0, 1.0]), np.array([1.0, 2.0]))
    >>> found.interval(0.5)[1].round(2)
    array([0.67, 2.35])
    >>> found.coverage([0.3, 9.0], 0.95)
    0.5
    """

    location: Floats
    scale: Floats
    transform: TargetTransform = field(default_factory=IdentityTarget)
    family: Family = field(default_factory=Normal)
    covariance: Floats | None = None
    output_scale: Any = 1.0

    @classmethod
    def of_belief(
        cls,
        belief: Belief,
        noise: Floats,
        *,
        transform: TargetTransform,
        offset: Any = 0.0,
        output_scale: Any = 1.0,
        factors: Any = 1.0,
        family: Family | None = None,
    ) -> "PredictiveDistribution":
        """Joint predictions from a belief about the latent values and the variances of independent noise, (M,).

        `factors`, shape (M, 1) or (M, t), multiply the standard deviations. Joint draws need one family for all the
        points.
        """
        covariance = belief.covariance.copy()
        add_to_diagonal(covariance, noise)
        shared, sizes = np.ones(len(covariance)), output_scale
        if np.ndim(factors):
            shared = np.exp(np.log(factors).mean(axis=1))
            covariance *= np.outer(shared, shared)
            if np.shape(factors)[1] > 1:
                sizes = output_scale * np.asarray(factors) / shared[:, None]
        scale = _spread(np.sqrt(belief.variance + noise) * shared, belief.mean, sizes)
        location = offset + output_scale * belief.mean
        together = (family or Normal()).shared()
        return cls(location, scale, transform, together, covariance, sizes)

    @classmethod
    def of_marginals(
        cls,
        mean: Floats,
        variance: Floats,
        *,
        transform: TargetTransform,
        offset: Any = 0.0,
        output_scale: Any = 1.0,
        factors: Any = 1.0,
        family: Family | None = None,
    ) -> "PredictiveDistribution":
        """Predictions of each point alone, from means (M,) or (M, t) and variances (M,).

        `factors`, shape (M, 1) or (M, t), multiply the standard deviations, and `family` is that of the errors.
        """
        scale = _spread(np.sqrt(variance), mean, output_scale)
        if np.ndim(factors):
            scale = scale * np.asarray(factors).reshape(len(mean), *((-1,) if mean.ndim > 1 else ()))
        return cls(offset + output_scale * mean, scale, transform, family or Normal(), None, output_scale)

    @cached_property
    def _moments(self) -> tuple[Floats, Floats]:
        if isinstance(self.family, NormalMixture) and not isinstance(self.transform, IdentityTarget):
            each = [self.transform.moments(self.location, self.scale * one) for one in self.family.scales]
            means, deviations = (np.stack(one) for one in zip(*each, strict=True))
            mean = means.mean(axis=0)
            return mean, np.sqrt((deviations**2 + (means - mean) ** 2).mean(axis=0))
        return self.transform.moments(self.location, self.scale * self._family.std)

    @property
    def _family(self) -> Family:
        """The family, in the shape of the outputs."""
        return self.family.shaped(self.location.ndim)

    @property
    def mean(self) -> Floats:
        """Means, shape (M,)."""
        return self._moments[0]

    @property
    def std(self) -> Floats:
        """Standard deviations, shape (M,)."""
        return self._moments[1]

    @property
    def variance(self) -> Floats:
        """Variances, shape (M,)."""
        return np.asarray(self.std**2)

    @property
    def median(self) -> Floats:
        """Medians, shape (M,)."""
        return self.quantile(0.5)

    def mean_and_covariance(self) -> tuple[Floats, Floats]:
        """Means (M,) and joint covariance (M, M); for t outputs (M, t) and (M, M, t)."""
        joint = self._joint() * np.ravel(self.family.std)[0] ** 2
        slope = self.transform.slope(self.location, self.scale)
        sizes = np.broadcast_to(self.output_scale, self.location.shape)
        if slope is not None:  # covariances are only scaled
            sizes = slope * sizes
            if sizes.ndim == 1:
                return self.mean, joint * np.outer(sizes, sizes)
            return self.mean, joint[..., None] * sizes[:, None] * sizes
        if sizes.ndim == 1:
            return self.transform.covariance(self.location, joint * np.outer(sizes, sizes))
        found = [
            self.transform.covariance(column, joint * np.outer(size, size))
            for column, size in zip(self.location.T, sizes.T, strict=True)
        ]
        means, covariances = zip(*found, strict=True)
        return np.stack(means, axis=-1), np.stack(covariances, axis=-1)

    def quantile(self, q: float | Sequence[float] | Floats) -> Floats:
        """Quantiles: shape (M,) for one number between 0 and 1, (M, len(q)) for several."""
        levels = np.asarray(q, dtype=np.float64)
        if levels.ndim > 1 or not ((levels > 0) & (levels < 1)).all():
            raise ValueError(f"q must be a number, or numbers, between 0 and 1; found {q!r}.")
        if levels.ndim == 1:
            return np.stack([self.quantile(float(level)) for level in levels], axis=-1)
        return self.transform.inverse(
            self.location + self.transform.sign * self.scale * self._standard_quantile(levels)
        )

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Ends of the central intervals that hold a value with probability `level`: two arrays of shape (M,)."""
        if not (isinstance(level, Real) and 0 < level < 1):
            raise ValueError(f"level must be a number between 0 and 1, such as 0.95; found {level!r}.")
        return self.quantile(0.5 - float(level) / 2), self.quantile(0.5 + float(level) / 2)

    def cdf(self, y: ArrayLike) -> Floats:
        """Probability of a value of at most y, shape (M,)."""
        below = self._family.cdf(self._standardized(y))
        return np.asarray(np.where(np.asarray(self.transform.sign) > 0, below, 1 - below))

    def logpdf(self, y: ArrayLike) -> Floats:
        """Logarithm of the density at y, shape (M,)."""
        values = self._values(y)
        density = self._family.logpdf(self._standardized(values)) - np.log(self.scale)
        return np.asarray(density + self.transform.log_derivative(values))

    def of_normal_scores(self, z: Floats) -> Floats:
        """Values with the probabilities that standard normal scores have: shape (M, n) for scores of that shape.

        Scores of a Gaussian field so become a field with these distributions and the dependence of the Gaussian one.

        Examples
        --------
        >>> PredictiveDistribution(np.array([5.0]), np.array([2.0])).of_normal_scores(np.array([[0.0, 1.0]]))
        array([[5., 7.]])
        """
        if isinstance(self.family, Normal):
            standard = z
        else:
            levels = np.clip(ndtr(z), np.finfo(np.float64).tiny, 1 - np.finfo(np.float64).eps)
            standard = self.family.shaped(2).quantile(levels)
        columns = [self.transform.inverse(self.location + self.scale * one) for one in np.asarray(standard).T]
        return np.stack(columns, axis=-1)

    def sample(self, n: int = 1, random_state: Any = None) -> Floats:
        """Draws, shape (M, n) or (M, t, n): joint over the points where the prediction is joint, else independent."""
        count, generator = check_count(n, "n"), check_random_state(random_state)
        if self.covariance is None:
            normal = generator.standard_normal((count, *self.location.shape)) * self.scale
            factors = self._family.sample(normal.shape, generator)
        else:
            root = psd_root(self.covariance)
            # Outputs one after the other, so that the first is drawn as if it were alone.
            normal = generator.standard_normal((*self.location.shape[1:], count, root.shape[1]))
            normal = np.moveaxis(normal @ root.T, (-2, -1), (0, 1)) * self.output_scale
            factors = self.family.sample((count, *(1,) * self.location.ndim), generator)
        draws = [self.transform.inverse(self.location + self._bent(draw)) for draw in factors * normal]
        return np.stack(draws, axis=-1)

    def crps(self, y: ArrayLike) -> Floats:
        """Continuous ranked probability score of the outcomes y, in the target's unit, for each point: shape (M,)."""
        values = self._values(y)
        if isinstance(self.transform, IdentityTarget):
            return np.asarray(self.scale * self._family.crps(self._standardized(values)))
        if isinstance(self.transform, LogTarget) and isinstance(self.family, Normal):
            from scoringrules import crps_lognormal

            return np.asarray(crps_lognormal(values, self.location, self.scale))
        return self._crps_by_quadrature(values)

    def log_score(self, y: ArrayLike) -> Floats:
        """Negative log predictive density of the outcomes y, for each point: shape (M,)."""
        return -self.logpdf(y)

    def coverage(self, y: ArrayLike, level: float | Sequence[float] = 0.95) -> Any:
        """Share of the outcomes y that are inside the central intervals: a float, or an array for several levels."""
        values = self._values(y)
        if np.ndim(level):
            return np.array([self.coverage(values, float(one)) for one in np.asarray(level)])
        lower, upper = self.interval(float(np.asarray(level)))
        return float(((lower <= values) & (values <= upper)).mean())

    def __len__(self) -> int:
        return len(self.location)

    def __getitem__(self, points: Any) -> "PredictiveDistribution":
        """The predictions at some of the points."""
        chosen = np.atleast_1d(np.arange(len(self))[points])
        covariance = None if self.covariance is None else self.covariance[np.ix_(chosen, chosen)]
        return replace(
            self,
            location=self.location[chosen],
            scale=self.scale[chosen],
            family=self.family.take(chosen),
            covariance=covariance,
            output_scale=self.output_scale[chosen] if np.ndim(self.output_scale) == 2 else self.output_scale,
        )

    def __repr__(self) -> str:
        joint = "" if self.covariance is None else ", joint"
        return f"PredictiveDistribution({type(self.family).__name__} at {len(self)} point(s){joint})"

    def _joint(self) -> Floats:
        if self.covariance is None:
            raise ValueError("Each point was predicted alone: there is no covariance. Ask for a joint prediction.")
        return self.covariance

    def _values(self, y: ArrayLike) -> Floats:
        values = np.asarray(y, dtype=np.float64)
        if values.shape not in ((), self.location.shape):
            raise ValueError(
                f"y must have the shape {self.location.shape} of the predictions; found {values.shape}."
            )
        return np.broadcast_to(values, self.location.shape)

    def _standardized(self, y: ArrayLike) -> Floats:
        values = self._values(y)
        if isinstance(self.transform, IdentityTarget):
            return np.asarray((values - self.location) / self.scale)
        return np.asarray((self.transform.forward(values) - self.location) / self.scale)

    def _bent(self, draw: Floats) -> Floats:
        """A draw of the family, from one of its symmetric relative with the same ranks."""
        family = self._family
        if not isinstance(family, TwoPieceT):
            return draw
        scale = np.where(self.scale > 0, self.scale, 1.0)
        return np.asarray(self.scale * family.bent(draw / scale))

    def _standard_quantile(self, q: Any) -> Floats:
        return self._family.quantile(q)

    def _crps_by_quadrature(self, y: Floats) -> Floats:
        """CRPS = E|Y − y| − ½ E|Y − Y'|, for a transformed target.

        With Y = g(Z) and g monotone, E|Y − Y'| = 4 |∫ g(z) (F(z) − ½) f(z) dz|. The first integral is split where g
        meets y, so that what is integrated is smooth.
        """
        start, end = self._end_of_tail(lambda tail: tail), self._end_of_tail(lambda tail: 1 - tail)
        middle = np.clip(self._standardized(y), start, end)
        distance = self._integral(start, middle, lambda z, g: np.abs(g - y)) + self._integral(
            middle, end, lambda z, g: np.abs(g - y)
        )
        gini = self._integral(start, end, lambda z, g: g * (self._family.cdf(z) - 0.5))
        return np.asarray(distance - 2 * np.abs(gini))

    def _end_of_tail(self, level: Callable[[float], float]) -> Floats:
        """Where integrals end in a tail: before values, hardly ever met, that are no targets by the transformation."""
        end = np.broadcast_to(self._standard_quantile(level(_TAIL)), self.location.shape)
        for tail in _SHORTER_TAILS:
            there = self.transform.reaches(self.location + self.scale * end)
            if there.all():
                break
            end = np.where(there, end, self._standard_quantile(level(tail)))
        return end

    def _integral(self, start: Floats, stop: Floats, function: Any) -> Floats:
        """∫ function(z, g(z)) f(z) dz from start to stop, for each point; z = sinh v shortens long tails."""
        first, last = np.arcsinh(start), np.arcsinh(stop)
        half, total = 0.5 * (last - first), np.zeros(self.location.shape)
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            v = first + half * (1 + node)
            z = np.sinh(v)
            g = self.transform.inverse(self.location + self.scale * z)
            total += weight * function(z, g) * np.exp(self._family.logpdf(z)) * np.cosh(v)
        return np.asarray(half * total)


def _spread(std: Floats, mean: Floats, output_scale: Any) -> Floats:
    """Standard deviations (M,) for every output."""
    return np.asarray(std.reshape(-1, *(1,) * (mean.ndim - 1)) * np.broadcast_to(output_scale, mean.shape))
