"""Evidence: what the terms of a composite say about the latent values, as a sum over the terms."""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.linalg import LinAlgError
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import (
    TEMPERING_END,
    Array,
    Floats,
    NumericalWarning,
    SingularMatrixError,
    add_to_diagonal,
    cholesky_of_complement,
    each_batch,
    fetch,
    like,
    solve_lower,
    warn_caller,
)
from compositegp.composite.factors import FactoredStack
from compositegp.composite.latent import Latent
from compositegp.kernels import gram

_WORTH_A_WARNING = 1e-8  # tempering above which the user is warned
_RESOLUTIONS = (0.0, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8)  # coordinates weaker than this are dropped, in turn


class Evidence(NamedTuple):
    """What data say about the whitened latent ξ and the coefficients β of the mean. Evidence adds.

    Attributes
    ----------
    precision : array of shape (r + q, r + q)
        Λ of (ξ, β): Σ w [W F]ᵀ (I − W Wᵀ)⁻¹ [W F], where each term is whitened by its covariance.
    shift : array of shape (r + q, t)
        η of (ξ, β): Σ w [W F]ᵀ (I − W Wᵀ)⁻¹ y, for each of t outputs. Λ and η are the natural parameters of
        Π_S p(y_S | ξ, β)^w. A single column is shared by all outputs.
    """

    precision: Floats
    shift: Floats

    def plus(self, other: "Evidence") -> "Evidence":
        """The sum of two evidences."""
        return Evidence(self.precision + other.precision, self.shift + other.shift)

    @classmethod
    def none(cls, latent: Latent) -> "Evidence":
        """No evidence about a latent."""
        size = latent.root.shape[1] + latent.basis.shape[1]
        return cls(np.zeros((size, size)), np.zeros((size, 1)))

    @classmethod
    def of(cls, products: Floats, n_coordinates: int) -> "Evidence":
        """Evidence from the matrix of all products of [W F y]; its first columns belong to the coordinates (ξ, β)."""
        return cls(products[:n_coordinates, :n_coordinates], products[:n_coordinates, n_coordinates:])


_Form = Callable[[Array, FactoredStack, float], tuple[Floats, float]]


def loadings(kernel: Kernel, latent: Latent, factored: FactoredStack) -> Array:
    """W with C⁻¹(y_k − μ_k) = W ξ + e and e ~ N(0, I − W Wᵀ): shape (blocks, n, r)."""
    K_kz = gram(kernel, factored.points, latent.points)
    return latent.whiten(solve_lower(factored.lower, K_kz))  # docs/theory.md: evidence of one segment


def resolvable(latent: Latent, W: Array) -> Iterator[tuple[Array, float]]:
    """Loadings to try one after the other, each with the largest tempering to allow.

    The first have all coordinates; the next leave out more and more of the weak ones. The smaller the prior variance of
    a coordinate, the larger are the rounding errors of its covariance with the data. A segment without noise may then
    seem to know a weak coordinate better than exactly. Such a coordinate is left out: the segment says nothing about
    it.
    """
    weakest = 0.0
    for fraction in _RESOLUTIONS:
        lost = latent.strengths < fraction
        if fraction == 0 or (lost & (latent.strengths >= weakest)).any():
            yield W * like(1.0 - lost, W) if lost.any() else W, _WORTH_A_WARNING
        weakest = fraction
    yield W * like(1.0 - (latent.strengths < _RESOLUTIONS[-1]), W), TEMPERING_END


def too_much_evidence(kernel: Kernel, segment: str) -> LinAlgError:
    """The error to raise for a segment whose evidence cannot be resolved."""
    return LinAlgError(
        f"{segment} says more about the latent values than a Gaussian process with kernel {kernel} allows. Add a "
        "WhiteKernel to the kernel, or check that it is positive definite (a periodic kernel is so on one column only: "
        "see OnColumns)."
    )


