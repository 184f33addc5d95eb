"""The comparison of kernels: all on a few terms, and those that may still be the best on more and more of them."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.linalg import LinAlgError
from scipy.stats import norm
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, Indices
from compositegp.composite import Score
from compositegp.kernels import DataScale, at_theta
from compositegp.learning.fisher_scoring import IDLE_STEPS, Optimum, maximize, promised_gain
from compositegp.learning.kernel_comparison import ComparedKernel, KernelComparison
from compositegp.learning.log_likelihoods import log_likelihoods_of_pieces
from compositegp.learning.prior import LogScalePrior
from compositegp.learning.problem import LearningProblem, is_cheap
from compositegp.learning.segment_reader import LocalReading, SegmentReading
from compositegp.learning.starting_values import starting_kernel
from compositegp.learning.warm_starts import is_part_of, is_sum, refined, warm_starts

_SECOND_POINTS = 3072  # points that the candidates are compared on that are left after the first round
_MOST_POINTS = 2**13  # points after which no more are read
_FEWEST_BLOCKS = 4  # blocks that are read, at least
_TRIED_STARTS = 2  # starts of a sum from which some steps are tried: sums have several maxima
_START_EVALUATIONS = 4  # of each of them, at most
_START_BLOCKS = 2  # blocks by whose likelihood a start is chosen
_FIRST_POINTS = 1024  # points that all the candidates are compared on
# Of so many observations, in all, half are compared first, in segments of a quarter of the size.
_FEW_DATA = (768, 2048)
_PROBES = 64  # random vectors, over all blocks, for the Fisher information of a step
_GAIN = 1.0  # a maximization stops when a step promises less log likelihood than this
_GAIN_A_POINT = 0.0005  # or less than this a point: half of what matters
_IDLE_STEPS = 2  # or when so many steps in a row have gained less
_CHEAP_GAIN = 1e-3  # the same, where steps are cheap
_CHEAP_EVALUATIONS = 30  # of each candidate, at most, where they are cheap
_FIRST_EVALUATIONS = 10  # of the kernel that is learned first, at most
_EVALUATIONS = 10  # of each candidate in the first round, at most
_MORE_EVALUATIONS = 4  # of each candidate in a later round, at most
_FAR = 0.1  # log likelihood a point, by which the best part of a sum is behind another, at which it is hardly tried
_HARDLY = 2  # evaluations of such a sum
_HOPELESS = 0.02  # log likelihood a point behind the best, further gains included, at which a candidate is left
_UNFORESEEN = 3.0  # a maximization may gain this many times what the last step gained, or the next one promises
_PIECES = 8  # pieces of the terms, at least, over which a standard error is found
_FIRST_KEPT = 4  # candidates that go on to the second round, at most
_KEPT = 2  # candidates that go on to a further round, at most
_CLEARLY_WORSE = 3.0  # standard errors behind the best at which a candidate is left after the first round
_WORSE = 2.0  # the same after a further round
_MOST_ROUNDS = 4
_MATTERS = 0.001  # log likelihood a point that a further round has to promise, on average, to be worth its time


Report: TypeAlias = Callable[[float, float, str], None]


def compare_kernels(
    candidates: Mapping[str, Kernel],
    problem: LearningProblem,
    scale: DataScale | None,
    prior_spread: float | None = None,
    report: Report = lambda done, total, text: None,
) -> KernelComparison:
    """Compare kernels by their composite likelihood over the same terms: see `choose_kernel`.

    Parameters
    ----------
    candidates : dict of str to scikit-learn kernel
    problem : LearningProblem
        Its kernel is the one that is learned first, from where it is or, given the scale of the data, near there.
    scale : DataScale or None
        Of the data; None begins every kernel where it is.
    prior_spread : float or None
        Standard deviation of log θ around the scale of the data, a priori; None for no prior.
    report : callable
        Called with the number of candidates done, the number of all in this round, and a text.

    Returns
    -------
    KernelComparison
    """
    began = time.perf_counter()
    whole, problem = problem, _halved(problem)
    count = min(len(problem.terms), max(_FEWEST_BLOCKS, math.ceil(_SECOND_POINTS / problem.terms.mean_size)))
    quick, fewer = _first_round(problem, count)
    first = _learned_first(quick, fewer, scale, prior_spread)
    nearness = first.at_optimum
    terms, few = (FixedTerms(quick, some, nearness) for some in (fewer, min(fewer, _START_BLOCKS)))
    racing = _all_compared(candidates, first, terms, few, scale, prior_spread, report)
    left: list[_Candidate] = []
    if quick is not problem or fewer < count:
        racing, left = _select(racing, _FIRST_KEPT, _CLEARLY_WORSE)
        racing, out = _promising(racing)
        left += out
        if len(racing) > 1 or any(one.last_gain > 0 for one in racing):
            terms = FixedTerms(problem, count, nearness)
            _climb_on(racing, terms, _EVALUATIONS, report, cut_short=True)
    racing, out = _further_rounds(racing, terms, problem, whole, nearness, report)
    winner = _winner(racing)
    rows = sorted([*racing, *left, *out], key=lambda one: (one is not winner, -one.terms.count, -one.difference))
    seconds = time.perf_counter() - began
    return KernelComparison(tuple(one.row(one is winner) for one in rows), nearness, seconds)


def _learned_first(
    problem: LearningProblem, count: int, scale: DataScale | None, prior_spread: float | None
) -> "_Candidate":
    """The kernel of the problem, learned roughly on some blocks: conditioning sets are found in its length scales."""
    start = problem.data.kernel
    terms = FixedTerms(problem, count, start)
    first = _Candidate("", start, start.theta, problem.coefficients, terms)
    if scale is not None:
        if prior_spread is not None:
            first.prior = LogScalePrior(starting_kernel(start, scale).theta, prior_spread)
        likelihood = partial(first.likelihood, FixedTerms(problem, min(count, _START_BLOCKS), start))
        first.theta = refined(start, first.theta, likelihood(first.theta), likelihood)
    first.climb(terms, _FIRST_EVALUATIONS)
    if first.error is not None:
        raise first.error
    return first


def _all_compared(
    candidates: Mapping[str, Kernel],
    first: "_Candidate",
    terms: "FixedTerms",
    few: "FixedTerms",
    scale: DataScale | None,
    prior_spread: float | None,
    report: Report,
) -> list["_Candidate"]:
    """All the candidates on the same terms, each from where those before it ended: the simplest first, sums last.

    Starts are chosen by `few` terms, but of sums, which have several maxima, by all.
    """
    learned: list[Kernel] = [first.at_optimum]
    racing: list[_Candidate] = []
    for name, given in sorted(candidates.items(), key=lambda item: len(item[1].theta)):
        report(len(racing), len(candidates), f"{name}, {round(terms.n_points)} points")
        best = max((one.log_likelihood for one in racing), default=-np.inf)
        part = max((one.log_likelihood for one in racing if is_part_of(one.kernel, given)), default=np.inf)
        single = max((one.log_likelihood for one in racing if not is_sum(one.kernel)), default=-np.inf)
        far = part < single - _FAR * terms.n_points and not terms.is_cheap
        candidate = _Candidate(name, given, given.theta, first.coefficients, terms if is_sum(given) else few)
        candidate.begin(scale, prior_spread, learned, 1 if far else _TRIED_STARTS, best, part)
        candidate.climb(terms, _HARDLY if far else _EVALUATIONS, behind=best)
        racing.append(candidate)
        if candidate.error is None:
            learned.append(candidate.at_optimum)
    return racing


def _climb_on(
    racing: list["_Candidate"], terms: "FixedTerms", most: int, report: Report, *, cut_short: bool = False
) -> None:
    """Go on with every candidate on some terms; cut short, one that will not reach the best so far is given up."""
    best = -np.inf
    for number, candidate in enumerate(racing):
        report(number, len(racing), f"{candidate.name}, {round(terms.n_points)} points")
        candidate.climb(terms, most, behind=best)
        if cut_short:
            best = max(best, candidate.log_likelihood)


def _further_rounds(
    racing: list["_Candidate"],
    terms: "FixedTerms",
    problem: LearningProblem,
    whole: LearningProblem,
    nearness: Kernel,
    report: Report,
) -> tuple[list["_Candidate"], list["_Candidate"]]:
    """The candidates that are left after rounds on twice as many points each, and those that dropped out."""
    out: list[_Candidate] = []
    source, count = problem.terms, terms.count
    for _ in range(_MOST_ROUNDS):
        racing, worse = _select(racing, _KEPT, _WORSE)
        out += worse
        more = terms.n_points < _MOST_POINTS and (count < len(source) or source is not whole.terms)
        if len(_promising(racing)[0]) == 1 or not (more or any(one.last_gain > 0 for one in racing)):
            break
        if more:
            source = whole.terms
            count = min(math.ceil(2 * terms.n_points / source.mean_size), len(source))
            terms = FixedTerms(whole, count, nearness)
        _climb_on(racing, terms, _MORE_EVALUATIONS, report)
    return racing, out


def _first_round(problem: LearningProblem, count: int) -> tuple[LearningProblem, int]:
    """The problem that all the candidates are compared on, and how many of its blocks; `count` of the problem at most.

    Of few data it is every second of the halves of all the blocks: a look at the whole range for an eighth of the time.
    """
    size = problem.terms.mean_size
    fewer = min(count, max(_FEWEST_BLOCKS, math.ceil(_FIRST_POINTS / size)))
    halves = _halved(problem) if _FEW_DATA[0] <= len(problem.terms) * size <= _FEW_DATA[1] else problem
    if halves is problem:
        return problem, fewer
    return replace(halves, order=np.concatenate([halves.order[::2], halves.order[1::2]])), len(problem.order)


def _halved(problem: LearningProblem) -> LearningProblem:
    """The same problem with segments of half the size, where they can be made: four times as many steps a second."""
    count = max(_FEWEST_BLOCKS, math.ceil(_SECOND_POINTS / problem.terms.mean_size))
    halves = problem.terms.halved(problem.order[:count])
    if halves is None:
        return problem
    return replace(problem, terms=halves, order=np.ravel(2 * np.asarray(problem.order)[:, None] + [0, 1]))


class FixedTerms:
    """Blocks on which kernels are compared: the same conditioning sets for all of them.

    Parameters
    ----------
    problem : LearningProblem
    count : int
        How many blocks, in the order of the problem.
    nearness : scikit-learn kernel
        Conditioning sets are found in its length scales.
    """

    def __init__(self, problem: LearningProblem, count: int, nearness: Kernel) -> None:
        self._problem, self._nearness = problem, nearness
        self.count = count
        self.reading = self._read(problem.order[:count])
        self.share = count / len(problem.terms)
        self.n_points = count * problem.terms.mean_size  # until the first score says

    @property
    def is_cheap(self) -> bool:
        """Whether they are all the data, and so few that a maximization need not be cut short."""
        return self.share == 1 and is_cheap(self.reading)

    def score(self, kernel: Kernel, coefficients: Floats) -> Score:
        """Log likelihood, gradient and Fisher information of all the blocks."""
        found = self._problem.score(self.reading, kernel, coefficients, _PROBES)
        self.n_points = found.n_points
        return found

    def log_likelihoods(self, kernel: Kernel, coefficients: Floats) -> Floats:
        """Log likelihoods of pieces of the blocks, the same pieces for every kernel: they add up to that of all.

        A piece is a block or, where there are few blocks, a part of one. Of data that are elsewhere it is some blocks.
        """
        if isinstance(self.reading, LocalReading):
            data, composite = self.reading.data.with_kernel(kernel), self.reading.composite
            return log_likelihoods_of_pieces(data, composite, coefficients, _PIECES)
        problem = self._problem
        parts = [self._read(part) for part in np.array_split(problem.order[: self.count], _PIECES) if len(part)]
        scores = [
            part.score(kernel, coefficients, probes=0, seed=problem.seed, n_jobs=problem.n_jobs) for part in parts
        ]
        return np.array([score.log_likelihood for score in scores])

    def _read(self, numbers: Indices) -> SegmentReading:
        return self._problem.terms.read(numbers, self._nearness)


class _Enough(Exception):  # noqa: N818 (it ends a maximization, which is no error)
    """A maximization has gone on for long enough."""


@dataclass(eq=False)
class _Candidate:
    """A kernel in the comparison, and how far the maximization of its likelihood has come.

    Attributes
    ----------
    name : str
    kernel : scikit-learn kernel
        With the bounds that hold.
    theta, coefficients : arrays of shape (p,) and (q, t)
        Where the maximization stands.
    terms : FixedTerms
        What it was last compared on.
    score : Score or None
        There.
    prior : LogScalePrior or None
        Of log θ, for the maximization; kernels are compared by their likelihood.
    error : LinAlgError or None
        Why there is none.
    pieces : array of shape (pieces,)
        Log likelihoods of pieces of the terms.
    last_gain : float
        Log likelihood that the last step gained; 0 where the maximization has converged.
    converged : bool
    n_evaluations : int
    seconds : float
    difference, standard_error : float
        To the best, in all the points.
    """

    name: str
    kernel: Kernel
    theta: Floats
    coefficients: Floats
    terms: FixedTerms
    score: Score | None = None
    prior: LogScalePrior | None = None
    error: LinAlgError | None = None
    pieces: Floats = field(default_factory=lambda: np.zeros(_PIECES))
    last_gain: float = 0.0
    converged: bool = False
    n_evaluations: int = 0
    seconds: float = 0.0
    difference: float = -np.inf
    standard_error: float = np.nan

    @property
    def at_optimum(self) -> Kernel:
        """The kernel where the maximization stands."""
        return at_theta(self.kernel, self.theta)

    @property
    def log_likelihood(self) -> float:
        """Of the terms that it was last compared on."""
        return -np.inf if self.score is None or self.error is not None else float(self.pieces.sum())

    @property
    def criterion(self) -> float:
        """Log likelihood less what p parameters gain by chance, p / 2, and less what their errors will cost.

        Learned from all of N points, they cost p / (2 N) a point: with all the points this is Akaike's criterion.
        """
        return self.log_likelihood - 0.5 * len(self.theta) * (1 + self.terms.share)

    def likelihood(self, terms: FixedTerms, theta: Floats) -> float:
        """Log likelihood of some terms at θ and the present coefficients; −inf where there is none."""
        try:
            return float(terms.log_likelihoods(at_theta(self.kernel, theta), self.coefficients).sum())
        except LinAlgError:
            return -np.inf

    def begin(
        self,
        scale: DataScale | None,
        prior_spread: float | None,
        learned: list[Kernel],
        tried: int,
        behind: float,
        part: float,
    ) -> None:
        """Go to the most likely of some starts; of a sum, to where some steps from the best `tried` of them lead.

        The next one is tried where the one before does not lead to more than `part`, the likelihood of a part alone.
        """
        if scale is None:
            return
        began = time.perf_counter()
        self.kernel = starting_kernel(self.kernel, scale)  # its bounds are those of the data's scale
        if prior_spread is not None:
            self.prior = LogScalePrior(self.kernel.theta, prior_spread)
        starts = warm_starts(self.kernel, learned, scale)
        found = [0.0] if len(starts) == 1 else [self.likelihood(self.terms, start) for start in starts]
        order = np.argsort(found)[::-1]
        self.theta = starts[order[0]]
        if len(starts) > 1 and not is_sum(self.kernel):
            self.theta = refined(self.kernel, self.theta, max(found), partial(self.likelihood, self.terms))
        elif tried > 1 and len(starts) > 1:
            self._follow([starts[number] for number in order[:tried]], behind, part)
        self.seconds += time.perf_counter() - began

    def _follow(self, starts: list[Floats], behind: float, part: float) -> None:
        """Some steps from each of some starts, until one leads to more than `part`; the best is gone on with."""
        tried = []
        for start in starts:
            one = replace(self, theta=start)
            one.climb(self.terms, _START_EVALUATIONS, behind)
            tried.append(one)
            if one.log_likelihood + one.last_gain > part and not self.terms.is_cheap:
                break
            behind = max(behind, one.log_likelihood)
        best = max(tried, key=lambda one: one.log_likelihood + one.last_gain)
        self.theta, self.coefficients, self.score, self.error = (
            best.theta,
            best.coefficients,
            best.score,
            best.error,
        )
        self.n_evaluations = sum(one.n_evaluations for one in tried)

    def climb(self, terms: FixedTerms, most: int, behind: float = -np.inf) -> None:
        """Maximize the likelihood of some terms, in at most `most` evaluations, or until `behind` is out of reach."""
        if self.error is not None:
            return
        began = time.perf_counter()
        begin = None
        if terms is self.terms and self.score is not None:
            begin = Optimum(self.theta, self.coefficients, self.score, False)
        self.terms, self.score, self.last_gain, self.converged = terms, None, 0.0, False
        cheap, bounds = terms.is_cheap, self.kernel.bounds
        last = self.n_evaluations + (_CHEAP_EVALUATIONS if cheap else most)

        def evaluate(theta: Floats, coefficients: Floats) -> Score:
            if self.n_evaluations >= last:
                raise _Enough
            self.n_evaluations += 1
            found = terms.score(at_theta(self.kernel, theta), coefficients)
            return found if self.prior is None else self.prior.applied(found, theta)

        def report(now: Optimum) -> None:
            first = self.score is None
            if self.score is not None:
                self.last_gain = now.score.log_likelihood - self.score.log_likelihood
            self.theta, self.coefficients, self.score = now.theta, now.coefficients, now.score
            short = behind - _HOPELESS * terms.n_points - now.score.log_likelihood
            if cheap or first or short <= 0:
                return
            if _UNFORESEEN * max(self.last_gain, promised_gain(now, bounds)) < short:
                raise _Enough

        try:
            maximize(
                evaluate,
                self.theta,
                self.coefficients,
                bounds,
                gain_tolerance=_CHEAP_GAIN if cheap else max(_GAIN, _GAIN_A_POINT * terms.n_points),
                idle_steps=IDLE_STEPS if cheap else _IDLE_STEPS,
                report=report,
                begin=begin,
            )
            self.last_gain, self.converged = 0.0, True
        except _Enough:
            pass
        except LinAlgError as error:
            self.error = error
        try:
            if self.error is None:
                self.pieces = terms.log_likelihoods(self.at_optimum, self.coefficients)
        except LinAlgError as error:
            self.error, self.score = error, None
        self.seconds += time.perf_counter() - began

    def row(self, chosen: bool) -> ComparedKernel:
        """What a user sees of it."""
        n = self.terms.n_points
        return ComparedKernel(
            self.name,
            self.at_optimum,
            self.coefficients,
            self.log_likelihood / n,
            self.difference / n,
            self.standard_error / n,
            round(n),
            self.terms.count,
            len(self.theta),
            self.n_evaluations,
            self.converged and self.error is None,
            self.seconds,
            chosen,
        )


def _select(racing: list[_Candidate], most: int, errors: float) -> tuple[list[_Candidate], list[_Candidate]]:
    """The candidates within some standard errors of the best, at most `most`, the best first, and the others."""
    ordered = sorted(racing, key=lambda one: -one.criterion)
    best = ordered[0]
    if best.error is not None:
        raise best.error
    possible = [one for one in ordered if one.error is None]
    for one in possible:
        one.difference = one.criterion - best.criterion
        one.standard_error = _standard_error(one, best)
    near = [one for one in possible if one.difference + one.last_gain >= -errors * one.standard_error]
    foremost = sorted(near, key=lambda one: -(one.criterion + one.last_gain))[:most]
    kept = [one for one in near if one is best or one in foremost]
    return kept, [one for one in ordered if one not in kept]


def _standard_error(one: _Candidate, other: _Candidate) -> float:
    """Standard error of the difference of two log likelihoods, by the differences in the pieces of the terms."""
    differences = one.pieces - other.pieces
    return float(np.sqrt(len(differences)) * differences.std(ddof=1)) if len(differences) > 1 else 0.0


def _winner(racing: list[_Candidate]) -> _Candidate:
    """The simplest of the candidates that are as good as the best, the first, within one standard error."""
    good = [one for one in racing if one.difference >= -one.standard_error]
    return min(good, key=lambda one: (len(one.theta), -one.criterion))


def _promising(racing: list[_Candidate]) -> tuple[list[_Candidate], list[_Candidate]]:
    """The candidate that would now be chosen with those that may gain enough to be worth a further round, and others.

    They keep their order.
    """
    winner = _winner(racing)
    enough = _MATTERS * winner.terms.n_points
    kept = [one for one in racing if one is winner or _possible_gain(one, winner) > enough]
    return kept, [one for one in racing if one not in kept]


def _possible_gain(one: _Candidate, winner: _Candidate) -> float:
    """Log likelihood that a candidate is expected to gain on the one that would now be chosen."""
    return _expected_gain(one.criterion + one.last_gain - winner.criterion, _standard_error(one, winner))


def _expected_gain(difference: float, standard_error: float) -> float:
    """What the better of two is expected to gain on the second, E max(0, d), for a difference d with Gaussian error."""
    if standard_error == 0:
        return max(0.0, difference)
    z = difference / standard_error
    return float(standard_error * norm.pdf(z) + difference * norm.cdf(z))
