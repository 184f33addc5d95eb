"""What learning returns."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.arrays import Floats
from compositegp.learning.messages import Message, parameter_names
from compositegp.learning.progress import Progress


@dataclass(frozen=True, eq=False, repr=False)
class LearningResult:
    """Hyper-parameters and mean coefficients, with their errors, and how they were come by.

    Attributes
    ----------
    kernel : scikit-learn kernel
        A copy with the learned hyper-parameters.
    theta : array of shape (p,)
        Log of the free hyper-parameters: ``kernel.theta``.
    theta_covariance : array of shape (p, p)
        Error covariance of `theta`, the inverse of the Fisher information in the segments that were read. It takes
        their evidence for independent given what they are conditioned on; segments that are not conditioned on each
        other are known a little less well than it says.
    mean : as in `posterior`
        To be passed on to it: an `Estimated` where coefficients were learned, else the mean that was given.
    mean_coefficients : array of shape (q,)
    mean_covariance : array of shape (q, q)
        Error covariance of the coefficients, at the learned hyper-parameters.
    log_likelihood : float
        Of the segments that were read, at the learned hyper-parameters; with a Gaussian prior of the mean's
        coefficients, less what this holds against them.
    n_points, n_segments : int
        Points and segments that were read.
    n_left_out : int
        Segments among them whose estimates failed and were left out of the average.
    n_at_bound : array of shape (p,)
        Segments whose estimate of a parameter sat on a bound, and was left out for that parameter.
    converged : bool
    history : list of Progress
    messages : list of Message
        What a user has to know before trusting the result; `learn` warns of each.
    """

    kernel: Kernel
    theta: Floats
    theta_covariance: Floats
    mean: Any
    mean_coefficients: Floats
    mean_covariance: Floats
    log_likelihood: float
    n_points: int
    n_segments: int
    n_left_out: int
    n_at_bound: Floats
    converged: bool
    history: list[Progress]
    messages: list[Message] = field(default_factory=list)

    @property
    def theta_standard_errors(self) -> Floats:
        """Standard errors of `theta`, shape (p,): relative errors of the hyper-parameters themselves."""
        return np.sqrt(np.diagonal(self.theta_covariance))

    def __repr__(self) -> str:
        lines = [
            f"LearningResult from {self.n_points} points in {self.n_segments} segments"
            + ("" if self.converged else " (not converged)"),
            f"  log likelihood {self.log_likelihood / max(self.n_points, 1):.4f} a point",
        ]
        errors = self.theta_standard_errors
        for name, value, error in zip(parameter_names(self.kernel), np.exp(self.theta), errors, strict=True):
            lines.append(f"  {name:32s} {value:12.5g} ± {100 * error:.1f} %")
        for number, value in enumerate(self.mean_coefficients):
            error = np.sqrt(self.mean_covariance[number, number])
            lines.append(f"  {f'mean coefficient {number}':32s} {value:12.5g} ± {error:.2g}")
        return "\n".join(lines)
