"""Factorizations and solves of PyTorch arrays, the whole batch at once."""

from typing import Any

import numpy as np

from compositegp.backend.arrays import Array, diagonals
from compositegp.backend.factorization import JITTER_END, JITTER_START, SINGULAR, Factor, SingularMatrixError

_LEAF = 64  # triangles up to this size are inverted by a solve
_REGULAR = 1e-6  # of its variance that every point keeps given the others, where products with an inverse are safe


def _torch() -> Any:
    import torch

    return torch


def cholesky(A: Array) -> Factor:
    """Cholesky factors, with a jitter where a matrix needs it."""
    torch, n = _torch(), A.shape[-1]
    matrices = A.reshape(-1, n, n)
    lower, failed = _factorize(matrices)
    jitter = torch.zeros(len(matrices), dtype=A.dtype)
    if bool(failed.any()):
        for index in torch.nonzero(failed)[:, 0].tolist():
            lower[index], jitter[index] = _factorize_with_jitter(matrices[index], index)
    return Factor(lower.reshape(A.shape), jitter.reshape(A.shape[:-2]).numpy())


def _factorize(matrices: Array) -> tuple[Array, Array]:
    """Factors, and which of them failed or have a pivot with too few correct digits."""
    # The transpose of a symmetric matrix is itself, in the order in which cuSOLVER wants it: its copy is fast.
    lower, info = _torch().linalg.cholesky_ex(matrices.mT)
    floor = (SINGULAR * diagonals(matrices).abs()).sqrt()
    return lower, (info != 0) | ~(diagonals(lower) > floor).all(dim=-1)


def _factorize_with_jitter(matrix: Array, index: int) -> tuple[Array, float]:
    jitter, scale = JITTER_START, diagonals(matrix).mean()
    while jitter <= JITTER_END * 1.01:
        raised = matrix.clone()
        diagonals(raised).add_(jitter * scale)
        lower, failed = _factorize(raised[None])
        if not bool(failed):
            return lower[0], jitter
        jitter *= 10
    raise SingularMatrixError(index)


def pivots_and_solve(A: Array, B: Array) -> tuple[Array, Array]:
    """Diagonals of Cholesky factors C, and C⁻¹ B."""
    lower, _ = cholesky(A)
    return diagonals(lower).clone(), solve_lower(lower, B)


def cholesky_and_inverse(A: Array) -> tuple[Factor, Array]:
    """Cholesky factors and their inverses, found together by products: a device is fastest at these.

    A product with an inverse loses more digits than a solve, the more the nearer a matrix is to a singular one. Where
    a matrix is not far from singular, the factors are found by solves.
    """
    torch, n = _torch(), A.shape[-1]
    matrices = A.reshape(-1, n, n)
    lower, inverse = torch.empty_like(matrices), torch.zeros_like(matrices)
    _by_halves(matrices, lower, inverse)
    floor = (_REGULAR * diagonals(matrices)).sqrt()
    if bool((diagonals(lower) > floor).all()):
        jitter = np.zeros(A.shape[:-2])
        return Factor(lower.reshape(A.shape), jitter), inverse.reshape(A.shape)
    factor = cholesky(A)
    return factor, invert_lower(factor.lower)


def _by_halves(A: Array, lower: Array, inverse: Array) -> None:
    """Factors and inverses of matrices (b, n, n), written to two arrays; the second is zero before."""
    torch, n = _torch(), A.shape[-1]
    if n <= _LEAF:
        lower.copy_(torch.linalg.cholesky_ex(A.mT)[0])
        inverse.copy_(solve_lower(lower, torch.eye(n, dtype=A.dtype, device=A.device).expand(A.shape)))
        return
    first, second = slice(0, n // 2), slice(n // 2, n)
    _by_halves(A[:, first, first], lower[:, first, first], inverse[:, first, first])
    between = torch.bmm(A[:, second, first], inverse[:, first, first].mT)
    lower[:, second, first] = between
    rest = torch.baddbmm(A[:, second, second], between, between.mT, alpha=-1.0)
    _by_halves(rest, lower[:, second, second], inverse[:, second, second])
    moved = torch.bmm(inverse[:, second, second], between)
    inverse[:, second, first].baddbmm_(moved, inverse[:, first, first], beta=0.0, alpha=-1.0)


def factorize_above(matrices: Array, floor: float) -> int | None:
    """Factorize in place; returns the index of a matrix that has a pivot under the floor, if there is one."""
    lower, info = _torch().linalg.cholesky_ex(matrices)
    failed = (info != 0) | ~(diagonals(lower) > floor).all(dim=-1)
    if bool(failed.any()):
        return int(_torch().nonzero(failed)[0, 0])
    matrices.copy_(lower)
    return None


def solve_lower(lower: Array, B: Array) -> Array:
    """lower⁻¹ B."""
    return _torch().linalg.solve_triangular(lower, B, upper=False)


def invert_lower(lower: Array) -> Array:
    """Inverses of triangular matrices, by halves: a device is fastest at products."""
    n = lower.shape[-1]
    if n <= _LEAF:
        return solve_lower(lower, _torch().eye(n, dtype=lower.dtype, device=lower.device).expand(lower.shape))
    first, second = slice(0, n // 2), slice(n // 2, n)
    inverse = _torch().zeros_like(lower)
    inverse[..., first, first] = invert_lower(lower[..., first, first])
    inverse[..., second, second] = invert_lower(lower[..., second, second])
    between = inverse[..., second, second] @ lower[..., second, first]
    inverse[..., second, first] = -(between @ inverse[..., first, first])
    return inverse


def last_rows_of_inverse(lower: Array, first: int) -> Array:
    """Rows of the inverses from `first` on."""
    # [−C₂₂⁻¹ C₂₁ C₁₁⁻¹, C₂₂⁻¹], the product with C₁₁⁻¹ by a solve
    own, across = invert_lower(lower[..., first:, first:]), lower[..., first:, :first]
    before = _torch().linalg.solve_triangular(lower[..., :first, :first], across, upper=False, left=False)
    return _torch().cat([-(own @ before), own], dim=-1)


def solve_upper(lower: Array, B: Array) -> Array:
    """lower⁻ᵀ B for a few columns."""
    return _torch().linalg.solve_triangular(lower.mT, B, upper=True)


def half_of_weighted_inverse(rows: Array, weights: Array | None) -> Array:
    """½ rowsᵀ diag(weights) rows."""
    torch, m, n = _torch(), rows.shape[-2], rows.shape[-1]
    flat = rows.reshape(-1, m, n)
    right = flat if weights is None else weights.reshape(-1, m, 1) * flat
    out = flat.new_empty((len(flat), n, n))
    return torch.baddbmm(out, flat.mT, right, beta=0.0, alpha=0.5).reshape(*rows.shape[:-2], n, n)


def subtract_products(A: Array, left: Array, right: Array) -> None:
    """A −= left rightᵀ, in one pass."""
    A.baddbmm_(left, right.mT, alpha=-1.0)


def solve_right(lower: Array, B: Array) -> Array:
    """B lower⁻ᵀ."""
    rows = B.reshape(-1, lower.shape[-1])
    return _torch().linalg.solve_triangular(lower.mT, rows, upper=True, left=False).reshape(B.shape)
