"""Results of learning: estimates with their errors, and messages about how far to trust them."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, Indices, NumericalWarning, invert_information
from compositegp.learning.stopping import on_bound


class Progress(NamedTuple):
    """The state of learning after a step; a callback of `learn` receives it.

    Attributes
    ----------
    n_segments : int
        Segments read so far.
    n_points : float
        Points in them.
    log_likelihood : float
        Per point.
    theta : array of shape (p,)
        Log of the hyper-parameters.
    standard_errors : array of shape (p,)
        Of `theta`.
    information : array of shape (p, p)
        Fisher information about `theta` in the segments read so far: Λ of the paper.

    Examples
    --------
    >>> from compositegp import learn, segment
    >>> from sklearn.gaussian_process.kernels import WhiteKernel
    >>> X, steps = np.arange(64.0)[:, None], []
    >>> _ = learn(WhiteKernel(), X, np.cos(X[:, 0]), segment(X, 32), callback=steps.append)
    >>> steps[-1].n_points, steps[-1].standard_errors.round(2)
    (64.0, array([0.18]))
    """

    n_segments: int
    n_points: float
    log_likelihood: float
    theta: Floats
    standard_errors: Floats
    information: Floats


@dataclass(frozen=True, eq=False)
class Estimate:
    """The estimate so far: see `LearningResult` for the attributes."""

    theta: Floats
    theta_information: Floats
    coefficients: Floats
    coefficient_covariance: Floats
    log_likelihood: float
    n_points: float
    n_segments: int
    converged: bool
    n_left_out: int
    n_at_bound: Indices
    warnings: list[str] = field(default_factory=list)
    jitter: float = 0.0

    @cached_property
    def theta_covariance(self) -> Floats:
        """Error covariance of `theta`, shape (p, p): infinite if the data do not determine it."""
        return invert_information(self.theta_information)


class Message(NamedTuple):
    """A remark about the result of learning.

    Attributes
    ----------
    text : str
    category : subclass of Warning
    parameters : tuple of str
        The hyper-parameters that it is about.
    """

    text: str
    category: type[Warning]
    parameters: tuple[str, ...] = ()


def messages_about(found: Estimate, kernel: Kernel, interrupted: bool) -> list[Message]:
    """Remarks about an estimate."""
    messages = []
    if interrupted:
        messages.append(Message("Learning was interrupted; this is the best so far.", ConvergenceWarning))
    named = []
    names = parameter_names(kernel)
    stuck = on_bound(found.theta, kernel.bounds)
    for name, value, (lower, upper), at_bound in zip(names, found.theta, kernel.bounds, stuck, strict=True):
        if at_bound:
            named.append(name)
            bound = "lower" if value - lower < upper - value else "upper"
            text = (
                f"Hyper-parameter {name} ended on its {bound} bound, {np.exp(value):.3g}. Widen the bound, fix the "
                "parameter, or leave that part of the kernel out."
            )
            messages.append(Message(text, ConvergenceWarning, (name,)))
    errors = np.sqrt(np.diagonal(found.theta_covariance))
    vague = tuple(name for name, error in zip(names, errors, strict=True) if error > 1 and name not in named)
    if vague and not interrupted:
        text = (
            f"Hyper-parameter(s) {', '.join(vague)}: the data that were read do not determine the order of magnitude, "
            "or cannot distinguish one from another. Fix a parameter that is not needed, or leave it out of the kernel."
        )
        messages.append(Message(text, ConvergenceWarning, vague))
    if found.jitter:
        text = (
            f"The covariance of a segment under kernel {kernel} is singular in double precision; up to "
            f"{found.jitter:.0e} of its mean diagonal was added as noise, which distorts the estimates. Add a "
            "WhiteKernel to the kernel."
        )
        messages.append(Message(text, NumericalWarning))
    messages += [Message(text, ConvergenceWarning) for text in found.warnings]
    if not found.converged and not interrupted:
        text = "Learning did not converge; the result is the best that was found."
        messages.append(Message(text, ConvergenceWarning))
    return messages


def parameter_names(kernel: Kernel) -> list[str]:
    """Names of the entries of ``kernel.theta``, as in ``kernel.get_params()``, numbered where there are several."""
    names = []
    for hyperparameter in kernel.hyperparameters:
        if not hyperparameter.fixed:
            single = hyperparameter.n_elements == 1
            names += [
                hyperparameter.name if single else f"{hyperparameter.name}[{position}]"
                for position in range(hyperparameter.n_elements)
            ]
    return names


@dataclass(frozen=True, eq=False, repr=False)
class LearningResult:
    """Hyper-parameters and mean coefficients, with their errors, and how they were found.

    Attributes
    ----------
    kernel : scikit-learn kernel
        A copy with the learned hyper-parameters.
    theta : array of shape (p,)
        Log of the free hyper-parameters: ``kernel.theta``.
    theta_information : array of shape (p, p)
        Fisher information about `theta` in the segments that were read.
    theta_covariance : array of shape (p, p)
        Error covariance of `theta`. By `CompositeLikelihood` the inverse of the Fisher information in the segments that
        were read or, where these are not conditioned on each other, Godambe's. By `FisherAverage` the inverse in any
        case, and the true errors are a little larger.
    mean : as in `posterior`
        The mean to pass to `posterior`: an `Estimated` if coefficients were learned, otherwise the given mean.
    mean_coefficients : array of shape (q,), or (q, t) for t outputs
    mean_covariance : array of shape (q, q)
        Error covariance of the coefficients, at the learned hyper-parameters.
    log_likelihood : float
        Of the segments that were read, at the learned hyper-parameters. A Gaussian prior of the coefficients of the
        mean reduces it by its penalty.
    n_points, n_segments : int
        Points and segments that were read.
    n_left_out : int
        Segments among them whose estimates failed and were left out of the average.
    n_at_bound : array of shape (p,)
        For each parameter, the segments whose estimate was on a bound, and was left out of the average.
    converged : bool
    history : list of Progress
    messages : list of Message
        Read these before trusting the result; `learn` warns of each.

    Examples
    --------
    >>> from compositegp import learn, segment
    >>> from sklearn.gaussian_process.kernels import WhiteKernel
    >>> X = np.arange(64.0)[:, None]
    >>> result = learn(WhiteKernel(), X, np.cos(X[:, 0]), segment(X, 32))
    >>> f"{result.kernel.noise_level:.3f} = {np.mean(np.cos(X) ** 2):.3f}", result.converged
    ('0.508 = 0.508', True)
    """

    kernel: Kernel
    theta: Floats
    theta_information: Floats
    theta_covariance: Floats
    mean: Any
    mean_coefficients: Floats
    mean_covariance: Floats
    log_likelihood: float
    n_points: int
    n_segments: int
    n_left_out: int
    n_at_bound: Indices
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
            shown = ", ".join(f"{one:.5g}" for one in np.atleast_1d(value))
            lines.append(f"  {f'mean coefficient {number}':32s} {shown:>12s} ± {error:.2g}")
        return "\n".join(lines)
