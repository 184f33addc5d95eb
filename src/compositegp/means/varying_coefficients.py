"""Random effects: how much the coefficients of a mean vary from one neighborhood to another."""

import numpy as np

from compositegp.backend import Floats
from compositegp.means.least_squares import NormalEquations

_ITERATIONS = 500
_CONVERGED = 1e-4  # relative change of the spread at which the iteration stops
_STARTING_SHARE = 1.0  # starting variance of a coefficient, over its mean squared deviation between blocks


def fit_random_effects(normal: NormalEquations) -> tuple[Floats, Floats]:
    """Mean β₀ (q, t) and covariance T (q, q) of the coefficients β_k ~ N(β₀, T) of blocks, by maximum likelihood (EM).

    With the normal equations A_k = FᵀΣ⁻¹F and b_k = FᵀΣ⁻¹y of each block, V_k = (A_k + T⁻¹)⁻¹ and
    m_k = V_k (b_k + T⁻¹ β₀), each step sets β₀ to the mean of m_k and T to that of V_k + (m_k − β₀)(m_k − β₀)ᵀ. The
    outputs share T (docs/theory.md, "A mean that varies").

    Parameters
    ----------
    normal : NormalEquations
        Of B blocks: information (B, q, q) and moment (B, q, t).
    """
    information, moment = normal.information, normal.moment
    blocks, q, t = moment.shape
    # Each coefficient in units of its own, so that an intercept and a slope keep their digits.
    sizes = np.sqrt(np.maximum(np.einsum("bii->i", information) / blocks, np.finfo(np.float64).tiny))
    A = information / np.outer(sizes, sizes)
    b = moment / sizes[:, None]
    pooled = NormalEquations(A.sum(axis=0), b.sum(axis=0))
    beta = pooled.coefficients
    spread = _STARTING_SHARE * np.eye(q)
    for _ in range(_ITERATIONS):
        # V = (A + T⁻¹)⁻¹ = T (I + A T)⁻¹, which needs no inverse of T where it becomes singular
        V = np.linalg.solve(np.eye(q) + spread @ A, np.broadcast_to(spread, A.shape))
        V = 0.5 * (V + np.swapaxes(V, -1, -2))
        # m = β₀ + V (b − A β₀)
        shift = V @ (b - A @ beta)
        new_beta = beta + shift.mean(axis=0)
        off = shift + beta - new_beta
        new_spread = V.mean(axis=0) + np.einsum("bit,bjt->ij", off, off) / (blocks * t)
        change = np.abs(new_spread - spread).max() / max(np.abs(new_spread).max(), np.finfo(np.float64).tiny)
        beta, spread = new_beta, new_spread
        if change < _CONVERGED:
            break
    return beta / sizes[:, None], spread / np.outer(sizes, sizes)
