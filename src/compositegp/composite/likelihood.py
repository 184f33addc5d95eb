"""Log likelihood, its gradient and the Fisher information of a composite, summed over its terms."""

import math
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace

from compositegp.arrays import Array, Floats, diagonals, fetch, like
from compositegp.composite.composite import Stack
from compositegp.composite.factors import Observations, factor_covariance
from compositegp.kernels import Linearized, linearize
from compositegp.linalg import last_rows_of_inverse, lower_of_weighted_inverse, solve_lower, solve_upper_vectors


class Score(NamedTuple):
    """What some terms say about the hyper-parameters θ and the mean's coefficients β; scores add.

    Attributes
    ----------
    log_likelihood : float
        Σ w ln p(y_S | θ, β).
    gradient : array of shape (p,)
        Its derivative in ``kernel.theta``.
    fisher : array of shape (p, p)
        Fisher information about ``kernel.theta``.
    normal : array of shape (q + 1, q + 1)
        Σ w [F y]ᵀ Σ_SS⁻¹ [F y]: the normal equations of generalised least squares for β.
    n_points : float
        Σ w |S|: each point once in a composite that counts it once.
    jitter : float
        Largest jitter that a covariance needed, relative to its mean diagonal.
    """

    log_likelihood: float
    gradient: Floats
    fisher: Floats
    normal: Floats
    n_points: float
    jitter: float

    def plus(self, other: "Score") -> "Score":
        """The score of both."""
        return Score(
            self.log_likelihood + other.log_likelihood,
            self.gradient + other.gradient,
            self.fisher + other.fisher,
            self.normal + other.normal,
            self.n_points + other.n_points,
            max(self.jitter, other.jitter),
        )


def score(
    observations: Observations, stack: Stack, coefficients: Floats, *, probes: int = 0, seed: int = 0
) -> Score:
    """Score of the blocks of a stack.

    Parameters
    ----------
    observations : Observations
    stack : Stack
    coefficients : array of shape (q,)
        β.
    probes : int
        Random vectors for each stage, by which the Fisher information is estimated without bias and remains positive
        semi-definite; 0 leaves it out (zeros), and −1 computes it exactly, which takes 2 p n³ operations.
    seed : int
        For the probes; the same blocks get the same vectors in any batch.

    Returns
    -------
    Score
    """
    points = observations.rows("X", stack)
    xp = array_namespace(points)
    linearized = linearize(observations.kernel, points)
    lower, jitter = factor_covariance(observations, stack, xp.asarray(linearized.value, copy=True))
    columns = solve_lower(lower, observations.rows("columns", stack))
    weights = like(stack.row_weights, lower)
    residuals = columns[..., -1] - columns[..., :-1] @ like(coefficients, lower)
    log_densities = -0.5 * (residuals**2 + math.log(2 * math.pi)) - xp.log(diagonals(lower))
    # The first stages of a block, if they have no weight, are only conditioned on: their rows of C⁻¹ are not needed.
    first = 0 if probes < 0 else _first_weighted(stack)
    conditioned = solve_upper_vectors(lower[:, :first, :first], residuals[:, :first])
    rows = last_rows_of_inverse(xp.asarray(lower, copy=True) if probes > 0 and not first else lower, first)
    if probes < 0:
        fisher = _exact_fisher(stack, linearized, rows)
    elif probes:
        fisher = _probed_fisher(stack, linearized, lower, rows, probes, seed)
    else:
        fisher = None
    cotangent = _negative_cotangent(stack, rows, conditioned, residuals, weights)
    gradient = fetch(-xp.sum(linearized.pullback(cotangent), axis=0))
    flat = columns.reshape(-1, columns.shape[-1])
    return Score(
        float((weights * log_densities).sum()),
        gradient,
        np.zeros((len(gradient), len(gradient))) if fisher is None else fetch(fisher),
        fetch((weights.reshape(-1, 1) * flat).mT @ flat),
        float(stack.row_weights.sum()),
        float(jitter.max()),
    )


def _first_weighted(stack: Stack) -> int:
    """Where the first stage begins that has a weight in some block."""
    weighted = np.flatnonzero(stack.weights.any(axis=0))
    return 0 if not len(weighted) or weighted[0] == 0 else stack.stops[weighted[0] - 1]


