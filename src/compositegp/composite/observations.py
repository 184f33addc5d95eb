"""Observations: checked data under a model, as the terms of a composite read them."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Array, Floats, current_device
from compositegp.composite.terms import Stack
from compositegp.means import MeanModel, as_mean
from compositegp.validation import check_kernel, check_noise_variance, check_points, check_targets


@dataclass(frozen=True, eq=False)
class Observations:
    """Checked data under a model.

    Attributes
    ----------
    kernel : scikit-learn kernel
        Its white part is the noise of the observations.
    mean : MeanModel
    X : array of shape (n, d)
    columns : array of shape (n, q + 1)
        Basis functions of the mean, and last y less its known mean.
    noise_variance : array of shape (n,) or None
        Noise of each point, beside the kernel's own.
    sent : dict
        What of these is on a device already; shared by the copies with other kernels.
    """

    kernel: Kernel
    mean: MeanModel
    X: Floats
    columns: Floats
    noise_variance: Floats | None
    sent: dict[tuple[str, str], Array] = field(default_factory=dict, repr=False)

    @classmethod
    def checked(
        cls,
        kernel: Any,
        X: Any,
        y: Any,
        *,
        mean: Any,
        noise_variance: Any,
        n_columns: int | None = None,
        names: tuple[str, str] = ("X", "y"),
    ) -> "Observations":
        """Build from what a user gives; bad input raises a ValueError that names it. The kernel is copied."""
        kernel, mean = clone(check_kernel(kernel)), as_mean(mean)
        points = check_points(X, names[0], n_columns)
        residuals = check_targets(y, len(points), names[1]) - mean.values(points)
        columns = np.concatenate([mean.columns(points), residuals[:, None]], axis=1)
        return cls(kernel, mean, points, columns, check_noise_variance(noise_variance, len(points)))

    def take(self, indices: Any) -> "Observations":
        """Some of the observations, in the order given."""
        noise = self.noise_variance
        return replace(
            self,
            X=self.X[indices],
            columns=self.columns[indices],
            noise_variance=None if noise is None else noise[indices],
            sent={},
        )

    def rows(self, name: str, stack: Stack) -> Array:
        """Rows of "X", "columns" or "noise_variance" for blocks, where the terms are worked on: (blocks, n, ...)."""
        values, device = getattr(self, name), current_device()
        if device is None:
            return values[stack.indices]
        key = (device.name, name)
        if key not in self.sent:
            if not device.holds(values.size):
                return device.send(values[stack.indices])
            self.sent[key] = device.send(values)
        return self.sent[key][device.send(stack.indices)]

    def __getstate__(self) -> dict[str, Any]:
        """What is on a device stays there."""
        return {**vars(self), "sent": {}}

    def with_kernel(self, kernel: Kernel) -> "Observations":
        """The same data under another kernel."""
        return replace(self, kernel=kernel)
