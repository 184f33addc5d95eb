"""Targets on another scale: the model is Gaussian there, and what is predicted is in the user's unit."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.base import clone

from compositegp.arrays import Floats

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_LARGEST_EXPONENT = 700.0


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
        expected = self.inverse(mean + 0.5 * std**2)
        return expected, expected * np.sqrt(np.expm1(np.minimum(std**2, _LARGEST_EXPONENT)))

    def covariance(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Mean and covariance of log-normal variables."""
        expected = self.inverse(mean + 0.5 * np.diagonal(covariance))
        return expected, np.outer(expected, expected) * np.expm1(np.minimum(covariance, _LARGEST_EXPONENT))


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
        restored = np.asarray(self.transformer.inverse_transform(values.reshape(-1, 1)), dtype=np.float64)
        restored = restored.reshape(values.shape)
        if not np.isfinite(restored).all():
            raise ValueError(
                f"target_transform {self.transformer!r} has no inverse at "
                f"{int((~np.isfinite(restored)).sum())} predicted value(s), in the tails of the prediction. Choose a "
                "transformer that covers all numbers, such as log, or a Yeo–Johnson PowerTransformer."
            )
        return restored

    def moments(self, mean: Floats, std: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation by quadrature."""
        values = self.inverse(mean[:, None] + std[:, None] * _NODES)
        expected = values @ _WEIGHTS
        return expected, np.sqrt((values - expected[:, None]) ** 2 @ _WEIGHTS)

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
