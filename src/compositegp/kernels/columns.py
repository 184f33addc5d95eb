"""A kernel on some of the columns, so that space, time and covariates can each have their own kernel."""

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from compositegp.backend import Array, Floats
from compositegp.kernels.evaluation import Linearized, diagonal, gram, linearize, rule


class OnColumns(Kernel):  # type: ignore[misc]
    """A kernel that sees only some columns of its inputs.

    Parameters
    ----------
    kernel : scikit-learn kernel
        The kernel to apply.
    columns : int or list of int
        The columns, counted from zero, that it is applied to.

    Examples
    --------
    A space × time model of points (longitude, latitude, hour):

    >>> from sklearn.gaussian_process.kernels import RBF, Matern
    >>> kernel = OnColumns(Matern(nu=1.5), [0, 1]) * OnColumns(RBF(), 2)
    >>> kernel(np.zeros((4, 3))).shape
    (4, 4)
    """

    def __init__(self, kernel: Kernel, columns: Any) -> None:
        self.kernel = kernel
        self.columns = columns

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of this kernel and, with `deep`, of the kernel inside."""
        params = {"kernel": self.kernel, "columns": self.columns}
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
        return (
            isinstance(other, OnColumns)
            and self.kernel == other.kernel
            and np.array_equal(np.atleast_1d(self.columns), np.atleast_1d(other.columns))
        )

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Kernel matrix (n, m) and, with `eval_gradient`, its gradient (n, n, p)."""
        return self.kernel(
            self.select(np.atleast_2d(X)),
            None if Y is None else self.select(np.atleast_2d(Y)),
            eval_gradient=eval_gradient,
        )

    def diag(self, X: Any) -> Any:
        """Diagonal of the kernel matrix, shape (n,)."""
        return self.kernel.diag(self.select(np.atleast_2d(X)))

    def is_stationary(self) -> bool:
        """Whether the kernel inside is stationary."""
        return bool(self.kernel.is_stationary())

    @property
    def requires_vector_input(self) -> bool:
        """True: columns exist only for points with coordinates."""
        return True

    def __repr__(self) -> str:
        return f"OnColumns({self.kernel}, {self.columns})"

    def select(self, X: Array) -> Array:
        """The columns of `X`, shape (..., n, d), that the kernel sees."""
        columns = np.atleast_1d(self.columns)
        if columns.ndim != 1 or not columns.size or columns.dtype.kind not in "iu" or columns.min() < 0:
            raise ValueError(f"columns must be column numbers counted from zero; found {self.columns!r}.")
        if columns.max() >= X.shape[-1]:
            raise ValueError(
                f"kernel {self} needs column {columns.max()}, but the points have {X.shape[-1]} column(s), "
                "counted from zero. Give the points all the columns that the kernel names."
            )
        return X[..., columns if isinstance(X, np.ndarray) else columns.tolist()]


@rule(gram, OnColumns)
def _columns_gram(kernel: OnColumns, X: Array, Y: Array | None = None) -> Array:
    return gram(kernel.kernel, kernel.select(X), None if Y is None else kernel.select(Y))


@rule(diagonal, OnColumns)
def _columns_diagonal(kernel: OnColumns, X: Array, *, noise: bool = True) -> Array:
    return diagonal(kernel.kernel, kernel.select(X), noise=noise)


@rule(linearize, OnColumns)
def _columns_linearize(kernel: OnColumns, X: Array) -> Linearized:
    return linearize(kernel.kernel, kernel.select(X))
