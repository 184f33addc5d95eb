"""Fisher information of blocks about the hyper-parameters, by the Slepian–Bangs formula: exact, or by probes."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from compositegp.backend import Array, like, solve_lower
from compositegp.composite.terms import Stack
from compositegp.kernels import Linearized

_KEPT = 4096  # blocks whose random signs are kept; those of a segment take less than a kilobyte


def exact_fisher(stack: Stack, linearized: Linearized, inverse: Array) -> Array:
    """Slepian–Bangs: ½ tr(K⁻¹ ∂_iK K⁻¹ ∂_jK) of every term, weighted."""
    # With A_i = C⁻¹ ∂_iK C⁻ᵀ the trace of a term is Σ_ab A_i[a,b] A_j[a,b] over its leading part.
    whitened = inverse[:, None] @ linearized.jacobian() @ inverse[:, None].mT
    total = like(np.zeros((whitened.shape[1],) * 2), inverse)
    for stop, weight in zip(stack.stops, stack.term_weights.T, strict=True):
        if weight.any():
            part = whitened[:, :, :stop, :stop].reshape(*whitened.shape[:2], -1)
            total += 0.5 * ((like(weight, part)[:, None, None] * part) @ part.mT).sum(0)
    return total


@lru_cache(maxsize=_KEPT)
def _signs(seed: int, number: int, stage: int, count: int, probes: int) -> npt.NDArray[np.int8]:
    """Random signs of a stage of a block, shape (count, probes): the same in every step of learning."""
    drawn = np.random.default_rng([seed, number, stage]).integers(0, 2, size=(count, probes))
    return (2 * drawn - 1).astype(np.int8)


def probed_fisher(stack: Stack, linearized: Linearized, lower: Array, rows: Array, probes: int, seed: int) -> Array:
    """The same by random signs t: E[(tᵀ A_i)[b] (tᵀ A_j)[b]] = Σ_a A_i[a,b] A_j[a,b].

    A stage of weight ω adds ½ ω Σ_a Σ_b c_b A_i[a,b] A_j[a,b], where a runs over the points of the stage, and b over
    the points up to its end. c_b is 2 for points of earlier stages, because (a, b) then stands for (b, a) too.
    """
    blocks, n = stack.indices.shape
    xp, first = array_namespace(lower), n - rows.shape[1]
    total, start = 0.0, 0
    for stage, stop in enumerate(stack.stops):
        weight = stack.weights[:, stage]
        if weight.any():
            signs = np.stack(
                [_signs(seed, int(number), stage, stop - start, probes) for number in stack.segment_numbers]
            )
            vectors = rows[:, start - first : stop - first].mT @ like(signs.astype(np.float64), rows)
            moved = linearized.products(xp.broadcast_to(xp.ones_like(lower[:1, :1, :1]), lower.shape), vectors)
            p = moved.shape[1]
            side_by_side = xp.moveaxis(moved, 1, 2).reshape(blocks, n, p * probes)
            whitened = solve_lower(lower, side_by_side).reshape(blocks, n, p, probes)[:, :stop]
            counts = np.where(np.arange(stop) < start, 2.0, 1.0)
            pairs = like(0.5 / probes * weight[:, None] * counts, whitened)
            weighted = pairs[:, :, None, None] * whitened
            total = total + xp.tensordot(weighted, whitened, axes=((0, 1, 3), (0, 1, 3)))
        start = stop
    return total
