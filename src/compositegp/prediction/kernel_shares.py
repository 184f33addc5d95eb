"""Shares of kernels in a mixture of predictions: weights that maximize the log score of the mixture (stacking)."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats
from compositegp.predictive import Calibration
from compositegp.storage import storable
from compositegp.validation import check_kernel, is_real

_ROUNDS, _SETTLED = 1000, 1e-9  # of the weights, at most, and the largest change in a round at which they are found


@storable
@dataclass(frozen=True, eq=False)
class KernelShare:
    """A kernel whose predictions are mixed with those of others.

    Attributes
    ----------
    name : str
    kernel : scikit-learn kernel
    weight : float
        Between 0 and 1.
    calibration : Calibration or None
        Of its own errors.
    """

    name: str
    kernel: Kernel
    weight: float
    calibration: Calibration | None

    @property
    def active_calibration(self) -> Calibration | None:
        """The calibration, if it changes anything."""
        return None if self.calibration is None or self.calibration.is_gaussian else self.calibration

    def check(self) -> None:
        """Check the values; a ValueError says what is wrong."""
        check_kernel(self.kernel)
        if not isinstance(self.name, str) or not is_real(self.weight) or not 0 < self.weight < 1:
            raise ValueError("the share of a kernel must have a name, and a weight between 0 and 1")
        if not isinstance(self.calibration, Calibration | None):
            raise ValueError("the calibration of a kernel's share must be a Calibration or None")

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        """The values by their names, for files."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def stacking_weights(log_densities: Floats) -> Floats:
    """Weights of predictions, the log score of whose mixture they maximize.

    Each round of expectation and maximization gives a prediction the mean share that it has in the density of the
    mixture (THEORY: kernels that are hardly told apart).

    Parameters
    ----------
    log_densities : array of shape (k, m)
        Of m values that were observed, by k predictions.

    Returns
    -------
    array of shape (k,)

    Examples
    --------
    Two predictions of which each is right half of the time:

    >>> stacking_weights(np.log([[0.9, 0.1, 0.9, 0.1], [0.1, 0.9, 0.1, 0.9]])).round(3)
    array([0.5, 0.5])
    """
    log_weights = np.full(len(log_densities), -np.log(len(log_densities)))
    for _ in range(_ROUNDS):
        shares = softmax(log_weights[:, None] + log_densities, axis=0).mean(axis=1)
        before, log_weights = log_weights, np.log(np.maximum(shares, np.finfo(np.float64).tiny))
        if np.abs(np.exp(log_weights) - np.exp(before)).max() <= _SETTLED:
            break
    return np.asarray(softmax(log_weights))
