"""What a user has to know about the result of learning before trusting it."""

from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel

from compositegp.learning.task import Found
from compositegp.linalg import NumericalWarning


class Message(NamedTuple):
    """A word about the result of learning.

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


def messages_about(found: Found, kernel: Kernel, interrupted: bool) -> list[Message]:
    """Words about what was found."""
    messages = []
    if interrupted:
        messages.append(Message("Learning was interrupted; this is the best so far.", ConvergenceWarning))
    told = []
    names = parameter_names(kernel)
    for name, value, (lower, upper) in zip(names, found.theta, kernel.bounds, strict=True):
        if min(value - lower, upper - value) < 1e-6:
            told.append(name)
            bound = "lower" if value - lower < upper - value else "upper"
            text = (
                f"Hyper-parameter {name} ended on its {bound} bound, {np.exp(value):.3g}. Widen the bound, fix the "
                "parameter, or leave that part of the kernel out."
            )
            messages.append(Message(text, ConvergenceWarning, (name,)))
    errors = np.sqrt(np.diagonal(found.theta_covariance))
    vague = tuple(name for name, error in zip(names, errors, strict=True) if error > 1 and name not in told)
    if vague and not interrupted:
        text = (
            f"Hyper-parameter(s) {', '.join(vague)}: the data that were read do not tell the order of magnitude, or "
            "cannot tell one from another. Fix what is not needed, or leave it out of the kernel."
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
