"""Log likelihood, its gradient and the Fisher information of a composite, summed over its terms."""

import math
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace

from compositegp.backend import (
    Array,
    Floats,
    Indices,
    diagonals,
    fetch,
    half_of_weighted_inverse,
    last_rows_of_inverse,
    like,
    solve_lower,
    solve_upper,
    subtract_products,
)
from compositegp.composite.factors import factor_and_invert_covariance, factor_covariance
from compositegp.composite.observations import Observations
from compositegp.composite.slepian_bangs import exact_fisher, probed_fisher
from compositegp.composite.terms import Stack
from compositegp.kernels import linearize, with_noise_factors
from compositegp.means import NormalEquations


class Score(NamedTuple):
    """What terms say about the hyper-parameters θ and the coefficients β of the mean. Scores add.

    Attributes
    ----------
    log_likelihood : float
        Σ w ln p(y_S | θ, β).
    gradient : array of shape (p,)
        Its derivative in ``kernel.theta``.
    fisher : array of shape (p, p)
        Fisher information about ``kernel.theta``.
    normal : NormalEquations
        Normal equations of generalized least squares for β.
    n_points : float
        Σ w |S|: each point once in a composite that counts it once.
    jitter : float
        Largest jitter that a covariance needed, relative to its mean diagonal.
    gradients : array of shape (blocks, p)
        The gradient of each block: how they scatter says how far the sum can be trusted.
    numbers : int array of shape (blocks,)
        The number of each block in the user's list of segments or terms.
    """

    log_likelihood: float
    gradient: Floats
    fisher: Floats
    normal: NormalEquations
    n_points: float
    jitter: float
    gradients: Floats = np.zeros((0, 0))
    numbers: Indices = np.zeros(0, dtype=np.intp)

    def plus(self, other: "Score") -> "Score":
        """The sum of two scores."""
        return Score(
            self.log_likelihood + other.log_likelihood,
            self.gradient + other.gradient,
            self.fisher + other.fisher,
            self.normal.plus(other.normal),
            self.n_points + other.n_points,
            max(self.jitter, other.jitter),
            np.concatenate([self.gradients, other.gradients]),
            np.concatenate([self.numbers, other.numbers]),
        )


def score(
    observations: Observations, stack: Stack, coefficients: Floats, *, probes: int = 0, seed: int = 0
) -> Score:
    """Score of the blocks of a stack.

    Parameters
    ----------
    observations : Observations
    stack : Stack
    coefficients : array of shape (q, t)
        β of the t outputs. All outputs share one covariance: their log likelihoods add.
    probes : int
        Random vectors for each stage, from which the Fisher information is estimated. The estimate has no bias and is
        positive semi-definite. 0 leaves the information out (zeros); −1 computes it exactly, in 2 p n³ operations.
    seed : int
        For the probes; the same blocks get the same vectors in any batch.

    Returns
    -------
    Score
    """
    points = observations.rows("X", stack)
    xp = array_namespace(points)
    row_weights = stack.row_weights
    linearized = linearize(observations.kernel, points)
    needed = linearized.afresh is None or observations.weights is not None
    value = xp.asarray(linearized.value, copy=True) if needed else linearized.value
    # If the first stages of a block have no weight, they are only conditioned on: their rows of C⁻¹ are not needed.
    first = 0 if probes < 0 else _first_weighted(stack)
    in_place = first or (probes <= 0 and isinstance(value, np.ndarray))  # then the factor itself is inverted
    inverse = None
    if in_place:
        lower, jitter = factor_covariance(observations, stack, value)
    else:
        (lower, jitter), inverse = factor_and_invert_covariance(observations, stack, value)
    columns = solve_lower(lower, observations.rows("columns", stack))
    if observations.weights is not None:
        factors = 1 / observations.rows("weights", stack)
        linearized = with_noise_factors(linearized, observations.kernel, points, factors)
    weights = like(row_weights, lower)
    q, t = coefficients.shape
    residuals = columns[..., q:] - columns[..., :q] @ like(coefficients, lower)
    log_densities = -0.5 * ((residuals**2).sum(-1) + t * math.log(2 * math.pi)) - t * xp.log(diagonals(lower))
    conditioned = solve_upper(lower[:, :first, :first], residuals[:, :first])
    rows = last_rows_of_inverse(lower, first) if inverse is None else inverse
    if probes < 0:
        fisher = exact_fisher(stack, linearized, rows)
    elif probes:
        fisher = probed_fisher(stack, linearized, lower, rows, probes, seed)
    else:
        fisher = None
    weighted = t != 1 or not bool((row_weights[:, first:] == 1).all())
    row_factors = t * weights[:, first:] if weighted else None
    cotangent = _negative_cotangent(stack, rows, conditioned, residuals, row_factors)
    gradients = -fetch(linearized.pullback(cotangent))
    gradient = gradients.sum(axis=0)
    flat = columns.reshape(-1, columns.shape[-1])
    products = fetch((weights.reshape(-1, 1) * flat[:, :q]).mT @ flat)
    return Score(
        float((weights * log_densities).sum()),
        gradient,
        np.zeros((len(gradient), len(gradient))) if fisher is None else t * fetch(fisher),
        NormalEquations(products[:, :q], products[:, q:]),
        float(row_weights.sum()),
        float(jitter.max()),
        gradients,
        stack.segment_numbers,
    )


def _first_weighted(stack: Stack) -> int:
    """Where the first stage begins that has a weight in some block."""
    weighted = np.flatnonzero(stack.weights.any(axis=0))
    return 0 if not len(weighted) or weighted[0] == 0 else stack.stops[weighted[0] - 1]


def _negative_cotangent(
    stack: Stack, rows: Array, conditioned: Array, residuals: Array, row_factors: Array | None
) -> Array:
    """−∂/∂K of the log likelihood of blocks, ½ Σ_terms w (t K_S⁻¹ − α αᵀ), up to a part that is antisymmetric.

    Computed from the last rows of C⁻¹, with t times their weights (None where all are one) and, for the points before
    them, from C⁻ᵀ times the residuals. α has a column for each of the t outputs. Overwrites the rows.
    """
    first = conditioned.shape[1]
    terms = [(stop, weight) for stop, weight in zip(stack.stops, stack.term_weights.T, strict=True) if weight.any()]
    alphas = []
    for stop, _ in terms:
        alpha = rows[:, : max(stop - first, 0), :stop].mT @ residuals[:, first:stop]
        if first:
            alpha[:, :first] += conditioned[:, : min(first, stop)]
        alphas.append(alpha)
    # K_S⁻¹ = C_S⁻ᵀ C_S⁻¹, and C_S⁻¹ is the leading part of C⁻¹: the weight of a stage is the weight of its rows.
    cotangent = half_of_weighted_inverse(rows, row_factors)
    for (stop, weight), alpha in zip(terms, alphas, strict=True):
        halved = 0.5 * like(weight, alpha)[:, None, None] * alpha
        subtract_products(cotangent[:, :stop, :stop], alpha, halved)
    return cotangent
