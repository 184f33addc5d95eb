"""What prediction from the nearest observations learns from the data: how many of them, a mean that varies, errors."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, Indices
from compositegp.composite import Observations
from compositegp.kernels import diagonal
from compositegp.means import Basis, Estimated, MeanModel, as_mean, check_covariance, fit_random_effects
from compositegp.posteriors import (
    N_NEIGHBORS,
    WINDOWS,
    Gaps,
    NearestPredictor,
    Neighborhood,
    Neighbors,
    Precision,
    Surrounded,
    around_in_gaps,
    normal_equations,
    predict_prefixes,
)
from compositegp.prediction.fitted_terms import HeldOutPart
from compositegp.prediction.gross_errors import gross_errors
from compositegp.predictive import Calibration, Family, Normal, ratios
from compositegp.storage import storable
from compositegp.validation import are_finite, check_count

NUMBERS = (64, 96, 128, 192, 256, 384, 512, 1024)
"""Numbers of neighbors that are tried."""
FEWEST_POINTS = 100
"""With fewer training points than this the Gaussian is kept."""
_LOSS = 0.0005  # expected loss of log score, in nats, against 1,024 neighbors, up to which fewer are enough
_STEP = 16  # of which the number of neighbors is a multiple
_WORTH_MORE = 0.02  # expected gain of log score, in nats, from which more than 512 neighbors are used
_CURVE_POINTS = 16  # training points by which the number of neighbors is chosen: variances alone decide
_CURVE_SKIPS = (0, 64)  # nearest observations that they are predicted without
_WIDE_SKIPS = (512, 2048)  # and in few columns, where gaps may be as wide as those that errors are learned in
_NEAR_POINTS = 2500  # training points predicted near the data; fewer leave coverage off by several points
_FAR_POINTS = 600  # training points predicted at each of the larger distances
_SHARE = 4  # one training point in so many is predicted, but at least `_ENOUGH`: with few data a fit is quick
_ENOUGH = 300  # training points predicted near the data in any case
_FEW_COLUMNS = 2  # up to this many columns gaps may be wide: errors are learned at a larger distance too
_FAR_WEIGHT = 1 / 6  # in more columns, of errors farther from the data than a new row will be
_BLOCKS = 100  # neighborhoods by which the spread of the mean's coefficients is learned
_NEGLIGIBLE = 0.05  # spread of the coefficients, over what a neighborhood can tell of them, that does not matter
_MOST_HELD = 192  # observations that a training point is predicted from to learn errors; with 128 windows are cut
_COMPARED_NEIGHBORS = 128  # neighbors by which kernels are compared
_COMPARED_POINTS = 800  # training points by which kernels are compared
_EXACT_FARTHEST = 256  # nearest observations that a training point is predicted without, at most, from an inverse
_ONE_TREE = 2**17  # observations from which one search tree serves all the kernels that are compared
_EXACT_FAR_POINTS = 100  # training points predicted at each larger distance from an inverse
_OVERLAP = 8  # holes in which an observation is, on average, at most, where predictions are thinned
_FEWEST_FAR = 32  # training points predicted at each distance then, at least
_GAP_POINTS = 1500  # training points predicted in gaps
_GAP_NEIGHBORS = 256  # observations that they are predicted from, at most: the nearest are all on one side of a gap
_GAP_GROUPS = 6  # distances, with as many training points each, by which errors in gaps are learned
_SHUFFLED = 2**16  # observations up to which all are shuffled to choose some: then fewer points are some of more
_SEED = 0  # of the choice of training points


@storable
@dataclass(frozen=True, eq=False)
class NeighborCurve:
    """Expected loss of log score by the number of neighbors.

    Attributes
    ----------
    n_neighbors : int array of shape (k,)
    skipped : int array of shape (s,)
        How many of the nearest observations the points were predicted without: predictions in gaps.
    loss : array of shape (s, k)
        ½ mean log(v_n / v_max), in nats, against the largest number.
    spread : bool
        Whether a quarter of the neighbors are not the nearest, but farther away (`Neighbors.spread`).
    """

    n_neighbors: Any
    skipped: Any
    loss: Floats
    spread: bool = False

    def check(self) -> None:
        """Check the values; a ValueError says what is wrong."""
        values = (self.n_neighbors, self.skipped, self.loss)
        if not all(isinstance(value, np.ndarray) and are_finite(value) for value in values):
            raise ValueError("a neighbor curve must have arrays of finite numbers")
        if self.n_neighbors.dtype.kind not in "iu" or self.loss.shape != (len(self.skipped), len(self.n_neighbors)):
            raise ValueError("the arrays of a neighbor curve do not fit together")
        if not isinstance(self.spread, bool | np.bool_):
            raise ValueError("spread of a neighbor curve must be True or False")

    def smallest(self) -> int:
        """The smallest number that is enough at every distance; more than 512 only where test points will be.

        Between two numbers that were tried the loss is no more than a straight line says, since it falls ever slower.
        """
        usual = self.n_neighbors <= N_NEIGHBORS
        worst = self.loss.max(axis=0)
        enough = np.flatnonzero(usual & (worst <= _LOSS))
        if len(enough):
            first = int(enough[0])
            if not first:
                return int(self.n_neighbors[0])
            between = np.interp(_LOSS, worst[[first, first - 1]], self.n_neighbors[[first, first - 1]])
            return min(int(np.ceil(between / _STEP) * _STEP), int(self.n_neighbors[first]))
        largest = int(np.flatnonzero(usual)[-1])
        # Wide gaps are among the distances only in few columns. Elsewhere a new row is as near to others as they are.
        wide = self.skipped.max() >= N_NEIGHBORS
        loss = float((self.loss if wide else self.loss[:1])[:, largest].max())
        return int(self.n_neighbors[-1] if loss > _WORTH_MORE else self.n_neighbors[largest])

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        """The numbers by their names, for files."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@storable
@dataclass(frozen=True, eq=False)
class NeighborhoodTuning:
    """What was learned for predictions from the nearest observations.

    Attributes
    ----------
    n_neighbors : int
    n_far : int
        How many of them are not the nearest, but farther away.
    curve : NeighborCurve or None
    coefficients : array of shape (q, t) or None
        Mean of the coefficients of neighborhoods; None where the mean does not vary.
    spread : array of shape (q, q) or None
        Their covariance.
    calibration : Calibration or None
    gross : int array or None
        Observations whose targets the others contradict, of those by which errors were learned.
    """

    n_neighbors: int
    n_far: int = 0
    curve: NeighborCurve | None = None
    coefficients: Floats | None = None
    spread: Floats | None = None
    calibration: Calibration | None = None
    gross: Indices | None = None

    @property
    def neighbors(self) -> Neighbors:
        """The observations that a test point is predicted from."""
        return Neighbors(self.n_neighbors - self.n_far, self.n_far)

    @property
    def active_calibration(self) -> Calibration | None:
        """The calibration, if it changes anything."""
        return None if self.calibration is None or self.calibration.is_gaussian else self.calibration

    def check(self) -> None:
        """Check the values; a ValueError says what is wrong."""
        check_count(self.n_neighbors, "n_neighbors")
        if check_count(self.n_far, "n_far", least=0) >= self.n_neighbors:
            raise ValueError(f"{self.n_far} far neighbors are not some of {self.n_neighbors}")
        if not isinstance(self.curve, NeighborCurve | None) or not isinstance(self.calibration, Calibration | None):
            raise ValueError("the curve or the calibration of a tuning is neither")
        if not (self.gross is None or (isinstance(self.gross, np.ndarray) and self.gross.dtype.kind in "iu")):
            raise ValueError("the gross errors of a tuning must be numbers of observations")
        coefficients, spread = self.coefficients, self.spread
        if coefficients is None and spread is None:
            return
        both = isinstance(coefficients, np.ndarray) and isinstance(spread, np.ndarray)
        if not both or not are_finite([coefficients, spread]):
            raise ValueError("the coefficients of a tuning and their spread must be arrays of finite numbers")
        check_covariance(np.asarray(spread), len(np.asarray(coefficients)))

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        """The values by their names, for files."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def chosen_neighbors(curve: NeighborCurve) -> Neighbors:
    """The fewest neighbors that are enough at every distance."""
    size = curve.smallest()
    return Neighbors.spread(size) if curve.spread else Neighbors(size)


def neighbor_curve(search: NearestPredictor, n_jobs: int | None, *, spread: bool = True) -> NeighborCurve | None:
    """Expected loss of log score by the number of neighbors, at a few training points; None with too few data.

    In few columns some of the neighbors are farther away than the nearest, unless `spread` is False.
    """
    data, n = search.data, len(search.data.X)
    most = max((count for count in NUMBERS if count + 1 < n), default=0)
    if most <= NUMBERS[0]:
        return None
    counts = np.array([count for count in NUMBERS if count <= most])
    few = data.X.shape[1] <= _FEW_COLUMNS
    skips = [skip for skip in (*_CURVE_SKIPS, *_WIDE_SKIPS * few) if skip + most + 1 < n]
    rows = _chosen(n, _CURVE_POINTS, 0)
    noise = _noise(data, rows) + np.finfo(np.float64).tiny
    losses = []
    for skip in skips:
        if few and spread:
            sets = [search.around(rows, skip, Neighbors.spread(int(count)), n_jobs) for count in counts]
            found = [predict_prefixes(data, own, rows, (0,), n_jobs=n_jobs)[0] for own in sets]
        else:  # nearest first: the first j rows of a factor are the nearest j
            whole = search.around(rows, skip, Neighbors(most), n_jobs)[:, ::-1]
            fewer = tuple(int(most - count) for count in counts)
            found = predict_prefixes(data, whole, rows, fewer, n_jobs=n_jobs)
        logs = np.array([np.log(part.variance + noise).mean() for part in found])
        losses.append(0.5 * (logs - logs[-1]))
    return NeighborCurve(counts, np.array(skips), np.maximum(np.array(losses), 0.0), few and spread)


def varying_mean(search: NearestPredictor, size: int, n_jobs: int | None) -> tuple[Floats, Floats] | None:
    """Mean and covariance of the coefficients of neighborhoods; None where they are the same everywhere."""
    rows = _chosen(len(search.data.X), _BLOCKS, 1)
    normal = normal_equations(search.data, search.around(rows, 0, Neighbors(size), n_jobs), n_jobs=n_jobs)
    coefficients, spread = fit_random_effects(normal)
    information = normal.information.mean(axis=0)
    if np.linalg.eigvals(spread @ information).real.max() < _NEGLIGIBLE:
        return None
    return coefficients, spread


def mean_that_varies(
    estimate: Estimated, coefficients: Floats, spread: Floats, outputs: tuple[int, ...]
) -> MeanModel:
    """The mean whose coefficients in a neighborhood are N(β₀, T), T with the error of β₀."""
    covariance = np.asarray(spread) + np.asarray(estimate.covariance) + 1e-9 * np.diag(np.diagonal(spread))
    return as_mean(Basis(estimate.functions, np.asarray(coefficients).reshape(-1, *outputs), covariance))


class LearnedErrors(NamedTuple):
    """What errors of training points tell.

    Attributes
    ----------
    calibration : Calibration or None
        Scale and tails of the errors; None with too few points.
    gross : int array
        Observations whose targets the others contradict, the worst first.
    """

    calibration: Calibration | None
    gross: Indices


def learn_errors(
    search: NearestPredictor, neighbors: Neighbors, heavy_tails: bool, n_jobs: int | None, gaps: Gaps | None = None
) -> LearnedErrors:
    """Learn scale and tails of errors from training points, each predicted without itself and its K nearest.

    With `gaps`, each is predicted without the observations that its gap hides.
    """
    if len(search.data.X) < FEWEST_POINTS:
        return LearnedErrors(None, np.zeros(0, dtype=np.intp))
    parts = [] if gaps is None else gap_predictions(search, gaps, neighbors.at_most(_GAP_NEIGHBORS), n_jobs)
    parts = parts or held_out_predictions(search, neighbors, n_jobs, most=_MOST_HELD)
    return learn_errors_by(search.data, parts, heavy_tails)


def learn_errors_by(data: Observations, parts: list[HeldOutPart], heavy_tails: bool) -> LearnedErrors:
    """The same from training points that were predicted already, the nearest to the data first."""
    near = parts[0]
    errors = _standardized(data, near, near.predicted.variance + near.noise)
    worst = gross_errors(errors, data.targets_of(near.rows).reshape(errors.shape))
    return LearnedErrors(calibrate_by(data, parts, heavy_tails), near.rows[worst])


def calibrate_by(data: Observations, parts: list[HeldOutPart], heavy_tails: bool) -> Calibration:
    """Learn scale and tails of errors from training points that were predicted at several distances."""
    errors, rhos, deltas, scales, distances, weights = [], [], [], [], [], []
    for part in parts:
        rows, skip, _, found, noise = part
        # Of holes of `skip` observations there are no more than n / skip that do not overlap: errors are no more.
        weight = min(1.0, len(data.X) / (max(skip, 1) * len(rows)))
        if skip and data.X.shape[1] > _FEW_COLUMNS:
            weight *= _FAR_WEIGHT
        total = diagonal(data.kernel, data.X[rows], noise=False) + noise
        variance = np.maximum(found.variance + noise, 1e-12 * total)
        rho, delta = ratios(variance, total, found.surroundings)
        z = _standardized(data, part, variance)
        t = z.shape[1]
        errors.append(z.ravel())
        rhos.append(np.repeat(rho, t))
        deltas.append(np.repeat(delta, t))
        scales.append(found.surroundings.scales.reshape(len(rows) * t, -1))
        distances.append(np.full(len(rows) * t, skip))
        weights.append(np.full(len(rows) * t, weight))
    return Calibration.fit(
        np.concatenate(errors),
        np.concatenate(rhos),
        np.concatenate(deltas),
        np.concatenate(scales),
        np.concatenate(distances),
        heavy_tails=heavy_tails,
        weights=np.concatenate(weights),
    )


def calibrated_crps(candidates: Sequence[Observations], heavy_tails: bool, n_jobs: int | None) -> list[Floats]:
    """CRPS of training points predicted from few neighbors with calibrated errors, under each of several kernels.

    Means over outputs, shape (m,) for each kernel. With many observations, where search trees take longer than
    predictions, the neighbors are for all kernels those that are nearest under the first.
    """
    first = NearestPredictor(candidates[0])
    chosen = _compared_sets(first, n_jobs)
    found = [_calibrated_crps(first, chosen, heavy_tails, n_jobs)]
    for data in candidates[1:]:
        if len(data.X) >= _ONE_TREE:
            found.append(_calibrated_crps(first.with_data(data), chosen, heavy_tails, n_jobs))
        else:
            search = NearestPredictor(data)
            found.append(_calibrated_crps(search, _compared_sets(search, n_jobs), heavy_tails, n_jobs))
    return found


def _compared_sets(search: NearestPredictor, n_jobs: int | None) -> list["_HeldOutSets"]:
    few = Neighbors(_COMPARED_NEIGHBORS)
    return _held_out_sets(search, few, n_jobs, seed=4, most=None, points=_COMPARED_POINTS)


def _calibrated_crps(
    search: NearestPredictor, chosen: list["_HeldOutSets"], heavy_tails: bool, n_jobs: int | None
) -> Floats:
    data = search.data
    parts = _predict_held_out(search, chosen, n_jobs)
    calibration = calibrate_by(data, parts, heavy_tails)
    rows, _, _, found, noise = parts[0]
    factors, family = spread_of(calibration, data.kernel, data.X[rows], found, noise)
    errors = (data.targets_of(rows) - found.mean).reshape(len(rows), -1)
    total = diagonal(data.kernel, data.X[rows], noise=False) + noise
    scale = np.sqrt(np.maximum(found.variance + noise, 1e-12 * total))[:, None] * factors
    return np.asarray((scale * family.shaped(2).crps(errors / scale)).mean(axis=1))


def spread_of(
    calibration: Calibration | None, kernel: Kernel, Z: Floats, found: Any, noise: Floats
) -> tuple[Any, Family]:
    """Factors (M, t) on the standard deviations of observations at `Z`, and the family of their errors."""
    if calibration is None or calibration.is_gaussian or not isinstance(found, Surrounded):
        return 1.0, Normal()
    total = diagonal(kernel, Z, noise=False) + noise
    rho, delta = ratios(found.variance + noise, total, found.surroundings)
    factors, df = calibration.apply(rho, delta, found.surroundings.scales)
    return factors, calibration.family(df)


def held_out_predictions(
    search: NearestPredictor,
    neighbors: Neighbors,
    n_jobs: int | None,
    *,
    seed: int = 2,
    most: int | None = None,
    points: int = _NEAR_POINTS,
) -> list[HeldOutPart]:
    """Training points predicted without themselves and their K nearest, for each K of a list.

    Parameters
    ----------
    search : NearestPredictor
    neighbors : Neighbors
        Observations that a test point is predicted from.
    n_jobs : int or None
    seed : int
    most : int, optional
        Observations that a training point is predicted from, at most.
    points : int
        Training points predicted near the data, at most.
    """
    return _predict_held_out(search, _held_out_sets(search, neighbors, n_jobs, seed, most, points), n_jobs)


class _HeldOutSets(NamedTuple):
    """Training points to predict, and the observations to predict them from.

    Attributes
    ----------
    rows : int array of shape (m,)
    skipped : int
        Nearest observations that the sets lack.
    sets : int array of shape (m, n)
        The farthest first.
    skips : tuple of int
        How many of the nearest are left out of the sets, once for each.
    """

    rows: Indices
    skipped: int
    sets: Any
    skips: tuple[int, ...]


def _held_out_sets(
    search: NearestPredictor, neighbors: Neighbors, n_jobs: int | None, seed: int, most: int | None, points: int
) -> list[_HeldOutSets]:
    n, d = search.data.X.shape
    neighbors = neighbors.within(n - 1)
    size, held = neighbors.size, neighbors if most is None else neighbors.at_most(most)
    count = min(points, max(_ENOUGH, n // _SHARE))
    rows = _chosen(n, count, seed)
    found = [_HeldOutSets(rows, 0, search.around(rows, 0, held, n_jobs), _near_skips(held.near))]
    for number, skip in enumerate((size, 4 * size) if d <= _FEW_COLUMNS else (size,)):
        if skip + size + 1 < n:
            rows = _chosen(n, min(_FAR_POINTS, count // 2), seed + 1 + number)
            found.append(_HeldOutSets(rows, skip, search.around(rows, skip, held, n_jobs), (0,)))
    return found


def gap_predictions(
    search: NearestPredictor,
    gaps: Gaps,
    neighbors: Neighbors,
    n_jobs: int | None,
    *,
    seed: int = 2,
) -> list[HeldOutPart]:
    """Training points, each predicted without the observations that its gap hides, in groups by the width of gaps.

    Parameters
    ----------
    search : NearestPredictor
    gaps : Gaps
    neighbors : Neighbors
        Observations that a training point is predicted from.
    n_jobs : int or None
    seed : int

    Returns
    -------
    list of HeldOutPart
        Empty where too few training points have as many observations around their gaps.
    """
    n = len(search.data.X)
    neighbors = neighbors.at_most(n // 2)
    chosen = _chosen(n, min(_GAP_POINTS, max(_ENOUGH, n // _SHARE)), seed)
    kept, skipped, sets = around_in_gaps(search, gaps, chosen, neighbors, n_jobs)
    if len(kept) < FEWEST_POINTS:
        return []
    rows = chosen[kept]
    (predicted,) = predict_prefixes(search.data, sets, rows, (0,), n_jobs=n_jobs)
    distances = search.distances(rows, sets[:, -1])
    found = []
    for group in np.array_split(np.argsort(skipped, kind="stable"), _GAP_GROUPS):
        own = np.sort(group)
        around = Neighborhood(*(values[own] for values in predicted.surroundings))
        part = Surrounded(predicted.mean[own], predicted.variance[own], around)
        noise = _noise(search.data, rows[own])
        found.append(HeldOutPart(rows[own], int(np.median(skipped[own])), distances[own], part, noise))
    return found


def _predict_held_out(
    search: NearestPredictor, chosen: list[_HeldOutSets], n_jobs: int | None
) -> list[HeldOutPart]:
    return [
        HeldOutPart(
            rows, skipped + skip, search.distances(rows, sets[:, -1 - skip]), part, _noise(search.data, rows)
        )
        for rows, skipped, sets, skips in chosen
        for skip, part in zip(skips, predict_prefixes(search.data, sets, rows, skips, n_jobs=n_jobs), strict=True)
    ]


def exact_held_out_predictions(
    precision: Precision, search: NearestPredictor, n_jobs: int | None, *, seed: int = 2, thinned: bool = False
) -> list[HeldOutPart]:
    """The same by the exact Gaussian process given all the others; the K nearest are left out from one inverse.

    Thinned, there are fewer points at the larger distances, where holes overlap and say little more than each other.
    """
    n = len(search.data.X)
    held = min(_EXACT_FARTHEST, n // 2)
    near = _near_skips(held)
    count = max(n // _SHARE, _ENOUGH)
    parts = [(near, count, seed), ((held,), _EXACT_FAR_POINTS, seed + 1)]
    if thinned:
        parts = [
            (skips, max(_FEWEST_FAR, min(most, _OVERLAP * n // max(max(skips), 1))), number)
            for skips, most, number in ((near[:2], count, seed), (near[2:], count, seed), *parts[1:])
        ]
    found = []
    for skips, most, number in parts:
        rows = _chosen(n, most, number)
        around = Neighbors(min(n - 1, max(skips) + max(WINDOWS)))
        sets = search.around(rows, 0, around, n_jobs)[:, ::-1]
        noise = _noise(search.data, rows)
        for skip, part in zip(skips, precision.without(rows, sets, skips, n_jobs), strict=True):
            found.append(HeldOutPart(rows, skip, search.distances(rows, sets[:, skip]), part, noise))
    return found


def _near_skips(size: int) -> tuple[int, ...]:
    return tuple(sorted({0, size // 64, size // 8, 3 * size // 8}))


def _chosen(n: int, count: int, number: int) -> Indices:
    generator = np.random.default_rng([_SEED, number])
    if n <= _SHUFFLED:
        return np.sort(generator.permutation(n)[:count])
    return np.sort(generator.choice(n, min(count, n), replace=False, shuffle=False))


def _noise(data: Observations, rows: Indices) -> Floats:
    return data.take(rows).noise


def _standardized(data: Observations, part: HeldOutPart, variance: Floats) -> Floats:
    """Errors of predictions over their standard deviations: shape (m, t)."""
    errors = (data.targets_of(part.rows) - part.predicted.mean).reshape(len(part.rows), -1)
    return np.asarray(errors / np.sqrt(variance)[:, None])
