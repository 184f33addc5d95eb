"""Predictions from partitions: test points are sent to the data, and the evidence about them is added up."""

import warnings
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, NamedTuple

import dask
import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Booleans, Floats, Indices, blas_threads_for, warn_caller
from compositegp.composite import Composite, Evidence, Latent, Observations, factor_stacks, group_by_place
from compositegp.distributed.partitions import Part, Summary, add_up
from compositegp.functionals import Functionals, Places, atoms_of, lifted_kernel, matching_mean, plain_kernel
from compositegp.kernels import in_length_scales, is_warped
from compositegp.learning import LocalSegments
from compositegp.means import MeanModel
from compositegp.posteriors import (
    FEWEST_NEAR,
    WIDE_LIMIT,
    Belief,
    Marginals,
    Surrounded,
    announce_union,
    believe,
    gather,
    join_surrounded,
    predict_from,
)

Warned = tuple[tuple[str, type[Warning]], ...]
"""Warnings of workers, each once: their texts and categories."""
MESSAGE = 2**21
"""Numbers in the largest result that is sent between machines: 16 MiB."""
_AT_ONCE = 16  # most results of a partition that are computed at the same time
_FEW_TESTS = 64  # fewest test points of a task
_MOST_ROWS = 2**40  # of a partition: numbers of observations count partitions in steps of this


