"""Targets on another scale: the model is Gaussian there, and what is predicted is in the user's unit."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.base import clone

from compositegp.backend import Floats

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_LARGEST_EXPONENT = 700.0
_CHUNK = 2**14  # predictions whose quadrature is done at once
_LOST = 0.01  # probability of values without an inverse that a mean may do without


class AsTheyAre:
    """The target is modelled as it is."""

    sign = 1.0
    """Whether larger values on the model's scale are larger (1) or smaller (−1) in the user's unit."""

    def forward(self, y: Floats) -> Floats:
        """Targets on the model's scale."""
        return y

    def inverse(self, values: Floats) -> Floats:
        """Values in the user's unit, of any shape."""
        return values

    def moments(self, mean: Floats, std: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation, in the user's unit, of Gaussians on the model's scale."""
        return mean, std

    def covariance(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Mean and covariance, in the user's unit, of a joint Gaussian on the model's scale."""
        return mean, covariance


class Log(AsTheyAre):
    """The logarithm of the target is modelled: predictions are log-normal and never negative."""

    def forward(self, y: Floats) -> Floats:
        """Logarithms of the targets, which have to be positive."""
        wrong = y <= 0
        if wrong.any():
            raise ValueError(
                f"y has {int(wrong.sum())} value(s) that are not positive, the first {y[np.argmax(wrong)]:g} at index "
                f'{int(np.argmax(wrong))}: target_transform="log" cannot take their logarithm. Drop them, mark them as '
                "not observed (NaN), or raise y by a constant of your choice."
            )
        return np.log(y)

    def inverse(self, values: Floats) -> Floats:
        """Exponentials."""
        return np.exp(np.minimum(values, _LARGEST_EXPONENT))

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


@dataclass(frozen=True, eq=False)
class Transformed(AsTheyAre):
    """The target is modelled as a scikit-learn transformer makes it; moments are by Gauss–Hermite quadrature.

    Attributes
    ----------
    transformer : fitted scikit-learn transformer of one column, monotone, with inverse_transform
    sign : float
    """

    transformer: Any
    sign: float = 1.0

    def forward(self, y: Floats) -> Floats:
        """Transformed targets, checked to be finite."""
        values = np.asarray(self.transformer.transform(y[:, None]), dtype=np.float64).reshape(len(y))
        if not np.isfinite(values).all():
            raise ValueError(
                f"target_transform {self.transformer!r} makes {int((~np.isfinite(values)).sum())} target(s) that are "
                "not finite. Drop those rows, or choose another transformer."
            )
        return values

    def inverse(self, values: Floats) -> Floats:
        """Values in the user's unit, checked to be finite."""
        restored = self._restored(values)
        if not np.isfinite(restored).all():
            raise self._no_inverse(int((~np.isfinite(restored)).sum()))
        return restored

    def _restored(self, values: Floats) -> Floats:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # what has no inverse is looked for below
            restored = self.transformer.inverse_transform(values.reshape(-1, 1))
        return np.asarray(restored, dtype=np.float64).reshape(values.shape)

    def _no_inverse(self, count: int) -> ValueError:
        return ValueError(
            f"target_transform {self.transformer!r} has no inverse at {count} predicted value(s): the prediction goes "
            "beyond what the transformer maps to. Choose one that covers all numbers, such as 'log'."
        )

    def moments(self, mean: Floats, std: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation by quadrature."""
        found = np.empty((2, len(mean)))
        for start in range(0, len(mean), _CHUNK):
            part = slice(start, start + _CHUNK)
            values = self._restored(mean[part, None] + std[part, None] * _NODES)
            there = np.isfinite(values)
            lost = 1 - there @ _WEIGHTS
            if (lost > _LOST).any():
                raise self._no_inverse(int((lost > _LOST).sum()))
            # Nodes far in the tails may have no inverse: the others are all there is.
            values, weights = np.where(there, values, 0.0), there * _WEIGHTS / (1 - lost)[:, None]
            found[0, part] = expected = (weights * values).sum(axis=1)
            found[1, part] = np.sqrt((weights * (values - expected[:, None]) ** 2).sum(axis=1))
        return found[0], found[1]

    def covariance(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Not to be had in closed form."""
        raise ValueError(
            "return_cov is there without a target_transform and with log. For another transformer draw joint samples "
            "with sample_y."
        )


def as_target_transform(transform: Any, y: Floats) -> AsTheyAre:
    """What a user gives as target_transform, fitted to the targets."""
    if transform is None:
        return AsTheyAre()
    if isinstance(transform, str) and transform == "log":
        return Log()
    if hasattr(transform, "fit") and hasattr(transform, "inverse_transform"):
        fitted = clone(transform).fit(y[:, None])
        ends = Transformed(fitted).forward(np.array([y.min(), y.max()]))
        return Transformed(fitted, -1.0 if ends[0] > ends[1] else 1.0)
    raise ValueError(
        'target_transform must be None, "log" or a scikit-learn transformer with inverse_transform; found '
        f"{transform!r}."
    )


def quantile(transform: AsTheyAre, mean: Floats, std: Floats, level: float) -> Floats:
    """Quantile, in the user's unit, of Gaussians on the model's scale."""
    return transform.inverse(mean + transform.sign * std * ndtri(level))
