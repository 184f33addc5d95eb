"""A composite: a list of terms, each a small set of points with a weight. The choice of terms is the method."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from compositegp.backend import Booleans, Floats, IndexSets, Indices
from compositegp.validation import check_count, check_filled, check_index_sets, check_segments, check_targets


class Term(NamedTuple):
    """One factor p(y_S | z)^w of a composite.

    Attributes
    ----------
    indices : int array
        S, the points of the term.
    weight : float
        w.
    """

    indices: Indices
    weight: float


@dataclass(frozen=True, eq=False)
class Stack:
    """Blocks of equal size, to be worked on together.

    A block is an ordered set of points that is read in stages. The weight of a stage is the weight of p(y_stage |
    y_earlier stages, z). By the chain rule a block stands for one term per stage, made of the points up to the end of
    the stage. A single stage is a single term. A conditional term is a stage of weight 0 (the points that are
    conditioned on), followed by a stage of weight 1. One factorization serves all the stages of a block.

    Attributes
    ----------
    indices : int array of shape (blocks, n)
    stops : tuple of int
        Where each stage ends; the last is n.
    weights : array of shape (blocks, stages)
    segment_numbers : int array of shape (blocks,)
        The number of each block in the user's list of segments or terms.
    """

    indices: Indices
    stops: tuple[int, ...]
    weights: Floats
    segment_numbers: Indices

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, blocks: slice | Booleans | Indices) -> "Stack":
        return Stack(self.indices[blocks], self.stops, self.weights[blocks], self.segment_numbers[blocks])

    @property
    def row_weights(self) -> Floats:
        """Weight of each point given those before it in its block, shape (blocks, n)."""
        return np.repeat(self.weights, np.diff([0, *self.stops]), axis=1)

    @property
    def term_weights(self) -> Floats:
        """Weight of the term that ends with each stage, shape (blocks, stages)."""
        # Σ_stages ω_s ln p(y_s | y_<s, z) = Σ_s (ω_s − ω_s+1) ln p(y_≤s | z)
        weights = self.weights.copy()
        weights[:, :-1] -= self.weights[:, 1:]
        return weights

    def terms(self) -> Iterator[Term]:
        """Terms that the blocks stand for."""
        for indices, term_weights in zip(self.indices, self.term_weights, strict=True):
            for stop, weight in zip(self.stops, term_weights, strict=True):
                if weight != 0:
                    yield Term(indices[:stop], float(weight))


class Composite:
    """A weighted list of small sets of points, which stands for p(z) Π_S p(y_S | z)^w.

    Use a classmethod for a known method, or give your own terms.

    Parameters
    ----------
    terms : iterable of (indices, weight)
        Sets of points, none empty, and their weights. A set may not name a point twice; different sets may
        share points.

    Examples
    --------
    >>> Composite.marginal([[0, 1, 2], [3, 4]])
    Composite(2 term(s) over 5 point(s))
    >>> Composite([([0, 1, 2], 1.0), ([1, 2, 3], 1.0), ([1, 2], -1.0)])
    Composite(3 term(s) over 4 point(s))
    """

    stacks: tuple[Stack, ...]

    def __init__(self, terms: Iterable[tuple[ArrayLike, float]]) -> None:
        pairs = list(terms) if isinstance(terms, Iterable) else []
        if not pairs or not all(isinstance(pair, Sequence) and len(pair) == 2 for pair in pairs):
            raise ValueError(f"terms must be (indices, weight) pairs, at least one; found {terms!r:.80}.")
        sets = check_index_sets([indices for indices, _ in pairs], "terms")
        weights = check_targets([weight for _, weight in pairs], len(pairs), "weights of terms")
        check_filled(sets, "terms")
        self.stacks = _stack([(s, (len(s),), (w,)) for s, w in zip(sets, weights, strict=True)])

    @classmethod
    def full(cls, n_samples: int) -> "Composite":
        """Build the exact Gaussian process: one term, all the points."""
        return cls([(np.arange(check_count(n_samples, "n_samples")), 1.0)])

    @classmethod
    def marginal(cls, segments: IndexSets) -> "Composite":
        """Build the paper's composite GP: each of some disjoint segments is a term of weight one."""
        return cls.of_segments(check_segments(segments, "segments"))

    @classmethod
    def of_segments(cls, segments: list[Indices]) -> "Composite":
        """Build the marginal composite of segments that have been checked."""
        return cls._of_stacks(_stack([(part, (len(part),), (1.0,)) for part in segments]))

    @classmethod
    def pointwise(cls, n_samples: int) -> "Composite":
        """Build the composite in which every point is a term of its own (with inducing points: FITC)."""
        numbers = np.arange(check_count(n_samples, "n_samples"))
        return cls._of_stacks((Stack(numbers[:, None], (1,), np.ones((n_samples, 1)), numbers),))

    @classmethod
    def conditional(cls, segments: IndexSets, conditioning: IndexSets) -> "Composite":
        """Build a block Vecchia composite: each segment given some of the points before it.

        Parameters
        ----------
        segments : list of int arrays
            Disjoint, in the order in which the data are read.
        conditioning : list of int arrays
            For each segment, points of earlier segments (as `conditioning_sets` finds them); may be empty.
            All empty is `marginal`; all the earlier points is the exact Gaussian process.
        """
        parts = check_segments(segments, "segments")
        given = check_index_sets(conditioning, "conditioning")
        if len(given) != len(parts):
            raise ValueError(
                f"conditioning has {len(given)} set(s) for {len(parts)} segment(s). Give one for each."
            )
        members = np.concatenate(parts)
        order = np.argsort(members)
        owner = np.repeat(np.arange(len(parts)), [len(part) for part in parts])[order]
        members = members[order]
        for number, earlier in enumerate(given):
            position = np.minimum(np.searchsorted(members, earlier), len(members) - 1)
            wrong = (members[position] != earlier) | (owner[position] >= number)
            if wrong.any():
                late = earlier[np.argmax(wrong)]
                raise ValueError(
                    f"conditioning[{number}] has point {late}, which is in no segment before segment {number}. "
                    "Condition a segment on points of earlier segments only."
                )
        return cls.conditional_blocks(parts, given, np.arange(len(parts)))

    @classmethod
    def conditional_blocks(
        cls, segments: list[Indices], conditioning: list[Indices], numbers: Indices
    ) -> "Composite":
        """Build some of the blocks of a conditional composite, without checks."""
        blocks: list[_Block] = [
            (np.concatenate([earlier, part]), (len(earlier), len(earlier) + len(part)), (0.0, 1.0))
            if len(earlier)
            else (part, (len(part),), (1.0,))
            for part, earlier in zip(segments, conditioning, strict=True)
        ]
        return cls._of_stacks(_stack(blocks, numbers))

    @classmethod
    def _of_stacks(cls, stacks: tuple[Stack, ...]) -> "Composite":
        composite = cls.__new__(cls)
        composite.stacks = stacks
        return composite

    @property
    def terms(self) -> list[Term]:
        """All (indices, weight) terms; a conditional segment is a positive and a negative one."""
        return [term for stack in self.stacks for term in stack.terms()]

    @property
    def n_blocks(self) -> int:
        """Number of blocks: segments, each with the points it is conditioned on."""
        return sum(len(stack) for stack in self.stacks)

    def take(self, blocks: slice | Booleans | Indices) -> "Composite":
        """The composite of some of the blocks alone, by their position in all the stacks."""
        chosen = np.zeros(self.n_blocks, dtype=bool)
        chosen[blocks] = True
        parts = np.split(chosen, np.cumsum([len(stack) for stack in self.stacks])[:-1])
        stacks = [stack[part] for stack, part in zip(self.stacks, parts, strict=True) if part.any()]
        return self._of_stacks(tuple(stacks))

    @property
    def n_points(self) -> int:
        """Number of points that the composite needs: the largest index plus one."""
        return 1 + max(int(stack.indices.max()) for stack in self.stacks)

    @property
    def largest_block(self) -> int:
        """Size of the largest matrix that has to be factorized."""
        return max(int(stack.indices.shape[1]) for stack in self.stacks)

    def __repr__(self) -> str:
        n_terms = sum(int(np.count_nonzero(stack.term_weights)) for stack in self.stacks)
        n_points = len(np.unique(np.concatenate([stack.indices.ravel() for stack in self.stacks])))
        return f"Composite({n_terms} term(s) over {n_points} point(s))"


_Block = tuple[Indices, tuple[int, ...], tuple[float, ...]]  # indices, ends of the stages, their weights


def _stack(blocks: list[_Block], numbers: Indices | None = None) -> tuple[Stack, ...]:
    """Group blocks by their stages."""
    names = np.arange(len(blocks)) if numbers is None else np.asarray(numbers)
    alike: dict[tuple[int, ...], list[int]] = {}
    for position, (_, stops, _) in enumerate(blocks):
        alike.setdefault(stops, []).append(position)
    return tuple(
        Stack(
            np.stack([blocks[position][0] for position in positions]),
            stops,
            np.asarray([blocks[position][2] for position in positions], dtype=np.float64),
            names[positions].astype(np.intp),
        )
        for stops, positions in alike.items()
    )


def check_composite(composite: Any) -> Composite:
    """The same composite; a ValueError if it is something else."""
    if not isinstance(composite, Composite):
        raise ValueError(
            f"composite must be a Composite, such as Composite.marginal(segment(X)); found {composite!r:.80}."
        )
    return composite
