"""What the terms of a composite say about its latent, added up."""

from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from sklearn.gaussian_process.kernels import Kernel

from compositegp.arrays import Floats, add_to_diagonal
from compositegp.composite.factors import FactoredStack, batches
from compositegp.composite.latent import Latent
from compositegp.kernels import gram
from compositegp.linalg import SingularMatrixError, cholesky_of_complement, solve_lower, solve_lower_vectors


class Evidence(NamedTuple):
    """Natural parameters of Π_S p(y_S | ξ)^w as a function of the whitened latent ξ; they add.

    Attributes
    ----------
    precision : array of shape (r, r)
        Λ.
    shift : array of shape (r,)
        η.
    """

    precision: Floats
    shift: Floats

    def plus(self, other: "Evidence") -> "Evidence":
        """Evidence of both."""
        return Evidence(self.precision + other.precision, self.shift + other.shift)

    @classmethod
    def none(cls, r: int) -> "Evidence":
        """No evidence about a latent of `r` coordinates."""
        return cls(np.zeros((r, r)), np.zeros(r))


def loadings(kernel: Kernel, latent: Latent, factored: FactoredStack) -> Floats:
    """W with C⁻¹(y_k − μ_k) = W ξ + e and e ~ N(0, I − W Wᵀ): shape (blocks, n, r).

    (THEORY.md's W is its transpose.)
    """
    K_kz = gram(kernel, factored.points, latent.points)
    return latent.whiten(solve_lower(factored.lower, K_kz))  # docs/theory.md: evidence of one segment


def evidence(kernel: Kernel, latent: Latent, factored: FactoredStack) -> Evidence:
    """Weighted sum, over the terms of some blocks, of their evidence about the latent."""
    n, r = factored.innovations.shape[1], latent.root.shape[1]
    form = _by_data if n <= r else _by_latent
    total = Evidence.none(r)
    if r == 0:
        return total
    for blocks in batches(len(factored.stack), n * max(n, len(latent.points))):
        part = factored[blocks]
        try:
            total = total.plus(form(loadings(kernel, latent, part), part))
        except SingularMatrixError as error:
            raise LinAlgError(
                f"Segment {part.stack.numbers[error.index]} says more about the latent values than a Gaussian "
                f"process with kernel {kernel} allows. Add a WhiteKernel to the kernel, or check that it is "
                "positive definite (a periodic kernel is so on one column only: see OnColumns)."
            ) from error
    return total


def _by_data(W: Floats, factored: FactoredStack) -> Evidence:
    """Evidence by n × n matrices, for terms no larger than the latent.

    Λ = Wᵀ (I − W Wᵀ)⁻¹ W. With I − W Wᵀ = T Tᵀ it is UᵀU for U = T⁻¹ W, and the rows of U up to a stage's
    end are those of the term that ends there: the weight of a stage is the weight of its rows.
    """
    lower, tempering = cholesky_of_complement(W @ W.transpose(0, 2, 1))
    W *= np.sqrt(1 - tempering)
    U = solve_lower(lower, W)
    v = solve_lower_vectors(lower, np.sqrt(1 - tempering) * factored.innovations)
    weights = factored.stack.row_weights
    rows = U.reshape(-1, U.shape[-1])
    weighted = rows if (weights == 1).all() else rows * weights.reshape(-1, 1)
    return Evidence(weighted.T @ rows, weighted.T @ v.ravel())


def _by_latent(W: Floats, factored: FactoredStack) -> Evidence:
    """Evidence by r × r matrices, for terms larger than the latent.

    Λ = (I − WᵀW)⁻¹ − I. A later stage sees the latent whitened by the stages before it: with F those
    stages' whitening, FᵀF = (I − W_<ᵀ W_<)⁻¹, it is the same formula for W Fᵀ, carried back by F.
    """
    stops, weights = factored.stack.stops, factored.stack.weights
    r = W.shape[-1]
    total = Evidence.none(r)
    F: Floats | None = None
    known = np.zeros((len(W), r))
    start = 0
    for stage, stop in enumerate(stops):
        Wt = W[:, start:stop].transpose(0, 2, 1)
        if F is not None:
            Wt = F @ Wt
        lower, tempering = cholesky_of_complement(Wt @ Wt.transpose(0, 2, 1))
        Wt, data = np.sqrt(1 - tempering) * Wt, np.sqrt(1 - tempering) * factored.innovations[:, start:stop]
        inverse = solve_lower(lower, np.broadcast_to(np.eye(r), lower.shape).copy())
        gain = inverse.transpose(0, 2, 1) @ inverse
        informed = np.einsum("brn,bn->br", Wt, data + np.einsum("brn,br->bn", Wt, known))
        shift = np.einsum("brs,bs->br", gain, informed)
        precision = gain
        add_to_diagonal(precision, -1.0)
        if F is not None:
            precision = F.transpose(0, 2, 1) @ precision @ F
            shift = np.einsum("bsr,bs->br", F, shift)
        weight = weights[:, stage]
        total = total.plus(Evidence(np.einsum("b,brs->rs", weight, precision), weight @ shift))
        if stop != stops[-1]:
            known = np.einsum("brs,bs->br", inverse, known + np.einsum("brn,bn->br", Wt, data))
            F = inverse if F is None else inverse @ F
        start = stop
    return total
