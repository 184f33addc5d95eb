"""The recursion of the paper: a segment updates the moments of the belief, and its data can be dropped."""

import contextlib
import math
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from compositegp.backend import (
    Array,
    Floats,
    SingularMatrixError,
    add_to_diagonal,
    cholesky,
    cholesky_of_complement,
    fetch,
    like,
    solve_lower,
)
from compositegp.composite import (
    Evidence,
    FactoredStack,
    Latent,
    Observations,
    loadings,
    resolvable,
    too_much_evidence,
)


def take_in_segment(
    data: Observations, factored: FactoredStack, latent: Latent, location: Floats, scale: Floats
) -> tuple[Floats, Floats]:
    """Location (r, t) and scale (r, r) of the whitened latent ξ after one more segment.

    Parameters
    ----------
    data : Observations
        The segment.
    factored : FactoredStack
        Its one block.
    latent : Latent
    location : array of shape (r, t) or (r, 1)
        Mean of ξ before it.
    scale : array of shape (r, r)
        scale · scaleᵀ is the covariance of ξ before it.
    """
    W_all = loadings(data.kernel, latent.alongside(factored.lower), factored)[0]
    location, scale = like(location, factored.lower), like(scale, factored.lower)
    for W, limit in resolvable(latent, W_all):
        with contextlib.suppress(SingularMatrixError):
            moments = _step(location, scale, W, factored.innovations[0], limit)
            return fetch(moments[0]), fetch(moments[1])
    raise too_much_evidence(data.kernel, f"The segment of {len(data.X)} point(s)")


def _step(location: Array, scale: Array, W: Array, innovations: Array, limit: float) -> tuple[Array, Array]:
    """Liu et al. (2018), Section 4.2, in whitened coordinates.

    With y_k − μ_k = C (W ξ + e) the paper's H_k is C W root⁻¹, and its G_k is C G Cᵀ.
    """
    inner = W @ W.T
    _, tempering = cholesky_of_complement(inner, limit)
    W, innovations = math.sqrt(1 - tempering) * W, math.sqrt(1 - tempering) * innovations
    HS = W @ scale
    G = HS @ HS.T - (1 - tempering) * inner  # Σ_{y_k | z} = C (I − W Wᵀ) Cᵀ
    add_to_diagonal(G, 1.0)
    lower, jitter = cholesky(G)
    if jitter.any():
        raise SingularMatrixError(0)
    gain = solve_lower(lower, 1.0 * HS)
    surprise = array_namespace(W).asarray(innovations - W @ location, copy=True)
    location = location + scale @ (gain.T @ solve_lower(lower, surprise))
    # Σ̃_{z|y_1:k} = Σ̃ − Σ̃ Hᵀ G⁻¹ H Σ̃, by its root
    remaining, _ = cholesky_of_complement(gain.T @ gain)
    return location, scale @ remaining


def carry_over(old: Latent, new: Latent, location: Floats, scale: Floats, natural: Evidence | None) -> Evidence:
    """Evidence about a latent under one prior, in the coordinates of the same latent under another prior.

    For hyper-parameters that become better known. The evidence of the segments so far is kept, each under the
    hyper-parameters that were known at its time, and p(z) is replaced.
    """
    r_old, r_new, q = old.root.shape[1], new.root.shape[1], old.basis.shape[1]
    if natural is None:
        root = solve_lower(*_as_lower(scale))
        precision = root.T @ root  # I + Σ Λ
        natural = Evidence(precision - np.eye(r_old), precision @ location)
    change = np.zeros((r_old + q, r_new + q))
    change[:r_old, :r_new] = old.whiten(new.root.T.copy()).T
    change[r_old:, r_new:] = np.eye(q)
    return Evidence(change.T @ natural.precision @ change, change.T @ natural.shift)


def _as_lower(scale: Floats) -> tuple[Floats, Floats]:
    """A triangular root of scale · scaleᵀ, and the identity to solve for."""
    upper: Any = np.linalg.qr(scale.T, mode="r")
    return np.ascontiguousarray(upper.T), np.eye(len(scale))