def _negative_cotangent(stack: Stack, rows: Array, conditioned: Array, residuals: Array, weights: Array) -> Array:
    """−∂/∂K of the log likelihood of blocks, ½ Σ_terms w (K_S⁻¹ − α αᵀ), with K_S⁻¹ moved below the diagonal.

    From the last rows of C⁻¹ and, of the points before them, C⁻ᵀ times their residuals. Overwrites the rows.
    """
    first = conditioned.shape[1]
    terms = [(stop, weight) for stop, weight in zip(stack.stops, stack.term_weights.T, strict=True) if weight.any()]
    alphas = []
    for stop, _ in terms:
        alpha = (residuals[:, None, first:stop] @ rows[:, : max(stop - first, 0), :stop])[:, 0]
        if first:
            alpha[:, :first] += conditioned[:, : min(first, stop)]
        alphas.append(alpha)
    # K_S⁻¹ = C_S⁻ᵀ C_S⁻¹, and C_S⁻¹ is the leading part of C⁻¹: the weight of a stage is the weight of its rows.
    cotangent = lower_of_weighted_inverse(rows, weights[:, first:])
    halves = diagonals(cotangent)
    halves *= 0.5
    for (stop, weight), alpha in zip(terms, alphas, strict=True):
        halved = 0.5 * like(weight, alpha)[:, None] * alpha
        cotangent[:, :stop, :stop] -= alpha[:, :, None] * halved[:, None, :]
    return cotangent


def _exact_fisher(stack: Stack, linearized: Linearized, inverse: Array) -> Array:
    """Slepian–Bangs: ½ tr(K⁻¹ ∂_iK K⁻¹ ∂_jK) of every term, weighted."""
    # With A_i = C⁻¹ ∂_iK C⁻ᵀ a term's trace is Σ_ab A_i[a,b] A_j[a,b] over its leading part.
    whitened = inverse[:, None] @ linearized.jacobian() @ inverse[:, None].mT
    total = like(np.zeros((whitened.shape[1],) * 2), inverse)
    for stop, weight in zip(stack.stops, stack.term_weights.T, strict=True):
        if weight.any():
            part = whitened[:, :, :stop, :stop].reshape(*whitened.shape[:2], -1)
            total += 0.5 * ((like(weight, part)[:, None, None] * part) @ part.mT).sum(0)
    return total


def _probed_fisher(
    stack: Stack, linearized: Linearized, lower: Array, rows: Array, probes: int, seed: int
) -> Array:
    """The same by random signs t: E[(tᵀ A_i)[b] (tᵀ A_j)[b]] = Σ_a A_i[a,b] A_j[a,b].

    A stage of weight ω adds ½ ω Σ_a Σ_b c_b A_i[a,b] A_j[a,b], where a runs over the points of the stage, b over those
    up to its end, and c_b is 2 for points of earlier stages: (a, b) then stands for the pair (b, a) too.
    """
    blocks, n = stack.indices.shape
    xp, first = array_namespace(lower), n - rows.shape[1]
    total, start = 0.0, 0
    for stage, stop in enumerate(stack.stops):
        weight = stack.weights[:, stage]
        if weight.any():
            signs = np.stack(
                [
                    np.random.default_rng([seed, int(number), stage]).integers(0, 2, size=(stop - start, probes))
                    for number in stack.numbers
                ]
            )
            vectors = rows[:, start - first : stop - first].mT @ like(2.0 * signs - 1.0, rows)
            moved = linearized.products(xp.ones_like(lower), vectors)
            p = moved.shape[1]
            side_by_side = xp.moveaxis(moved, 1, 2).reshape(blocks, n, p * probes)
            whitened = solve_lower(lower, side_by_side).reshape(blocks, n, p, probes)[:, :stop]
            counts = np.where(np.arange(stop) < start, 2.0, 1.0)
            pairs = like(0.5 / probes * weight[:, None] * counts, whitened)
            weighted = pairs[:, :, None, None] * whitened
            total = total + xp.tensordot(weighted, whitened, axes=((0, 1, 3), (0, 1, 3)))
        start = stop
    return total
