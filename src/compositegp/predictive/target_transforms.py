"""Targets on another scale: the model is Gaussian there, and predictions are in the user's unit."""

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from compositegp.backend import Floats
from compositegp.validation import check_magnitude

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_LARGEST_EXPONENT = 700.0
_CHUNK = 2**14  # predictions whose quadrature is done at once
_LOST = 0.01  # share of the probability that may lie where the transformer has no inverse
_RANGE = 8.0  # standard deviations around a mean in which a transformer has to be a straight line to count as one
_GRID = 65  # points at which that is looked at
_STRAIGHT = 1e-10  # largest distance of a value to the line, over the largest value
_STEP = 1e-5  # step of the numerical derivative, over the spread of the target


class TargetTransform(ABC):
    """A monotone map from the user's unit to the scale on which the target is modeled."""

    @property
    def sign(self) -> Any:
        """1 where larger values on the model's scale are larger in the user's unit, −1 where they are smaller."""
        return 1.0

    @abstractmethod
    def forward(self, y: Floats) -> Floats:
        """Targets on the model's scale: shape (n,) or (n, t)."""

    @abstractmethod
    def inverse(self, values: Floats) -> Floats:
        """Values in the user's unit: shape (n,) or (n, t)."""

    def reaches(self, values: Floats) -> Any:
        """Whether values on the model's scale are those of targets: all are, unless a transformer has limits."""
        return np.ones(np.shape(values), dtype=bool)

    @abstractmethod
    def log_derivative(self, y: Floats) -> Floats:
        """Ln ``|d forward / dy|`` at values in the user's unit, for densities there."""

    @abstractmethod
    def moments(self, mean: Floats, std: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation, in the user's unit, of Gaussians on the model's scale."""

    def slope(self, mean: Floats, std: Floats) -> Any:
        """The factor from the model's scale to the user's unit, shape () or (t,), where the map is a straight line.

        None where it is not, over the range of Gaussians with these means and standard deviations.
        """
        return None

    def covariance(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Mean and covariance, in the user's unit, of a joint Gaussian on the model's scale."""
        raise ValueError(
            "return_cov needs target_transform=None, 'log' or a transformer that only shifts and scales, such as "
            "StandardScaler. For another transformer draw joint samples with sample_y."
        )


class IdentityTarget(TargetTransform):
    """The target is modeled as it is."""

    def forward(self, y: Floats) -> Floats:
        """Targets as they are, if their variances are finite."""
        return check_magnitude(y)

    def inverse(self, values: Floats) -> Floats:
        """Values in the user's unit."""
        return values

    def log_derivative(self, y: Floats) -> Floats:
        """Zero."""
        return np.zeros(np.shape(y))

    def moments(self, mean: Floats, std: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation as they are."""
        return mean, std

    def slope(self, mean: Floats, std: Floats) -> Any:
        """One."""
        return 1.0


class LogTarget(TargetTransform):
    """The logarithm of the target is modeled: predictions are log-normal and never negative."""

    def forward(self, y: Floats) -> Floats:
        """Logarithms of the targets, which have to be positive."""
        wrong = y <= 0
        if wrong.any():
            first = np.unravel_index(int(np.argmax(wrong)), y.shape)
            raise ValueError(
                f"y has {int(wrong.sum())} value(s) that are not positive, the first {y[first]:g} at index "
                f'{int(first[0])}: target_transform="log" cannot take their logarithm. Drop them, mark them as not '
                "observed (NaN), or add a constant of your choice to y."
            )
        return np.log(y)

    def inverse(self, values: Floats) -> Floats:
        """Exponentials."""
        return np.exp(np.minimum(values, _LARGEST_EXPONENT))

    def log_derivative(self, y: Floats) -> Floats:
        """−ln y."""
        return -np.log(y)

    def moments(self, mean: Floats, std: Floats) -> tuple[Floats, Floats]:
        """Mean exp(μ + σ²/2) and standard deviation of log-normal variables."""
        exponent = mean + 0.5 * std**2
        return self.inverse(exponent), self.inverse(exponent + 0.5 * _log_expm1(std**2))

    def covariance(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Mean and covariance of log-normal variables."""
        exponent = mean + 0.5 * np.diagonal(covariance)
        sizes = self.inverse(exponent[:, None] + exponent + _log_expm1(np.abs(covariance)))
        # expm1(−c) = −exp(−c) expm1(c)
        return self.inverse(exponent), np.where(covariance < 0, -np.exp(np.minimum(covariance, 0.0)), 1.0) * sizes


def _log_expm1(values: Floats) -> Floats:
    """ln(exp(v) − 1) for v ≥ 0, with −∞ for zero."""
    with np.errstate(divide="ignore"):
        return np.where(values < 1, np.log(np.expm1(np.minimum(values, 1))), values + np.log1p(-np.exp(-values)))


@dataclass(frozen=True)
class PowerTarget(TargetTransform):
    """A power of the target, between 0 and 1, is modeled: spreads grow with the level, but less than by the logarithm.

    Attributes
    ----------
    power : float

    Examples
    --------
    >>> PowerTarget(0.5).inverse(PowerTarget(0.5).forward(np.array([0.0, 4.0])))
    array([0., 4.])
    """

    power: float = 0.5

    def forward(self, y: Floats) -> Floats:
        """Powers of the targets, which must not be negative."""
        wrong = y < 0
        if wrong.any():
            raise ValueError(
                f"y has {int(wrong.sum())} negative value(s), the first {y[wrong][0]:g}: a power of them does not "
                "exist. Use target_transform=None."
            )
        return np.asarray(y**self.power)

    def inverse(self, values: Floats) -> Floats:
        """Values in the user's unit; zero for negative ones."""
        return np.asarray(np.maximum(values, 0.0) ** (1 / self.power))

    def log_derivative(self, y: Floats) -> Floats:
        """Ln p + (p − 1) ln y."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.power) + (self.power - 1) * np.log(y))

    def moments(self, mean: Floats, std: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation by quadrature."""
        nodes = _NODES.reshape(-1, *(1,) * mean.ndim)
        weights = _WEIGHTS.reshape(-1, *(1,) * mean.ndim)
        values = self.inverse(mean + std * nodes)
        expected = (weights * values).sum(axis=0)
        return expected, np.sqrt((weights * (values - expected) ** 2).sum(axis=0))

    def covariance(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Mean and covariance of squares of Gaussian variables, for a power of one half."""
        if self.power != 0.5:
            return super().covariance(mean, covariance)
        return mean**2 + np.diagonal(covariance), 4 * np.outer(mean, mean) * covariance + 2 * covariance**2


@dataclass(frozen=True, eq=False)
class TransformedTarget(TargetTransform):
    """The target is modeled as a scikit-learn transformer makes it; moments are by Gauss–Hermite quadrature.

    Attributes
    ----------
    transformer : fitted scikit-learn transformer, monotone in each column, with inverse_transform
    signs : array of shape () or (t,)
    spreads : array of shape () or (t,)
        Standard deviation of the target in the user's unit.
    """

    transformer: Any
    signs: Any = 1.0
    spreads: Any = 1.0

    @property
    def sign(self) -> Any:
        """1 or −1 for each output."""
        return self.signs

    def forward(self, y: Floats) -> Floats:
        """Transformed targets, checked to be finite."""
        values = self._transform(y)
        if not np.isfinite(values).all():
            raise ValueError(
                f"target_transform {self.transformer!r} makes {int((~np.isfinite(values)).sum())} target(s) that are "
                "not finite. Drop those rows, or choose another transformer."
            )
        return check_magnitude(values, "the transformed y")

    def inverse(self, values: Floats) -> Floats:
        """Values in the user's unit, checked to be finite."""
        restored = self._restored(values)
        if not np.isfinite(restored).all():
            raise self._no_inverse(int((~np.isfinite(restored)).sum()))
        return restored

    def reaches(self, values: Floats) -> Any:
        """Whether values on the model's scale have an inverse."""
        return np.isfinite(self._restored(values))

    def log_derivative(self, y: Floats) -> Floats:
        """By central differences."""
        step = _STEP * self.spreads
        with np.errstate(divide="ignore"):
            rise = np.abs(self._transform(y + step) - self._transform(y - step))
            return np.asarray(np.log(rise) - np.log(2 * step))

    def moments(self, mean: Floats, std: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation by quadrature."""
        found = np.empty((2, *mean.shape))
        for start in range(0, len(mean), _CHUNK):
            part = slice(start, start + _CHUNK)
            # Nodes lead, so that outputs stay in the last axis.
            values = self._restored_stack(mean[part] + std[part] * _NODES.reshape(-1, *(1,) * mean.ndim))
            there = np.isfinite(values)
            weights = there * _WEIGHTS.reshape(-1, *(1,) * mean.ndim)
            lost = 1 - weights.sum(axis=0)
            if (lost > _LOST).any():
                raise self._no_inverse(int((lost > _LOST).sum()))
            # Nodes far in the tails may have no inverse: the others are used alone.
            values, weights = np.where(there, values, 0.0), weights / (1 - lost)
            found[0, part] = expected = (weights * values).sum(axis=0)
            found[1, part] = np.sqrt((weights * (values - expected) ** 2).sum(axis=0))
        return found[0], found[1]

    def slope(self, mean: Floats, std: Floats) -> Any:
        """The slope between the ends of the range, if a grid of points in it is on that line."""
        low, high = (mean - _RANGE * std).min(axis=0), (mean + _RANGE * std).max(axis=0)
        shares = np.linspace(0, 1, _GRID).reshape(-1, *(1,) * np.ndim(low))
        values = self._restored(low + shares * (high - low))
        line = values[0] + shares * (values[-1] - values[0])
        straight = np.abs(values - line) <= _STRAIGHT * np.abs(values).max(axis=0)
        return (values[-1] - values[0]) / (high - low) if straight.all() and (high > low).all() else None

    def _transform(self, y: Floats) -> Floats:
        columns = y.reshape(len(y), -1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return np.asarray(self.transformer.transform(columns), dtype=np.float64).reshape(y.shape)

    def _restored(self, values: Floats) -> Floats:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # values without an inverse are looked for afterwards
            restored = self.transformer.inverse_transform(values.reshape(len(values), -1))
        return np.asarray(restored, dtype=np.float64).reshape(values.shape)

    def _restored_stack(self, values: Floats) -> Floats:
        """Values in the user's unit with a leading axis: shape (nodes, n) or (nodes, n, t)."""
        return self._restored(values.reshape(-1, *values.shape[2:])).reshape(values.shape)

    def _no_inverse(self, count: int) -> ValueError:
        return ValueError(
            f"target_transform {self.transformer!r} has no inverse at {count} predicted value(s): the prediction goes "
            "beyond what the transformer maps to. Choose one that covers all numbers, such as 'log'."
        )


def as_target_transform(transform: Any, y: Floats) -> TargetTransform:
    """What a user gives as target_transform, fitted to the targets."""
    if transform is None:
        return IdentityTarget()
    if isinstance(transform, str) and transform == "log":
        return LogTarget()
    if hasattr(transform, "fit") and hasattr(transform, "inverse_transform"):
        fitted = clone(transform).fit(y.reshape(len(y), -1))
        low, high = TransformedTarget(fitted).forward(np.stack([y.min(axis=0), y.max(axis=0)]))
        spreads = np.asarray(y.std(axis=0))
        return TransformedTarget(fitted, np.where(low > high, -1.0, 1.0), np.where(spreads > 0, spreads, 1.0))
    raise ValueError(
        'target_transform must be None, "log" or a scikit-learn transformer with inverse_transform; found '
        f"{transform!r}."
    )
