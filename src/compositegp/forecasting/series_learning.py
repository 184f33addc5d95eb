"""Learning the model of a series: effects, memory and scale of errors, chosen by forecasts of the past.

A candidate is a target transform, a set of effects and a kind of memory. Its score is the mean of log p(y_step | past)
at origins in the later part of the training data, where the coefficients of the effects come from the windows before
each origin. Candidates are tried one change at a time, and a change is kept if it raises the score.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, Indices
from compositegp.forecasting.clock import Clock
from compositegp.forecasting.coefficients import (
    WEIGHTS,
    Estimate,
    Forecasts,
    Information,
    forecast_in_order,
    look_through,
)
from compositegp.forecasting.effects import Effect, Effects
from compositegp.forecasting.error_scale import ErrorScale, Situation, recent_squares
from compositegp.forecasting.grid import Grid, Rhythm, past_lags
from compositegp.forecasting.horizon_terms import Geometry, Windows, covariances, cut_windows
from compositegp.forecasting.kernel_mixture import (
    LikelyKernel,
    MixtureMember,
    likely_kernels,
    members_of,
    mixed_forecasts,
)
from compositegp.forecasting.kernel_recursion import HORIZONS, KernelRecursion
from compositegp.forecasting.memory import (
    Memory,
    Terms,
    fisher_information,
    learn_memory,
    memory_kernel,
    prior_precision,
    standard_errors,
    sum_of,
    whole_kernel,
)
from compositegp.forecasting.short_series import FREEDOM, LATEST, Structure, learn_structures
from compositegp.forecasting.whole_past import WholePast
from compositegp.learning import Average
from compositegp.predictive import IdentityTarget, PredictiveDistribution, TargetTransform

_STEPS = 24  # of a horizon that are learned from; with more steps every second, third, … is taken
_WINDOWS = 200  # whose score teaches the memory
_FORECAST_SHARE = 0.75  # of the windows: the latest ones, whose forecasts teach the scale of errors
_CHOICE_SHARE = 0.5  # of those: the latest ones, whose forecasts choose the model
_FEWEST_WINDOWS, _INCOMPLETE = 40, 30  # complete windows that suffice; incomplete ones that are taken otherwise
_OVERLAP_BELOW = 150  # windows: with fewer, horizons overlap
_REFITS = 40  # of the coefficients, over the windows that are forecast
_WHOLE = 672  # steps of a short series: forecasts are made from all of it
_LEARNED_FROM = 1 / 3  # of a short series: its first part, whose forecasts do not count
_CYCLES = 2.5  # of the longest pattern that are known before the first forecast that counts
_INDEPENDENT = 1.0  # errors in a horizon, by the coverage of 46 series, most of months and quarters
_GROSS = 20.0  # median deviations from the median beyond which a value does not tell how much a series varies
_LEVELS = 40  # quantiles by which a CRPS is computed


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model to be tried.

    Attributes
    ----------
    transform : TargetTransform
    effects : list of Effect
    memory : Memory
    """

    transform: TargetTransform
    effects: list[Effect]
    memory: Memory


