"""The predictor that a composite makes: its mean is linear in the data, and here are the coefficients."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import (
    Floats,
    SingularMatrixError,
    blas_threads_for,
    cholesky_of_complement,
    invert_lower,
    psd_root,
    solve_lower,
    use_device,
)
from compositegp.composite import (
    Composite,
    FactoredStack,
    Latent,
    Observations,
    batches,
    factor_stacks,
    loadings,
    resolvable,
    too_much_evidence,
)
from compositegp.kernels import diagonal, gram


@dataclass(frozen=True, eq=False)
class Predictor:
    """A composite's belief before the data are seen: what it will claim, and how it will weigh them.

    Attributes
    ----------
    coefficients : array of shape (M, N)
        w: the mean is μ_z + w (y − μ).
    root : array of shape (M, r)
        root · rootᵀ is the covariance that the belief claims.
    prior_variance : array of shape (M,)
    information : float
        What the belief claims to have learned about the latent, in nats: ½ (ln det Σ_zz − ln det Σ̃_z), the expected
        divergence from the prior under the composite's own marginal.
    information_sum : float
        Σ w I(z; y_S) over the terms: the paper's index of redundancy.
    pointwise_sum : array of shape (M,)
        The same about each latent value alone.
    """

    coefficients: Floats
    root: Floats
    prior_variance: Floats
    information: float
    information_sum: float
    pointwise_sum: Floats

    @property
    def claimed_variance(self) -> Floats:
        """Variances that the belief claims, shape (M,)."""
        return np.asarray(np.einsum("mr,mr->m", self.root, self.root))


@use_device(None)
def predictor(data: Observations, Z: Floats, composite: Composite, inducing: Floats | None) -> Predictor:
    """Coefficients and claims of a composite, with the latent at `Z` or at inducing points."""
    kernel = data.kernel
    with blas_threads_for(max(composite.largest_block, len(Z))):
        latent = Latent.prior(kernel, Z if inducing is None else inducing, data.mean)
        r = latent.root.shape[1]
        precision, shifts = np.eye(r), np.zeros((r, len(data.X)))
        total, pointwise = 0.0, np.zeros(len(Z))
        prior_variance = diagonal(kernel, Z, noise=False)
        for factored in factor_stacks(data, composite):
            n = factored.innovations.shape[1]
            for blocks in batches(len(factored.stack), n * max(n, len(latent.points))):
                part = factored[blocks]
                found = _block_shifts(kernel, latent, part)
                precision += found.precision
                total += found.information
                for indices, shift in zip(part.stack.indices, found.shifts, strict=True):
                    shifts[:, indices] += shift
                pointwise += _pointwise_information(kernel, part, Z, prior_variance)
        lower = np.linalg.cholesky(precision)
        scale = solve_lower(np.ascontiguousarray(lower), np.eye(r)).T
        locations = scale @ (scale.T @ shifts)
        if inducing is None:
            loading, remainder = latent.root, np.empty((len(Z), 0))
        else:
            loading = latent.whiten(gram(kernel, Z, latent.points))
            remainder = psd_root(gram(kernel, Z, Z) - loading @ loading.T)
        root = np.concatenate([loading @ scale, remainder], axis=1)
        if inducing is None:
            information = float(np.log(np.diagonal(lower)).sum())
        else:
            information = _information(Latent.prior(kernel, Z, data.mean), root)
        return Predictor(loading @ locations, root, prior_variance, information, total, pointwise)


def _information(latent: Latent, root: Floats) -> float:
    """½ (ln det Σ_zz − ln det Σ̃_z) for a belief with covariance root · rootᵀ."""
    whitened = latent.whiten(np.ascontiguousarray(root.T))
    return -0.5 * float(np.linalg.slogdet(whitened.T @ whitened)[1])


@dataclass(frozen=True, eq=False)
class _BlockShifts:
    precision: Floats  # (r, r), summed over the blocks
    shifts: Floats  # (blocks, r, n): what each datum adds to the shift
    information: float


def _block_shifts(kernel: Kernel, latent: Latent, part: FactoredStack) -> _BlockShifts:
    """Natural parameters of blocks as functions of the data: η = shifts · (y − μ)."""
    for W, limit in resolvable(latent, loadings(kernel, latent, part)):
        try:
            lower, tempering = cholesky_of_complement(W @ W.transpose(0, 2, 1), limit)
        except SingularMatrixError:
            continue
        weights = part.stack.row_weights
        U = solve_lower(lower, np.sqrt(1 - tempering) * W)
        V = solve_lower(lower, np.sqrt(1 - tempering) * invert_lower(part.lower.copy()))
        weighted = U * weights[..., None]
        # I(z; y_stage | y_earlier) = −Σ_rows ln T_ii, by the chain rule
        information = -float((weights * np.log(np.einsum("bii->bi", lower))).sum())
        precision = np.einsum("bnr,bns->rs", weighted, U, optimize=True)
        return _BlockShifts(precision, weighted.transpose(0, 2, 1) @ V, information)
    raise too_much_evidence(kernel, f"One of the segments {', '.join(map(str, part.stack.numbers))}")


def _pointwise_information(kernel: Kernel, part: FactoredStack, Z: Floats, prior_variance: Floats) -> Floats:
    """Σ w I(z_i; y_S) for each latent value alone, shape (M,)."""
    V = solve_lower(part.lower, gram(kernel, part.points, Z))
    explained = np.cumsum(V**2, axis=1) / np.where(prior_variance > 0, prior_variance, 1.0)
    total: Any = np.zeros(len(Z))
    for stop, weight in zip(part.stack.stops, part.stack.term_weights.T, strict=True):
        left = np.maximum(1 - explained[:, stop - 1], np.finfo(np.float64).eps)
        total = total - 0.5 * weight @ np.log(left)
    return np.asarray(total)
