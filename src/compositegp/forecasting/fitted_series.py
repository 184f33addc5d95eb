"""A fitted model of a series: what was learned, and the latest values."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Booleans, Floats, Indices
from compositegp.forecasting.clock import Clock
from compositegp.forecasting.coefficients import Estimate, Information
from compositegp.forecasting.effects import Effects
from compositegp.forecasting.error_scale import ErrorScale, Situation, recent_squares
from compositegp.forecasting.grid import Grid, Rhythm, column_histories, past_lags
from compositegp.forecasting.horizon_terms import Filter, Geometry, covariances
from compositegp.forecasting.kernel_mixture import MixtureMember, mixed_moments
from compositegp.forecasting.kernel_recursion import KernelRecursion
from compositegp.forecasting.memory import parts_of
from compositegp.forecasting.timeline import Horizon, Timeline
from compositegp.forecasting.whole_past import WholePast
from compositegp.means import Estimated
from compositegp.predictive import PredictiveDistribution, TargetTransform

_SAME_TIME = 1e-9  # steps within which two times are the same
_REACHES = 2  # rows that are kept, over the longest lag: a gap leaves something to forecast from
_ENOUGH = 0.25  # of the lags have to be observed; otherwise a forecast looks further back
_CHUNK = 1024  # steps that are forecast at a time, where no covariance is asked for


class _Ahead(NamedTuple):
    """The past as it forecasts some steps: see `FittedSeries.ahead`."""

    location: Floats
    functions: Floats
    geometry: Geometry
    filter: Filter


@dataclass(frozen=True, eq=False)
class FittedSeries:
    """What a fitted forecaster has; never changed, only replaced, so that a failed update changes nothing.

    Attributes
    ----------
    timeline : Timeline
    block : int
        Steps of the horizon that it was learned for.
    transform : TargetTransform
    kernel : scikit-learn kernel of the time in steps
    names : list of str
        Of the parts of the kernel, in their order.
    recursion : KernelRecursion
        What is known about the kernel's hyper-parameters.
    effects : Effects
    center : float
        Of the series on the model's scale, about which the effects are.
    information : Information
        About the coefficients of the effects.
    scale : ErrorScale
    recent : array of shape (3,)
        Mean squares of the latest errors.
    reach : int
        Steps that a forecast looks back.
    n_neighbors : int
        The largest number of known values that a forecast is made from.
    learned_until : int
        The first step whose value has not yet taught anything.
    grid : Grid
        The latest values.
    columns : list of str
        Names of the further columns.
    notes : list of str
    tempered : array or None
        Of a short series the values before `learned_until` on the model's scale, less the center: outliers are nearer
        to their forecasts. None for a long series.
    members : sequence of MixtureMember
        Kernels that forecasts of a short series are averaged over; without any they are made by the one kernel, which
        otherwise says how outliers are tempered, and what is told of the model in words.
    filters : dict
        Filters that were used lately, by their lags and steps: origins without missing values share one.
    filters_kept : int
        How many of them are kept.
    """

    timeline: Timeline
    block: int
    transform: TargetTransform
    kernel: Kernel
    names: list[str]
    recursion: KernelRecursion
    effects: Effects
    center: float
    information: Information
    scale: ErrorScale
    recent: Floats
    reach: int
    n_neighbors: int
    learned_until: int
    grid: Grid
    columns: list[str]
    notes: list[str]
    tempered: Floats | None = None
    members: Sequence[MixtureMember] = ()
    filters: dict[bytes, Filter] = field(default_factory=dict, repr=False)
    filters_kept: int = 4

    def __getstate__(self) -> dict[str, Any]:
        """State without what can be computed again."""
        members = [replace(one, filters={}) for one in self.members]
        names = [one.name for one in fields(self)]
        return {name: getattr(self, name) for name in names} | {"filters": {}, "members": members}

    @property
    def last(self) -> float:
        """Time of the latest observation, in steps."""
        return float(self.grid.first + len(self.grid.values) - 1)

    @cached_property
    def estimate(self) -> Estimate:
        """Posterior of the coefficients of the effects."""
        return self.information.estimate()

    @property
    def mean(self) -> Estimated:
        """The effects as a mean with estimated coefficients, in the words of `posterior`."""
        coefficients = self.estimate.mean.copy()
        level = self.effects.effects[0]
        coefficients[0] += self.center / level.spread
        return Estimated(self.effects, coefficients, self.estimate.covariance)

    @property
    def parts(self) -> dict[str, Kernel]:
        """The parts of the kernel by their names."""
        return dict(zip(self.names, parts_of(self.kernel, len(self.names)), strict=True))

    def alternatives(self, *, keep: bool = False) -> "list[FittedSeries]":
        """The same series under each kernel that forecasts are averaged over; made when asked for, to save memory.

        With `keep` each keeps the last filter that it used, for the next origin of the same horizon.
        """
        found = []
        for one in self.members:
            series = replace(
                self,
                kernel=one.kernel,
                names=one.names,
                information=one.information,
                members=(),
                filters=one.filters if keep else {},
                filters_kept=1,
            )
            vars(series).update(targets=self.targets, past_functions=self.past_functions)  # made once
            found.append(series)
        return found

    @property
    def rhythm(self) -> Rhythm:
        """What its time step suggests."""
        return Rhythm.of(self.timeline)

    @cached_property
    def _observed_targets(self) -> Floats:
        """Values of the grid on the model's scale, less the center; NaN where one is missing."""
        values = self.grid.values
        found, known = np.full(len(values), np.nan), np.isfinite(values)
        found[known] = self.transform.forward(values[known]) - self.center
        return found

    @cached_property
    def targets(self) -> Floats:
        """The values that forecasts are made from: those of the grid, on the model's scale, but tempered outliers."""
        if self.tempered is None:
            return self._observed_targets
        return np.concatenate(
            [self.tempered, self._tempered_rows(slice(len(self.tempered), len(self.grid.values)))]
        )

    def _tempered_rows(self, rows: slice) -> Floats:
        """Targets of rows after those that are tempered, given as many of these as are always kept."""
        assert self.tempered is not None
        if rows.start >= rows.stop:
            return np.empty(0)
        start = max(rows.start - _REACHES * self.reach, 0)
        values = np.concatenate([self.tempered[start : rows.start], self._observed_targets[rows]])
        past = WholePast(values, self.effects(self.grid.points[start : rows.stop]), self.information.prior_variance)
        try:
            found = past.tempered(covariances(self.kernel, past.reach), rows.start - start)
        except LinAlgError as error:
            raise LinAlgError(f"No forecast can be made from the latest {len(values)} values: {error}") from error
        return found.values[rows.start - start :]

    def outliers_in_words(self) -> list[str]:
        """A note about values that count for less than they are, if there are any."""
        rows = np.flatnonzero(np.isfinite(self.targets) & (self.targets != self._observed_targets))
        if not len(rows):
            return []
        last = self.timeline.stamps(self.grid.first + rows[-1:].astype(np.float64))[0]
        return [
            f"{len(rows)} value(s) are far from what the values before them let expect, the last of them on "
            f"{str(last).removesuffix(' 00:00:00')}. "
            "Each counts as four standard deviations from there, so that it changes later forecasts by little."
        ]

    @cached_property
    def observed(self) -> Indices:
        """Rows of the grid, latest last, that a forecast is made from."""
        size = len(self.grid.values)
        lags = past_lags(min(self.reach, size), self.n_neighbors)
        rows = size - lags[::-1]
        known = rows[np.isfinite(self.grid.values[rows])]
        if len(known) >= _ENOUGH * len(lags):
            return known
        # After a gap, those before it: as many rows as are always kept, however many arrived at a time.
        looked = np.arange(max(size - _REACHES * self.reach, 0), size)
        return looked[np.isfinite(self.grid.values[looked])][-len(lags) :]

    @cached_property
    def past_functions(self) -> Floats:
        """Basis functions of the effects at the rows that a forecast is made from."""
        return self.effects(self.grid.points[self.observed])

    def is_new(self, places: Floats) -> Booleans:
        """Which times are later than the latest observation: a boolean array of shape (n,)."""
        return places > self.last + _SAME_TIME

    def next_places(self, horizon: Horizon) -> Floats:
        """Times of the steps after the latest observation, in steps."""
        return np.asarray(self.last + 1.0 + np.arange(self.timeline.steps(horizon)), dtype=np.float64)

    def points_at(self, places: Floats, extra: Floats | None) -> Floats:
        """Points of later times (n,): the time, the further columns (n, k), and their histories."""
        if not self.columns:
            return places[:, None]
        k = len(self.columns)
        values = np.full((len(places), k), np.nan) if extra is None else extra
        rows = np.round(places - self.last).astype(np.int64) - 1
        dense = np.full((max(int(rows.max()) + 1, 1), k), np.nan)
        dense[rows] = values
        before = self.grid.columns[-1, k:].reshape(k, 3)
        histories = [column_histories(dense[:, j], self.rhythm.per_day, before[j])[rows] for j in range(k)]
        return np.column_stack([places, values, *histories])

    def with_observations(self, grid: Grid, *, learn: bool = False) -> "FittedSeries":
        """The same model with later rows, the first of which follows the latest one.

        Rows teach the coefficients and the scale of errors once a horizon of them is complete and, with `learn`, the
        kernel once a segment of them is, so that it does not matter in how many parts they arrive.
        """
        values = np.concatenate([self.grid.values, grid.values])
        columns = np.concatenate([self.grid.columns, grid.columns])
        series = replace(self, grid=Grid(self.grid.first, values, columns))
        while series.learned_until + self.block <= series.grid.first + len(values):
            series = series._with_next_block()
            if not learn:
                series = replace(series, recursion=series.recursion.passed(series.learned_until))
            elif series.learned_until >= series.recursion.until + series.recursion.segment:
                series = series._with_next_kernel()
        needed = min(
            len(values) - (_REACHES * self.reach + self.block),
            series.recursion.rows_needed(self.reach, self.block) - self.grid.first,
        )
        kept = slice(max(needed, 0), None)
        tempered = None if series.tempered is None else series.tempered[kept]
        return replace(
            series, grid=Grid(self.grid.first + kept.start, values[kept], columns[kept]), tempered=tempered
        )

    def _with_next_block(self) -> "FittedSeries":
        """What the next horizon that is complete teaches, as it was forecast from the rows before it."""
        row = self.learned_until - self.grid.first
        rows = slice(row, row + self.block)
        known = np.isfinite(self.grid.values[rows])
        information, recent, scale, members = self.information, self.recent, self.scale, self.members
        moved = None if self.tempered is None else self._tempered_rows(rows)
        if known.any():
            before = replace(self, grid=Grid(self.grid.first, self.grid.values[:row], self.grid.columns[:row]))
            points = self.grid.points[rows][known]
            alternatives = before.alternatives(keep=True)
            location, variance = before._moments(points, False, alternatives)
            y = self.transform.forward(self.grid.values[rows][known])
            total = np.sqrt(variance)
            squares, counts = np.array([np.mean(((y - location) / total) ** 2)]), np.array([float(known.sum())])
            recent = recent_squares(squares, counts, self.block, recent)[-1]
            one = np.zeros(len(points), dtype=np.int64)
            scale = scale.followed((y - location) / total, before._situation(points), one, self.block)
            learned = y if moved is None else self.center + moved[known]
            information = before._taught(points, learned)
            members = [
                replace(member, information=series._taught(points, learned))
                for member, series in zip(members, alternatives, strict=True)
            ]
        until = self.learned_until + self.block
        tempered = None if moved is None or self.tempered is None else np.concatenate([self.tempered, moved])
        return replace(
            self,
            information=information,
            recent=recent,
            scale=scale,
            learned_until=until,
            tempered=tempered,
            members=members,
        )

    def _taught(self, points: Floats, y: Floats) -> Information:
        """What is known about the coefficients after later values `y`, as this kernel forecasts them."""
        ahead = self.ahead(points)
        spread = np.sqrt(ahead.filter.variance)
        functions = ahead.functions / spread[:, None]
        return self.information.plus(functions, (y - ahead.location) / spread + functions @ self.estimate.mean)

    def _with_next_kernel(self) -> "FittedSeries":
        """The kernel with what the next segment that is complete tells about it.

        Mean squares of recent errors are restated in the unit of the new variances, so that they do not count twice
        what the kernel has learned. What the level of the scale has learned of it is forgotten with time. From then on
        forecasts are made by this kernel alone: those that they were averaged over learn nothing.
        """
        recursion = self.recursion
        end = recursion.until + recursion.segment - self.grid.first
        start = max(recursion.rows_needed(self.reach, self.block) - self.grid.first, 0)
        residuals = self.targets[start:end] - self.effects(self.grid.points[start:end]) @ self.estimate.mean
        lags = past_lags(self.reach, self.n_neighbors)
        kernel, recursion, ratio = recursion.take_in(
            self.kernel, lags, residuals, self.grid.first + start, self.block
        )
        return replace(self, kernel=kernel, recursion=recursion, recent=ratio * self.recent, members=(), filters={})

    def geometry(self, points: Floats) -> Geometry:
        """Lags of the values that a forecast is made from, and steps of later points."""
        origin = len(self.grid.values)  # the step after the latest row
        steps = np.round(points[:, 0]).astype(np.int64) - self.grid.first - origin
        return Geometry(origin - self.observed, steps)

    def ahead(self, points: Floats) -> _Ahead:
        """Forecasts of later points (n, 1 + k + 3 k): locations, basis functions as they are seen, and the filter."""
        rows, geometry = self.observed, self.geometry(points)
        used = self._filter(geometry)
        functions = self.effects(points) - used.weights @ self.past_functions
        location = self.center + used.weights @ self.targets[rows] + functions @ self.estimate.mean
        return _Ahead(location, functions, geometry, used)

    def _filter(self, geometry: Geometry) -> Filter:
        key = np.concatenate([geometry.lags, [-1], geometry.steps]).tobytes()
        if key not in self.filters:
            if len(self.filters) >= self.filters_kept:
                self.filters.pop(next(iter(self.filters)))
            try:
                self.filters[key] = geometry.filter(covariances(self.kernel, geometry.reach))
            except LinAlgError as error:
                count = len(geometry.lags)
                raise LinAlgError(f"No forecast can be made from the latest {count} values: {error}") from error
        return self.filters[key]

    def forecast(self, points: Floats, *, joint: bool, latent: bool) -> PredictiveDistribution:
        """Distributions of the values at later points."""
        if joint:
            return self._joint(points, latent)
        found = [self._marginal(points[i : i + _CHUNK], latent) for i in range(0, len(points), _CHUNK)]
        location, scale = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return PredictiveDistribution(location, scale, self.transform, self.scale.family)

    def _marginal(self, points: Floats, latent: bool) -> tuple[Floats, Floats]:
        location, variance = self._moments(points, latent, self.alternatives())
        return location, np.sqrt(variance) * self.factors(points)

    def _moments(
        self, points: Floats, latent: bool, alternatives: "Sequence[FittedSeries]" = ()
    ) -> tuple[Floats, Floats]:
        """Means and variances at later points, shape (M,), by the alternatives; past errors have no say in them."""
        if alternatives:
            each = [series._moments(points, latent) for series in alternatives]
            return mixed_moments(self.members, *map(list, zip(*each, strict=True)))
        ahead = self.ahead(points)
        variance = ahead.filter.variance + self.estimate.variance_of(ahead.functions) - self._noise * latent
        return ahead.location, np.maximum(variance, 0.0)

    def _joint(self, points: Floats, latent: bool) -> PredictiveDistribution:
        location, covariance = self._joint_moments(points, latent)
        factors = self.factors(points)
        covariance = 0.5 * (covariance + covariance.T) * np.outer(factors, factors)
        scale = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
        return PredictiveDistribution(location, scale, self.transform, self.scale.family, covariance)

    def _joint_moments(self, points: Floats, latent: bool) -> tuple[Floats, Floats]:
        """Means and the covariance of later points: (M,) and (M, M)."""
        if self.members:
            each = [series._joint_moments(points, latent) for series in self.alternatives()]
            weights = [one.weight for one in self.members]
            location = np.asarray(sum(weight * one[0] for weight, one in zip(weights, each, strict=True)))
            total = np.zeros((len(points), len(points)))
            for weight, (mean, own) in zip(weights, each, strict=True):
                total += weight * (own + np.outer(mean - location, mean - location))
            return location, total
        ahead = self.ahead(points)
        geometry = ahead.geometry
        steps = geometry.steps
        apart = np.abs(steps[:, None] - steps)
        k = covariances(self.kernel, int(max(geometry.reach, apart.max() + 1)))
        prior = k[apart]
        prior[apart == 0] -= self._noise * latent
        covariance = prior - ahead.filter.weights @ k[geometry.outer]
        covariance += ahead.functions @ self.estimate.covariance @ ahead.functions.T
        return ahead.location, covariance

    def factors(self, points: Floats) -> Floats:
        """Factors on the standard deviations of forecasts of later points, by past errors: shape (M,)."""
        return self.scale.factors(self._situation(points))

    def _situation(self, points: Floats) -> Situation:
        clock = Clock.at(self.timeline, points[:, 0], self.effects.holidays)
        steps = points[:, 0] - self.last
        return Situation(steps, clock, np.repeat(self.recent[None], len(points), axis=0))

    @property
    def _noise(self) -> float:
        return float(self.parts["noise"].noise_level)