def collect_evidence(kernel: Kernel, latent: Latent, factored: FactoredStack) -> Evidence:
    """Weighted sum, over the terms of some blocks, of their evidence about the latent."""
    n, r = factored.innovations.shape[1], latent.root.shape[1]
    form = _by_data if n <= r else _by_latent
    total, tempered = Evidence.none(latent), 0.0
    latent = latent.alongside(factored.lower)
    resolved = each_batch(
        len(factored.stack),
        n * max(n, len(latent.points)),
        lambda blocks: _resolve(kernel, latent, factored[blocks], form),
    )
    for products, tempering in resolved:
        found = Evidence.of(products, r + latent.basis.shape[1])
        total, tempered = total.plus(found), max(tempered, tempering)
    if tempered > _WORTH_A_WARNING:
        warn_caller(
            f"Under kernel {kernel} a segment determines latent values beyond double precision; up to "
            f"{tempered:.0e} of its own covariance was added as noise. Add a WhiteKernel to set the noise yourself.",
            NumericalWarning,
        )
    return total


def _resolve(kernel: Kernel, latent: Latent, part: FactoredStack, form: _Form) -> tuple[Floats, float]:
    for W, limit in resolvable(latent, loadings(kernel, latent, part)):
        try:
            return form(W, part, limit)
        except SingularMatrixError as error:
            number = part.stack.segment_numbers[error.index]
    raise too_much_evidence(kernel, f"Segment {number}")


def _by_data(W: Array, factored: FactoredStack, limit: float) -> tuple[Floats, float]:
    """Products of [W F y] by n × n matrices, for terms no larger than the latent.

    With I − W Wᵀ = T Tᵀ the products are UᵀU for U = T⁻¹ [W F y]. The rows of U up to the end of a stage belong to the
    term that ends there, so the weight of a stage is the weight of its rows.
    """
    lower, tempering = cholesky_of_complement(W @ W.mT, limit)
    U = array_namespace(W).concat([W, factored.innovations], axis=2)
    U *= math.sqrt(1 - tempering)
    rows = solve_lower(lower, U).reshape(-1, U.shape[-1])
    weights = factored.stack.row_weights
    weighted = rows if (weights == 1).all() else rows * like(weights.reshape(-1, 1), rows)
    return fetch(weighted.mT @ rows), tempering


def _by_latent(W: Array, factored: FactoredStack, limit: float) -> tuple[Floats, float]:
    """Products of [W F y] by r × r matrices, for terms larger than the latent.

    The product for ξ is (I − WᵀW)⁻¹ − I. In a later stage the latent is whitened again by the stages before it. With
    FᵀF = (I − W_<ᵀ W_<)⁻¹ for those stages, the same formula holds for W Fᵀ, and F carries the result back.
    """
    stops, weights = factored.stack.stops, factored.stack.weights
    blocks, _, r = W.shape
    c = factored.innovations.shape[2]
    total = like(np.zeros((r + c, r + c)), W)
    F: Array | None = None
    known = like(np.zeros((blocks, r, c)), W)
    start, tempered = 0, 0.0
    for stage, stop in enumerate(stops):
        Wt = W[:, start:stop].mT
        if F is not None:
            Wt = F @ Wt
        lower, tempering = cholesky_of_complement(Wt @ Wt.mT, limit)
        tempered = max(tempered, tempering)
        root = math.sqrt(1 - tempering)
        Wt, columns = root * Wt, root * factored.innovations[:, start:stop]
        inverse = solve_lower(lower, like(np.broadcast_to(np.eye(r), lower.shape).copy(), W))
        gain = inverse.mT @ inverse
        given_earlier = columns + Wt.mT @ known
        informed = Wt @ given_earlier
        cross = gain @ informed
        within = given_earlier.mT @ given_earlier + informed.mT @ cross
        add_to_diagonal(gain, -1.0)
        if F is not None:
            gain, cross = F.mT @ gain @ F, F.mT @ cross
        weight = like(weights[:, stage, None, None], W)
        total[:r, :r] += (weight * gain).sum(0)
        total[:r, r:] += (weight * cross).sum(0)
        total[r:, r:] += (weight * within).sum(0)
        if stop != stops[-1]:
            known = inverse @ (known + Wt @ columns)
            F = inverse if F is None else inverse @ F
        start = stop
    total[r:, :r] = total[:r, r:].mT
    return fetch(total), tempered
