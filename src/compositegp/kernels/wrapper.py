"""A kernel around another one, which sees a function of the inputs: some columns of them, or points of a sphere."""

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from compositegp.backend import Array, Floats
from compositegp.kernels.evaluation import Linearized, diagonal, gram, linearize, rule
from compositegp.kernels.strips import Strip, covariances_of_pairs


class KernelWrapper(Kernel):  # type: ignore[misc]
    """A kernel k(view(x), view(x′)) with the hyper-parameters of the kernel k inside.

    A subclass stores the kernel as ``kernel`` and what else its constructor takes, and defines `view`. It is positive
    definite because k is.
    """

    kernel: Kernel

    @abstractmethod
    def view(self, X: Array) -> Array:
        """What the kernel inside sees of points (..., n, d): an array of shape (..., n, d′)."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of this kernel and, with `deep`, of the kernel inside."""
        params: dict[str, Any] = dict(vars(self))
        if deep:
            params.update((f"kernel__{name}", value) for name, value in self.kernel.get_params().items())
        return params

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """The hyper-parameters of the kernel inside."""
        return [
            Hyperparameter(f"kernel__{inner.name}", inner.value_type, inner.bounds, inner.n_elements)
            for inner in self.kernel.hyperparameters
        ]

    @property
    def theta(self) -> Floats:
        """Log of the free hyper-parameters, shape (p,)."""
        return np.asarray(self.kernel.theta, dtype=np.float64)

    @theta.setter
    def theta(self, theta: Floats) -> None:
        self.kernel.theta = theta

    @property
    def bounds(self) -> Floats:
        """Log of the bounds on the free hyper-parameters, shape (p, 2)."""
        return np.asarray(self.kernel.bounds, dtype=np.float64)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        mine, theirs = vars(self), vars(other)
        return all(np.array_equal(np.atleast_1d(mine[name]), np.atleast_1d(theirs[name])) for name in mine)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Kernel matrix (n, m) and, with `eval_gradient`, its gradient (n, n, p)."""
        return self.kernel(
            self.view(np.atleast_2d(X)),
            None if Y is None else self.view(np.atleast_2d(Y)),
            eval_gradient=eval_gradient,
        )

    def diag(self, X: Any) -> Any:
        """Diagonal of the kernel matrix, shape (n,)."""
        return self.kernel.diag(self.view(np.atleast_2d(X)))

    @property
    def requires_vector_input(self) -> bool:
        """True: there is a view only of points with coordinates."""
        return True


@rule(gram, KernelWrapper)
def _view_gram(kernel: KernelWrapper, X: Array, Y: Array | None = None) -> Array:
    return gram(kernel.kernel, kernel.view(X), None if Y is None else kernel.view(Y))


@rule(diagonal, KernelWrapper)
def _view_diagonal(kernel: KernelWrapper, X: Array, *, noise: bool = True) -> Array:
    return diagonal(kernel.kernel, kernel.view(X), noise=noise)


@rule(linearize, KernelWrapper)
def _view_linearize(kernel: KernelWrapper, X: Array) -> Linearized:
    return linearize(kernel.kernel, kernel.view(X))


@rule(covariances_of_pairs, KernelWrapper)
def _view_of_pairs(kernel: KernelWrapper, X: Array) -> Strip | None:
    return covariances_of_pairs(kernel.kernel, kernel.view(X))