@dataclass(frozen=True, eq=False)
class PartitionedModel:
    """A model, and data in partitions.

    Attributes
    ----------
    kernel : scikit-learn kernel
    mean : MeanModel
    parts : list of delayed Part
    summaries : list of Summary
    conditioning_size : int
    """

    kernel: Kernel
    mean: MeanModel
    parts: list[Any]
    summaries: list[Summary]
    conditioning_size: int

    def by_composite(self, Z: Floats, group_size: int) -> Marginals:
        """Predict by the evidence of all segments about each group of test points, added up over the partitions."""
        step = self.groups_at_once(group_size)
        groups = group_by_place(self.kernel, Z, group_size)
        result = Marginals(np.empty(len(Z)), np.empty(len(Z)))
        for start in range(0, len(groups), step):
            chosen = groups[start : start + step]
            points = [Z[group] for group in chosen]
            ((totals, warned),) = dask.compute(self.evidence(dask.delayed(points)))
            for text, category in warned:
                warn_caller(text, category)
            for group, own, total in zip(chosen, points, totals, strict=True):
                belief = believed(self.kernel, self.mean, own, total)
                result.mean[group], result.variance[group] = belief.mean, belief.variance
        return result

    def groups_at_once(self, group_size: int) -> int:
        """Groups of test points the evidence about which is sent between machines together."""
        one = next(summary.least for summary in self.summaries if summary.n_points)
        return max(1, int(MESSAGE // (group_size + self.mean.columns(one[None]).shape[1] + 1) ** 2))

    def evidence(self, groups: Any) -> Any:
        """Evidence of all the partitions about each of some groups (delayed), and warnings of workers (delayed)."""
        n_blocks = sum(len(summary.sizes) for summary in self.summaries)
        model, task = (self.kernel, self.mean, self.conditioning_size, groups, n_blocks), dask.delayed(_evidence)
        parts = zip(self.parts, self.summaries, strict=True)
        return add_up([task(part, *model) for part, summary in parts if summary.n_points], _sum)

    def lifted(self, functionals: Functionals) -> "PartitionedModel":
        """The same model for rows that name functionals, in the place of test points."""
        kernel = lifted_kernel(self.kernel, functionals)
        return replace(self, kernel=kernel, mean=matching_mean(kernel, self.mean))

    def functionals_by_nearest(self, Z: Floats, size: int) -> Marginals:
        """Predict functionals, each from the observations nearest to its point, or near any of its points."""
        result, wide = Marginals(np.empty(len(Z)), np.empty(len(Z))), Places.of(self.kernel, Z).wide
        narrow = np.setdiff1d(np.arange(len(Z)), wide)
        if len(narrow):
            result.mean[narrow], result.variance[narrow], _ = self.by_nearest(Z[narrow], size)
        for row in wide:
            found = self._by_union(Z[[row]], size)
            result.mean[row], result.variance[row] = found.mean[0], found.variance[0]
        return result

    def _by_union(self, Z: Floats, size: int) -> Surrounded:
        """Predict one functional from the union of what is nearest to each of its points."""
        size = min(size, sum(summary.n_points for summary in self.summaries))
        sites = np.unique(in_length_scales(self.kernel, atoms_of(self.kernel, Z)), axis=0)
        gaps = self._gaps(sites)
        near = (gaps <= self._reach(sites, gaps, size)) & (gaps < np.inf)
        (found,) = dask.compute(self._candidates(sites, near, size))
        count = size
        while True:
            members, first = np.unique(found.numbers[:, :count], return_index=True)
            if len(members) <= WIDE_LIMIT or count <= FEWEST_NEAR:
                break
            count = max(FEWEST_NEAR, count // 2)
        announce_union(len(sites), len(members), count, size)
        X = found.X[:, :count].reshape(-1, found.X.shape[-1])[first]
        y = found.y[:, :count].ravel()[first]
        return _predict_from(X, y, np.arange(len(X))[None], self.kernel, self.mean, Z)

    def by_nearest(self, Z: Floats, size: int) -> Surrounded:
        """Predict each test point from the observations nearest to it in all the partitions."""
        size = min(size, sum(summary.n_points for summary in self.summaries))
        tests = in_length_scales(self.kernel, Z)
        gaps = self._gaps(tests)
        near = (gaps <= self._reach(tests, gaps, size)) & (gaps < np.inf)
        most = max(1, MESSAGE // (size * (Z.shape[1] + 2)))
        step = min(most, max(_FEW_TESTS, -(-len(Z) // _AT_ONCE)))
        slices = [slice(start, start + step) for start in range(0, len(Z), step)]
        found: list[Surrounded] = []
        for first in range(0, len(slices), _AT_ONCE):
            chosen = slices[first : first + _AT_ONCE]
            found += dask.compute(*[self._nearest(Z[s], tests[s], near[:, s], size) for s in chosen])
        return join_surrounded(found, ())

    def _reach(self, tests: Floats, gaps: Floats, size: int) -> Floats:
        """Upper bound on the distance of the neighbors of each test point, from the nearest partition: shape (M,)."""
        bound, owners = np.empty(len(tests)), gaps.argmin(axis=0)
        distances = dask.delayed(reach)
        asked = [int(owner) for owner in np.unique(owners)]
        found = dask.compute(
            *[distances(self.parts[owner], self.kernel, tests[owners == owner], size) for owner in asked]
        )
        for owner, own in zip(asked, found, strict=True):
            bound[owners == owner] = own
        return bound

    def _nearest(self, Z: Floats, tests: Floats, near: Booleans, size: int) -> Any:
        """Prediction (delayed) of some test points from the partitions that are near them."""
        return dask.delayed(predict_candidates)(self._candidates(tests, near, size), self.kernel, self.mean, Z)

    def _candidates(self, tests: Floats, near: Booleans, size: int) -> Any:
        """The nearest observations (delayed) of test points, in length scales, from the partitions near them."""
        task, kernel = dask.delayed(candidates), plain_kernel(self.kernel)
        answers = [
            task(self.parts[owner], owner, kernel, tests[rows], np.flatnonzero(rows), size)
            for owner, rows in enumerate(near)
            if rows.any()
        ]
        return add_up(answers, partial(nearest_of, size=size))

    def _gaps(self, tests: Floats) -> Floats:
        """Distance from each partition's bounding box to each test point, in length scales: (partitions, M)."""
        gaps = np.full((len(self.parts), len(tests)), np.inf)
        if is_warped(self.kernel):  # a box of coordinates says nothing about distances: any partition may be near
            gaps[[summary.n_points > 0 for summary in self.summaries]] = 0.0
            return gaps
        for owner, summary in enumerate(self.summaries):
            if summary.n_points:
                least, most = in_length_scales(self.kernel, np.stack([summary.least, summary.most]))
                outside = np.maximum(least - tests, 0.0) + np.maximum(tests - most, 0.0)
                gaps[owner] = np.sqrt((outside**2).sum(axis=1))
        return gaps


def believed(kernel: Kernel, mean: MeanModel, points: Floats, total: Evidence) -> Belief:
    """The belief about test points from all the evidence about them."""
    latent = Latent.prior(kernel, points, mean)
    nothing = Observations(kernel, mean, points[:0], np.empty((0, latent.basis.shape[1] + 1)), None)
    return believe(nothing, latent, total)


def _observations(part: Part, kernel: Kernel, mean: MeanModel) -> Observations:
    return Observations.of(kernel, mean, part.X, part.y, None)


def _evidence(
    part: Part, kernel: Kernel, mean: MeanModel, conditioning_size: int, groups: list[Floats], n_blocks: int
) -> tuple[list[Evidence], Warned]:
    """Evidence of a partition about each group of test points, and the warnings on the way."""
    data = _observations(part, kernel, mean)
    numbers = np.arange(len(part.segments))
    composite: Composite = LocalSegments(data, part.segments, conditioning_size).take(numbers, kernel)
    with blas_threads_for(0), warnings.catch_warnings(record=True) as raised:  # the same bits in every process
        warnings.simplefilter("always")
        latents = [Latent.prior(kernel, points, data.mean) for points in groups]
        found = gather(data, composite, factor_stacks(data, composite), latents, n_blocks)
    return found, tuple(dict.fromkeys((str(one.message), one.category) for one in raised))


def _sum(answers: list[tuple[list[Evidence], Warned]]) -> tuple[list[Evidence], Warned]:
    total = [reduce(Evidence.plus, parts) for parts in zip(*(found for found, _ in answers), strict=True)]
    return total, tuple(dict.fromkeys(one for _, warned in answers for one in warned))


class Candidates(NamedTuple):
    """The nearest observations found so far for some test points.

    Attributes
    ----------
    rows : int array of shape (m,)
        Which test points, ascending.
    distances : array of shape (m, size)
        Infinite if there is no observation.
    X, y : arrays of shape (m, size, d) and (m, size)
    numbers : int array of shape (m, size)
        A number for each observation of all the partitions.
    """

    rows: Indices
    distances: Floats
    X: Floats
    y: Floats
    numbers: Indices


def reach(part: Part, kernel: Kernel, tests: Floats, size: int) -> Floats:
    """Distance from each test point to the last of its neighbors in a partition; infinite if there are too few."""
    if len(part.X) < size:
        return np.full(len(tests), np.inf)
    tree = part.search.of(part.X, plain_kernel(kernel))
    return np.asarray(tree.query(tests, k=[size])[0][:, 0]) * (1 + 1e-9)


def candidates(part: Part, owner: int, kernel: Kernel, tests: Floats, rows: Indices, size: int) -> Candidates:
    """The nearest observations of a partition, for some test points in length scales."""
    count = min(size, len(part.X))
    distances, near = part.search.of(part.X, plain_kernel(kernel)).query(tests, k=[*range(1, count + 1)])
    return Candidates(rows, distances, part.X[near], part.y[near], owner * _MOST_ROWS + near)


def nearest_of(answers: list[Candidates], size: int) -> Candidates:
    """The nearest of all candidates for each test point; at equal distance, the candidate of the earlier partition."""
    rows = np.unique(np.concatenate([each.rows for each in answers]))
    d, width = answers[0].X.shape[2], sum(each.distances.shape[1] for each in answers)
    distances, X, y = (
        np.full((len(rows), width), np.inf),
        np.zeros((len(rows), width, d)),
        np.zeros((len(rows), width)),
    )
    numbers = np.zeros((len(rows), width), dtype=np.intp)
    start = 0
    for each in answers:
        place, stop = np.searchsorted(rows, each.rows), start + each.distances.shape[1]
        distances[place, start:stop], X[place, start:stop], y[place, start:stop] = each.distances, each.X, each.y
        numbers[place, start:stop] = each.numbers
        start = stop
    chosen = np.argsort(distances, axis=1, kind="stable")[:, :size]
    return Candidates(
        rows,
        np.take_along_axis(distances, chosen, axis=1),
        np.take_along_axis(X, chosen[..., None], axis=1),
        np.take_along_axis(y, chosen, axis=1),
        np.take_along_axis(numbers, chosen, axis=1),
    )


def predict_candidates(found: Candidates, kernel: Kernel, mean: MeanModel, Z: Floats) -> Surrounded:
    """Predict each test point from the nearest observations that were found for it."""
    size = found.distances.shape[1]
    sets = np.arange(len(Z) * size).reshape(len(Z), size)[:, ::-1]  # the farthest first
    return _predict_from(found.X.reshape(-1, found.X.shape[-1]), found.y.ravel(), sets, kernel, mean, Z)


def _predict_from(X: Floats, y: Floats, sets: Any, kernel: Kernel, mean: MeanModel, Z: Floats) -> Surrounded:
    with blas_threads_for(0):
        return predict_from(Observations.of(kernel, mean, X, y, None), sets, Z)
