"""A kernel lifted from points to functionals: a functional is a point of a larger space, and this is its covariance.

A row of the larger space has the d coordinates of a point, or of the center of a functional, and one number more: −1
for a plain point, else which functional it is. So functionals go wherever points go, and everything that asks a kernel
for covariances works with them. Rows of d numbers alone are plain points too.

    cov(Σ_i v_i D_i f(x_i), Σ_j w_j D_j f(x_j)) = Σ_ij v_i w_j D_i D′_j k(x_i, x_j)
"""

from collections.abc import Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Array, Floats, Indices, add_to_diagonal, fetch, like
from compositegp.functionals.atom_classes import POINT, AtomClass, classes_of
from compositegp.functionals.functional_list import Functionals
from compositegp.functionals.part_kernels import MEAN, part_of
from compositegp.kernels import (
    DataScale,
    KernelWrapper,
    Linearized,
    derivative,
    diagonal,
    gram,
    in_length_scales,
    largest_covariance,
    linearize,
    metric,
    noise_variance,
    register_storable,
    rule,
    typical_values,
)

_HELD = 2**22  # covariances of atoms that are held at once
_STEP = 2e-3  # of log hyper-parameters, by which covariances of functionals are differentiated


@register_storable
class OnFunctionals(KernelWrapper):
    """A kernel on rows that stand for points and for functionals.

    Parameters
    ----------
    kernel : scikit-learn kernel
        Of points.
    functionals : Functionals
        Those that rows may name.

    Examples
    --------
    >>> from compositegp import functionals as F
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> OnFunctionals(RBF(2.0), F.derivative([[0.0]], 0))([[0.0, 0.0]])
    array([[0.25]])
    """

    def __init__(self, kernel: Kernel, functionals: Functionals) -> None:
        self.kernel = kernel
        self.functionals = functionals

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, OnFunctionals)
            and self.kernel == other.kernel
            and self.functionals is other.functionals
        )

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Covariances (n, m) and, with `eval_gradient`, their gradient (n, n, p)."""
        rows = np.atleast_2d(np.asarray(X, dtype=np.float64))
        if eval_gradient:
            found = linearize(self, rows)
            return found.value, np.moveaxis(found.jacobian(), -3, -1)
        return gram(self, rows, None if Y is None else np.atleast_2d(np.asarray(Y, dtype=np.float64)))

    def diag(self, X: Any) -> Any:
        """Diagonal of the covariance matrix, shape (n,)."""
        return diagonal(self, np.atleast_2d(np.asarray(X, dtype=np.float64)))

    def is_stationary(self) -> bool:
        """False: a functional is at one place."""
        return False

    def __repr__(self) -> str:
        return repr(self.kernel)

    def view(self, X: Array) -> Array:
        """Points and centers of functionals: the first d columns of rows."""
        return X[..., : self.functionals.n_columns]

    def numbers(self, X: Array) -> Indices | None:
        """The functional that each row names, −1 for a plain point: shape (..., n); None if all are plain."""
        if X.shape[-1] == self.functionals.n_columns:
            return None
        found = fetch(X[..., -1]).astype(np.intp)
        return found if (found >= 0).any() else None

    def part(self, first: str, second: str) -> Kernel | None:
        """The kernel of the covariance between two parts; None where it is zero."""
        return None if MEAN in (first, second) else part_of(self.kernel, [first, second])


class _Atoms(NamedTuple):
    """Rows of one class: points (..., rows, count, d) and weights (..., rows, count), None if all are one."""

    points: Array
    weights: Array | None
    kind: AtomClass

    def some(self, rows: slice) -> "_Atoms":
        weights = None if self.weights is None else self.weights[..., rows, :]
        return _Atoms(self.points[..., rows, :, :], weights, self.kind)

    def run(self, positions: Indices) -> tuple[Array, Array | None]:
        if len(positions) == self.kind.size:
            return self.points, self.weights
        chosen = positions.tolist()
        return self.points[..., chosen, :], None if self.weights is None else self.weights[..., chosen]


class _Side:
    """Rows sorted by class; every set of the batch has the same classes in the same places."""

    def __init__(self, kernel: OnFunctionals, X: Array, numbers: Indices | None) -> None:
        self.kernel, self.X = kernel, X
        self.numbers = np.full(X.shape[:-1], -1) if numbers is None else numbers
        self.layout = self.classes(kernel, self.numbers)
        self.layout = self.layout.reshape(-1, self.layout.shape[-1])[0]

    @staticmethod
    def classes(kernel: OnFunctionals, numbers: Indices) -> Indices:
        known = np.append(classes_of(kernel.functionals).numbers, POINT)
        return np.asarray(known[numbers])

    def groups(self) -> Iterator[tuple[Indices, _Atoms]]:
        table = self.kernel.functionals
        for number in np.unique(self.layout):
            rows = np.flatnonzero(self.layout == number)
            kind = classes_of(table).kinds[number]
            if number == POINT:
                points = self.kernel.view(self.X)
                points = points if len(rows) == len(self.layout) else points[..., rows.tolist(), :]
                yield rows, _Atoms(points[..., None, :], None, kind)
                continue
            own = self.numbers[..., rows, None]
            atoms = table.starts[own] + np.arange(kind.size)
            inside = atoms < table.starts[own + 1]
            atoms = np.where(inside, atoms, table.starts[own])
            weights = np.where(inside, table.weights[atoms], 0.0)
            yield rows, _Atoms(like(table.points[atoms], self.X), like(weights, self.X), kind)


def _covariances(kernel: OnFunctionals, X: Array, Y: Array) -> Array:
    """Covariances of the noise-free functionals of rows, shape (..., n, m)."""
    first, second = kernel.numbers(X), kernel.numbers(Y)
    if first is None and second is None:
        return gram(kernel.kernel, kernel.view(X), kernel.view(Y))
    if not (_alike(kernel, first) and _alike(kernel, second)):
        xp = array_namespace(X)
        sets = X.reshape(-1, *X.shape[-2:])
        others = [Y] * len(sets) if Y.ndim == 2 else list(Y.reshape(-1, *Y.shape[-2:]))
        found = [_covariances(kernel, x, y) for x, y in zip(sets, others, strict=True)]
        return xp.reshape(xp.stack(found), (*X.shape[:-1], Y.shape[-2]))
    left, right = _Side(kernel, X, first), _Side(kernel, Y, second)
    K = array_namespace(X).empty((*X.shape[:-1], Y.shape[-2]), dtype=X.dtype, device=X.device)
    for rows, atoms in left.groups():
        for columns, sites in right.groups():
            block = _block(kernel, atoms, sites)
            if len(rows) == K.shape[-2] and len(columns) == K.shape[-1]:
                return block
            K[..., like(rows[:, None], K), like(columns[None, :], K)] = block
    return K


def _alike(kernel: OnFunctionals, numbers: Indices | None) -> bool:
    if numbers is None or numbers.ndim == 1:
        return True
    layouts = _Side.classes(kernel, numbers).reshape(-1, numbers.shape[-1])
    return bool((layouts == layouts[0]).all())


def _block(kernel: OnFunctionals, left: _Atoms, right: _Atoms) -> Array:
    """Covariances between the rows of two classes, some of the rows at a time."""
    xp = array_namespace(left.points)
    n, m = left.points.shape[-3], right.points.shape[-3]
    step = max(1, _HELD // max(1, left.kind.size * right.kind.size * min(n, 64)))
    if m > step:
        blocks = [_block(kernel, left, right.some(slice(start, start + step))) for start in range(0, m, step)]
        return xp.concat(blocks, axis=-1)
    step = max(1, _HELD // max(1, left.kind.size * right.kind.size * m))
    if n > step and left.kind.size * right.kind.size > 1:
        blocks = [_block(kernel, left.some(slice(start, start + step)), right) for start in range(0, n, step)]
        return xp.concat(blocks, axis=-2)
    total: Any = None
    for one in left.kind.runs:
        for other in right.kind.runs:
            inner = kernel.part(one.part, other.part)
            if inner is None:
                continue
            points, weights = left.run(one.positions)
            sites, shares = right.run(other.positions)
            a, b = points.shape[-2], sites.shape[-2]
            K = derivative(inner, _flat(points), _flat(sites), one.column, other.column)
            K = xp.reshape(K, (*K.shape[:-2], n, a, m, b))
            K = K[..., 0] if shares is None else xp.sum(K * shares[..., None, None, :, :], axis=-1)
            K = K[..., 0, :] if weights is None else xp.sum(K * weights[..., :, :, None], axis=-2)
            total = K if total is None else total + K
    if total is None:
        batch = left.points.shape[:-3]
        return xp.zeros((*batch, n, m), dtype=left.points.dtype, device=left.points.device)
    return total


def _flat(points: Array) -> Array:
    """Points (..., rows, count, d) as (..., rows · count, d)."""
    return points.reshape(*points.shape[:-3], points.shape[-3] * points.shape[-2], points.shape[-1])


@rule(gram, OnFunctionals)
def _gram(kernel: OnFunctionals, X: Array, Y: Array | None = None) -> Array:
    if Y is not None:
        return _covariances(kernel, X, Y)
    if kernel.numbers(X) is None:
        return gram(kernel.kernel, kernel.view(X))
    K = _covariances(kernel, X, X)
    add_to_diagonal(K, noise_variance(kernel, X))
    return K


@rule(diagonal, OnFunctionals)
def _diagonal(kernel: OnFunctionals, X: Array, *, noise: bool = True) -> Array:
    numbers = kernel.numbers(X)
    if numbers is None:
        return diagonal(kernel.kernel, kernel.view(X), noise=noise)
    xp = array_namespace(X)
    side = _Side(kernel, X.reshape(-1, X.shape[-1]), numbers.ravel())
    variances = xp.empty((len(side.layout),), dtype=X.dtype, device=X.device)
    for rows, atoms in side.groups():
        variances[like(rows, variances)] = _variances(kernel, atoms)
    variances = xp.reshape(variances, X.shape[:-1])
    return variances + noise_variance(kernel, X) if noise else variances


def _variances(kernel: OnFunctionals, atoms: _Atoms) -> Array:
    xp = array_namespace(atoms.points)
    step = max(1, _HELD // atoms.kind.size**2)
    count = atoms.points.shape[-3]
    if count > step:
        parts = [_variances(kernel, atoms.some(slice(start, start + step))) for start in range(0, count, step)]
        return xp.concat(parts, axis=-1)
    total: Any = xp.zeros(atoms.points.shape[:-2], dtype=atoms.points.dtype, device=atoms.points.device)
    if atoms.kind.is_value:
        inner = kernel.part(atoms.kind.runs[0].part, atoms.kind.runs[0].part)
        if inner is None:
            return total
        values = diagonal(inner, atoms.points[..., 0, :], noise=False)
        return values if atoms.weights is None else values * atoms.weights[..., 0] ** 2
    for one in atoms.kind.runs:
        for other in atoms.kind.runs:
            inner = kernel.part(one.part, other.part)
            if inner is None:
                continue
            (points, weights), (sites, shares) = atoms.run(one.positions), atoms.run(other.positions)
            assert weights is not None
            assert shares is not None
            K = derivative(inner, points, sites, one.column, other.column)
            total = total + xp.sum(xp.sum(K * shares[..., None, :], axis=-1) * weights, axis=-1)
    return total


@rule(noise_variance, OnFunctionals)
def _noise_variance(kernel: OnFunctionals, X: Array) -> Array:
    numbers = kernel.numbers(X)
    if numbers is None:
        return noise_variance(kernel.kernel, kernel.view(X))
    # Each value of f that a functional weighs is an observation with noise of its own; derivatives and parts have none.
    chosen = kernel.functionals[np.maximum(numbers.ravel(), 0)]
    points = fetch(kernel.view(X)).reshape(-1, chosen.n_columns)
    own = chosen.weights**2 * chosen.has_noise * noise_variance(kernel.kernel, chosen.points)
    summed = np.bincount(chosen.owners, own, len(chosen))
    found = np.where(numbers.ravel() < 0, noise_variance(kernel.kernel, points), summed)
    return like(found.reshape(numbers.shape), X)


@rule(linearize, OnFunctionals)
def _linearize(kernel: OnFunctionals, X: Array) -> Linearized:
    if kernel.numbers(X) is None:
        return linearize(kernel.kernel, kernel.view(X))
    theta = kernel.theta

    def moved(number: int, by: float) -> Array:
        changed = theta.copy()
        changed[number] += by
        return gram(OnFunctionals(kernel.kernel.clone_with_theta(changed), kernel.functionals), X)

    @cache
    def slope(number: int) -> Array:
        # A central difference of fourth order: about eleven digits
        near = moved(number, _STEP) - moved(number, -_STEP)
        far = moved(number, 2 * _STEP) - moved(number, -2 * _STEP)
        return (8 * near - far) / (12 * _STEP)

    return Linearized.of_matrices(gram(kernel, X), [partial(slope, number) for number in range(len(theta))])


@rule(in_length_scales, OnFunctionals)
def _in_length_scales(kernel: OnFunctionals, X: Floats) -> Floats:
    return in_length_scales(kernel.kernel, kernel.view(X))


@rule(metric, OnFunctionals)
def _metric(kernel: OnFunctionals, d: int) -> tuple[float, Floats]:
    variance, inverse_squares = metric(kernel.kernel, kernel.functionals.n_columns)
    return variance, np.append(inverse_squares, np.zeros(d - kernel.functionals.n_columns))


@rule(largest_covariance, OnFunctionals)
def _largest_covariance(kernel: OnFunctionals, gaps: Floats) -> Floats:
    return np.full(len(gaps), np.inf)  # the gap to a center bounds nothing


@rule(typical_values, OnFunctionals)
def _typical_values(kernel: OnFunctionals, scale: DataScale) -> dict[str, Any]:
    own = scale._replace(spreads=scale.spreads[: kernel.functionals.n_columns])
    return {f"kernel__{name}": value for name, value in typical_values(kernel.kernel, own).items()}
