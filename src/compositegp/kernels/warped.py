"""Kernels whose distances are not those of the columns: which points are near to them."""

from abc import ABC, abstractmethod

import numpy as np
from sklearn.gaussian_process.kernels import Exponentiation, Kernel, Product, Sum

from compositegp.backend import Array, Floats, Indices
from compositegp.kernels.columns import OnColumns


class Warped(ABC):
    """A kernel that equals another kernel, ``inside``, of a function of the points, ``view``.

    Distances between views, in the length scales of the kernel inside, then say which points are near.
    """

    @abstractmethod
    def view(self, X: Array) -> Array:
        """What the kernel inside sees of points (..., n, d): an array of shape (..., n, d′)."""

    @abstractmethod
    def view_slope(self, X: Array, column: int) -> Array:
        """Derivative of the view in a column of points (..., n, d): an array of shape (..., n, d′)."""

    @property
    @abstractmethod
    def inside(self) -> Kernel:
        """The kernel of the views."""

    @property
    @abstractmethod
    def chart(self) -> tuple[object, ...]:
        """What decides the view: two kernels with the same chart, on the same columns, have the same view."""


def is_warped(kernel: Kernel) -> bool:
    """Whether a part of a kernel is `Warped`: boxes in its columns then say nothing about distances.

    Examples
    --------
    >>> from compositegp.kernels import OnSphere
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> is_warped(OnSphere(RBF()) + WhiteKernel()), is_warped(RBF())
    (True, False)
    """
    if isinstance(kernel, Warped):
        return True
    inner = [getattr(kernel, name) for name in ("k1", "k2", "kernel") if hasattr(kernel, name)]
    return any(isinstance(one, Kernel) and is_warped(one) for one in inner)


def unwarped(kernel: Kernel, X: Floats) -> tuple[Kernel, Floats]:
    """A kernel that is not warped, and points for it, that give the same covariances.

    Parameters
    ----------
    kernel : scikit-learn kernel
    X : array of shape (n, d)

    Returns
    -------
    scikit-learn kernel
        Of `OnColumns`, where the kernel was warped.
    array of shape (n, d + d′)
        The points and, beside them, what the warped parts of the kernel see.

    Examples
    --------
    >>> from compositegp.kernels import OnSphere
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> kernel, points = unwarped(OnSphere(RBF(9.0)), np.array([[0.0, 90.0]]))
    >>> kernel, points.round(1)
    (OnColumns(RBF(length_scale=9), [2, 3, 4]), array([[   0.,   90.,    0.,    0., 6371.]]))
    """
    if not is_warped(kernel):
        return kernel, X
    views = _Views(X)
    plain = views.plain(kernel, np.arange(X.shape[1]))
    return plain, np.concatenate(views.parts, axis=1)


class _Views:
    """Points, and what the parts of a kernel see of them."""

    def __init__(self, X: Floats) -> None:
        self.parts = [X]
        self._known: dict[object, list[int]] = {}

    def plain(self, kernel: Kernel, columns: Indices) -> Kernel:
        """The kernel on the columns of the parts, of a kernel on some of the columns of X."""
        if isinstance(kernel, Sum | Product):
            return type(kernel)(self.plain(kernel.k1, columns), self.plain(kernel.k2, columns))
        if isinstance(kernel, Exponentiation):
            return Exponentiation(self.plain(kernel.kernel, columns), kernel.exponent)
        if isinstance(kernel, OnColumns):
            return self.plain(kernel.kernel, kernel.view(columns[None, :])[0])
        if not isinstance(kernel, Warped):
            return OnColumns(kernel, columns.tolist())
        key = (kernel.chart, tuple(columns.tolist()))
        if key not in self._known:
            start = sum(part.shape[1] for part in self.parts)
            self.parts.append(kernel.view(np.ascontiguousarray(self.parts[0][:, columns])))
            self._known[key] = list(range(start, start + self.parts[-1].shape[1]))
        return OnColumns(kernel.inside, self._known[key])