class Task(NamedTuple):
    """What is forecast.

    Attributes
    ----------
    grid : Grid
    effects : Effects
        With the clock of the series; its effects are those of no candidate.
    rhythm : Rhythm
    block : int
        Steps of the horizon.
    patterns : dict
        Steps of the patterns that drift, by name.
    n_neighbors : int
        The largest number of known values that a forecast is made from.
    """

    grid: Grid
    effects: Effects
    rhythm: Rhythm
    block: int
    patterns: dict[str, float]
    n_neighbors: int = 672

    @property
    def is_whole(self) -> bool:
        """Whether forecasts are made from all of the series."""
        return len(self.grid.values) <= min(_WHOLE, self.n_neighbors)

    @property
    def clock_changes(self) -> bool:
        """Whether the clock of a series with several values a day goes from standard time to summer time or back."""
        if not self.rhythm.is_sub_daily:
            return False
        saving = Clock.at(self.effects.timeline, self.grid.points[:, 0], self.effects.holidays).saving
        return bool(np.ptp(saving))

    @property
    def least(self) -> float:
        """The smallest positive value of a series that has zeros and nothing below them; 0 for other series."""
        values = self.grid.values[np.isfinite(self.grid.values)]
        return float(values[values > 0].min(initial=np.inf)) if values.min() == 0 < values.max() else 0.0

    @property
    def first_origin(self) -> int:
        """The first step of a short series whose forecast counts."""
        size, cycle = len(self.grid.values), max(self.patterns.values(), default=0.0)
        return min(round(max(_LEARNED_FROM * size, _CYCLES * cycle)), size - self.block)

    @property
    def chance(self) -> float:
        """Nats a value by which forecasts of a short series score better by chance: one for all that is independent."""
        return float(np.sqrt(self.block) / (len(self.grid.values) - self.first_origin))

    @property
    def geometry(self) -> Geometry:
        """Lags and steps of its forecasts."""
        if self.is_whole:
            return Geometry(np.arange(1, 1 + len(self.grid.values)), np.arange(self.block))
        return self.windows

    @property
    def windows(self) -> Geometry:
        """Lags and steps of windows that fit into the series many times."""
        reach = min(self.rhythm.reach, max(len(self.grid.values) // 3, 2))
        return Geometry(past_lags(reach, self.n_neighbors), np.arange(self.block))

    @property
    def starts(self) -> Indices:
        """Origins of all the windows, the last of which ends with the series."""
        size, reach = len(self.grid.values), int(self.windows.lags.max())
        room = size - reach - self.block
        apart = self.block if room // self.block >= _OVERLAP_BELOW else max(1, room // _OVERLAP_BELOW)
        apart = min(apart, self.block)
        return np.arange(size - self.block, reach - 1, -apart)[::-1]


@dataclass(frozen=True, eq=False)
class PastForecasts:
    """Forecasts of values that are known, by which candidates are compared.

    Attributes
    ----------
    distribution : PredictiveDistribution
        Of n values, in the user's unit.
    observed : array of shape (n,)
        The values.
    origins : int array of shape (n,)
        The number of the horizon that each is in, ascending.
    overlap : float
        Horizons in which a value is.
    least : float
        The smallest positive value of a series with zeros; 0 for a series without them.
    """

    distribution: PredictiveDistribution
    observed: Floats
    origins: Indices
    overlap: float
    least: float = 0.0

    @cached_property
    def log_scores(self) -> Floats:
        """Log densities of the values, shape (n,): larger is better.

        The density of a root is infinite at zero, and so that scales can be compared, a zero counts on all of them as a
        value of at most the least one above it, with the logarithm of that probability.
        """
        found = np.empty(len(self.observed))
        zero = (self.observed == 0) & (self.least > 0)
        below, others = self.distribution[zero], self.distribution[~zero]
        found[zero] = np.log(np.maximum(below.cdf(np.full(len(below), self.least)), np.finfo(np.float64).tiny))
        found[~zero] = others.logpdf(self.observed[~zero])
        return found

    @cached_property
    def crps(self) -> Floats:
        """CRPS of the values, shape (n,): twice the mean pinball loss of quantiles, quick for any scale."""
        total = np.zeros(len(self.observed))
        for level in (np.arange(_LEVELS) + 0.5) / _LEVELS:
            below = self.observed - self.distribution.quantile(float(level))
            total += np.maximum(level * below, (level - 1) * below)
        return 2 * total / _LEVELS

    def standard_error(self, differences: Floats) -> float:
        """Standard error of the mean of differences (n,) between scores of the values.

        Errors of one horizon are alike: it is that of the means of horizons that do not overlap.
        """
        numbers = np.unique(self.origins, return_inverse=True)[1]
        means = np.bincount(numbers, differences) / np.bincount(numbers)
        independent = max(len(means) / self.overlap, 2.0)
        return float(means.std() / np.sqrt(independent - 1))


@dataclass(frozen=True, eq=False)
class Learned:
    """A candidate with all that was learned about it.

    Attributes
    ----------
    candidate : Candidate
    kernel : scikit-learn kernel of the time in steps
    names : list of str
        Of the parts of the kernel, in their order.
    center : float
        Of the series on the model's scale, about which the effects are.
    information : Information
        About the coefficients of the effects.
    scale : ErrorScale
    recent : array of shape (3,)
        Mean squares of the latest errors.
    score : float
        Mean log density of a value that was forecast, in the user's unit: larger is better.
    past : PastForecasts
        Which the score is of.
    whole : WholePast or None
        A short series as the model sees it: outliers are tempered. None for a long one.
    structures : sequence of Structure
        Kernels that were learned from a short series, of which this is the best.
    kernels : sequence of LikelyKernel
        Those that forecasts of a short series are averaged over; without any they are made by the one kernel.
    """

    candidate: Candidate
    kernel: Kernel
    names: list[str]
    center: float
    information: Information
    scale: ErrorScale
    recent: Floats
    score: float
    past: PastForecasts
    whole: WholePast | None = None
    structures: Sequence[Structure] = ()
    kernels: Sequence[LikelyKernel] = ()

    @property
    def estimate(self) -> Estimate:
        """Posterior of the coefficients."""
        return self.information.estimate()


def learn_candidate(
    task: Task, candidate: Candidate, start: Kernel | None = None, rounds: int = 2, *, learn_kernel: bool = True
) -> Learned:
    """Learn the memory and the coefficients of a candidate in turn, and score its forecasts.

    Parameters
    ----------
    task : Task
    candidate : Candidate
    start : scikit-learn kernel, optional
        Of the same parts, from which learning begins.
    rounds : int
        Turns.
    learn_kernel : bool
        Whether the kernel is learned, or stays where it begins.
    """
    if task.is_whole:
        return _learn_from_whole_past(task, candidate, None if learn_kernel else start)
    y = _targets(task.grid.values, candidate.transform)
    center, known = float(np.nanmean(y)), np.isfinite(y)
    y = y - center
    variance = float(np.nanvar(y))
    effects = replace(task.effects, effects=candidate.effects)
    functions = effects(task.grid.points)
    geometry, starts = task.geometry, task.starts
    stride = max(1, -(-task.block // _STEPS))
    learned_steps = Geometry(geometry.lags, _learned_steps(geometry, task.block))
    taken = starts[-min(2 * _WINDOWS, len(starts)) :]
    taken = taken[np.unique(np.linspace(0, len(taken) - 1, _WINDOWS).round().astype(int))]
    overlap = task.block / max(int(starts[-1] - starts[-2]), 1) if len(starts) > 1 else 1.0
    first = max(1, min(len(starts) - 1, round((1 - _FORECAST_SHARE) * len(starts))))
    # A first guess of the coefficients, as if a tenth of the values were independent.
    guess = Information.none(functions.shape[1], variance, 0.1 / (0.3 * variance))
    residuals = y - functions @ guess.plus(functions[known], y[known]).estimate().mean
    parts = memory_kernel(candidate.memory, task.patterns, task.block, float(np.nanvar(residuals)))
    kernel = sum_of(list(parts.values())) if start is None else start
    found: Learned | None = None
    for turn in range(rounds):
        windows = cut_windows(residuals, taken, learned_steps, _FEWEST_WINDOWS, _INCOMPLETE)
        if not windows:
            raise ValueError(
                f"the series has no window of {int(geometry.lags.max())} steps with a value after it to learn from. "
                "Give a longer series."
            )
        if learn_kernel:
            kernel = learn_memory(kernel, windows, 40 if turn == 0 else 20).kernel
        k = covariances(kernel, geometry.reach)
        seen = look_through(y, functions, starts, geometry, k, stride)
        weights = [weight / overlap for weight in WEIGHTS]
        every = max(1, (len(starts) - first) // _REFITS)
        tried, information = forecast_in_order(seen, variance, weights, first, every)
        scores = [_plain_score(one) for one in tried]
        best = int(np.argmax(scores))
        information = replace(information, weight=weights[best])
        residuals = y - functions @ information.estimate().mean
        if turn == rounds - 1:
            at = (seen.starts[first:, None] + seen.steps[first:]).ravel()
            scale, recent, past = _calibrate(
                task, candidate, tried[best], seen.steps[first:], at, y + center, overlap
            )
            score = float(past.log_scores.mean())
            found = Learned(candidate, kernel, list(parts), center, information, scale, recent, score, past)
    assert found is not None
    return found


def _learn_from_whole_past(task: Task, candidate: Candidate, kernel: Kernel | None) -> Learned:
    """Learn a candidate of a short series by its likelihood, or take a kernel, and score its later forecasts."""
    y = _targets(task.grid.values, candidate.transform)
    center, variance = _usual_moments(y)
    functions = replace(task.effects, effects=candidate.effects)(task.grid.points)
    observed = WholePast(y - center, functions, variance)
    structures: list[Structure] = []
    if kernel is None:
        structures = learn_structures(observed, task.patterns, task.block, variance)
        kernel, names = structures[0].kernel, structures[0].names
    else:
        names = list(whole_kernel(task.patterns, task.block, len(y), variance))
    k = covariances(kernel, len(y))
    past = observed.tempered(k)
    forecasts = Forecasts(*(one[task.first_origin :] for one in past.forecasts(k, task.block)))
    scale, recent, tried = _calibrate_whole(task, candidate, forecasts, y)
    score = float(tried.log_scores.mean())
    information = past.information(k, _weight(task))
    return Learned(candidate, kernel, names, center, information, scale, recent, score, tried, past, structures)


def averaged_over_kernels(
    task: Task, learned: Learned, given: Sequence[MixtureMember | LikelyKernel] | None = None
) -> Learned:
    """A model of a short series whose forecasts, past ones too, are averaged over the kernels that the series allows.

    Or over those that are given. A long series, or one whose kernel alone was given, keeps its one kernel.
    """
    past = learned.whole
    if past is None:
        return learned
    if given is None:
        kernels = likely_kernels(learned.structures, past)
    else:
        kernels = [LikelyKernel(one.weight, one.kernel, one.names, one.theta) for one in given]
    kernels, made = mixed_forecasts(kernels, past, task.block)
    if made is None:
        return learned
    y = _targets(task.grid.values, learned.candidate.transform)
    forecasts = Forecasts(*(one[task.first_origin :] for one in made))
    scale, recent, tried = _calibrate_whole(task, learned.candidate, forecasts, y)
    score = float(tried.log_scores.mean())
    return replace(learned, scale=scale, recent=recent, score=score, past=tried, kernels=kernels)


def members(task: Task, learned: Learned) -> list[MixtureMember]:
    """The kernels that forecasts are averaged over, each with what is known about the coefficients under it."""
    return [] if learned.whole is None else members_of(learned.kernels, learned.whole, _weight(task))


def _weight(task: Task) -> float:
    """Of windows of a short series in the information about the coefficients: that of horizons to come."""
    return float(1 / np.sqrt(task.block))


def _usual_moments(y: Floats) -> tuple[float, float]:
    """Mean and variance of the values that are known; gross outliers, such as a mark for "missing", count as nearer."""
    middle = float(np.nanmedian(y))
    reach = _GROSS * float(np.nanmedian(np.abs(y - middle)))
    usual = np.clip(y, middle - reach, middle + reach) if reach > 0 else y
    return float(np.nanmean(usual)), float(np.nanvar(usual))


def _calibrate_whole(
    task: Task, candidate: Candidate, forecasts: Forecasts, y: Floats
) -> tuple[ErrorScale, Floats, PastForecasts]:
    """As `_calibrate`, for overlapping horizons of a short series; the scale knows that they are few."""
    steps = np.broadcast_to(np.arange(task.block), forecasts.errors.shape)
    at = (task.first_origin + np.arange(len(steps))[:, None] + steps).ravel()
    scale, recent, past = _calibrate(task, candidate, forecasts, steps, at, y, float(task.block))
    return scale.widened(_INDEPENDENT * (len(y) - task.first_origin) / task.block), recent, past


def begin_recursion(task: Task, learned: Learned) -> KernelRecursion:
    """What is known about the kernel's hyper-parameters, to which segments of later values will add."""
    kernel, until = learned.kernel, task.grid.first + len(task.grid.values)
    if learned.whole is None:
        windows: Sequence[Terms] = memory_windows(task, learned)
        information = fisher_information(kernel, windows)
        steps, starts = _learned_steps(task.windows, task.block), task.starts
        apart = int(starts[-1] - starts[-2]) if len(starts) > 1 else task.block
        segment = HORIZONS * task.block
    else:
        windows = [learned.whole.latest(LATEST)]
        information = fisher_information(kernel, windows) + prior_precision(kernel, FREEDOM)
        steps, apart, segment = np.arange(1), 1, task.block
    average = Average.known(kernel.theta, information, 1, float(sum(one.count for one in windows)))
    return KernelRecursion(average, standard_errors(kernel, windows), steps, apart, segment, until)


def memory_windows(task: Task, learned: Learned) -> list[Windows]:
    """The latest windows of the series less its effects, which tell about the kernel."""
    functions = replace(task.effects, effects=learned.candidate.effects)(task.grid.points)
    if learned.whole is None:
        y = _targets(task.grid.values, learned.candidate.transform) - learned.center
    else:
        y = learned.whole.values
    residuals = y - functions @ learned.estimate.mean
    steps = Geometry(task.windows.lags, _learned_steps(task.windows, task.block))
    return cut_windows(residuals, task.starts[-_WINDOWS:], steps, _FEWEST_WINDOWS, _INCOMPLETE)


def _learned_steps(geometry: Geometry, block: int) -> Indices:
    """Steps of the horizon whose forecasts teach the memory."""
    stride = max(1, -(-block // _STEPS))
    return geometry.steps[stride // 2 :: stride]


def _targets(values: Floats, transform: TargetTransform) -> Floats:
    known = np.isfinite(values)
    found = np.full(len(values), np.nan)
    found[known] = transform.forward(values[known])
    return found


def _plain_score(forecasts: Forecasts) -> float:
    """Minus the mean of log(|error| + √variance / 10): larger is better, and outliers count little."""
    z = forecasts.errors / np.sqrt(forecasts.variance)
    return float(np.nanmean(-np.log(np.abs(z) + 0.1)) - np.nanmean(0.5 * np.log(forecasts.variance)))


def _calibrate(
    task: Task,
    candidate: Candidate,
    forecasts: Forecasts,
    steps: Indices,
    at: Indices,
    y: Floats,
    overlap: float,
) -> tuple[ErrorScale, Floats, PastForecasts]:
    """Scale of the errors, mean squares of the latest ones, and the forecasts by which candidates are compared."""
    z = forecasts.errors / np.sqrt(forecasts.variance)
    counts = np.isfinite(z).sum(axis=1).astype(np.float64)
    squares = np.where(np.isfinite(z), z, 0.0) ** 2
    recent = recent_squares(squares.sum(axis=1) / np.maximum(counts, 1), counts, z.shape[1] * overlap)
    # At an origin only the errors of windows that have ended are known.
    late = max(round(overlap) - 1, 0)
    known = np.concatenate([np.repeat(recent[:1], late, axis=0), recent])[: len(z)]
    places = task.grid.first + at.astype(np.float64)
    clock = Clock.at(task.effects.timeline, places, task.effects.holidays)
    there = np.isfinite(z).ravel()
    each = np.repeat(known, z.shape[1], axis=0)
    situation = Situation(1.0 + steps.ravel()[there].astype(np.float64), clock.take(there), each[there])
    scale = ErrorScale.learn(
        z.ravel()[there],
        situation,
        task.block,
        sub_daily=task.rhythm.is_sub_daily,
        yearly=(places[-1] - places[0]) / task.rhythm.per_day > 300,
        limited=not isinstance(candidate.transform, IdentityTarget),
        overlap=overlap,
        whole=task.is_whole,
    )
    spread = np.sqrt(forecasts.variance).ravel()[there] * scale.factors(situation)
    location = y[at][there] - forecasts.errors.ravel()[there]
    found = PredictiveDistribution(location, spread, candidate.transform, scale.family)
    share = 1.0 if task.is_whole else _CHOICE_SHARE
    latest = np.arange(len(location))[-max(int(share * len(location)), 1) :]
    origins = np.repeat(np.arange(len(z)), z.shape[1])[there]
    observed = task.grid.values[at][there]
    past = PastForecasts(found[latest], observed[latest], origins[latest], overlap, task.least)
    if not task.is_whole:  # the few horizons of a short series all count alike
        scale = scale.followed(z.ravel()[there], situation, origins, z.shape[1] * overlap)
    return scale, recent[-1], past
