"""Which values of the hyper-parameters θ a few observations allow: some values with weights, by importance sampling.

With few observations the likelihood of θ is wide, not symmetric, and often largest at a bound (noise of zero, or an
infinite length scale). A weak prior of log θ makes the posterior proper. Values are proposed around its mode, by a
normal distribution with different widths below and above the mode in each direction. Each value is weighted by the
ratio of the posterior density to the density that it was proposed with.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.linalg import LinAlgError
from scipy.special import ndtri

from compositegp.backend import Floats, diagonals, fetch, like, solve_lower
from compositegp.composite import Composite, FactoredStack, Observations, Score, factor_covariance, total_score
from compositegp.kernels import at_theta, gram
from compositegp.learning import at_scale, maximize
from compositegp.means import (
    Estimated,
    NormalEquations,
    check_coefficients,
    gaussian_prior,
    ordinary_least_squares,
    plugged_in,
)

# Found by benchmarks/theta_coverage.py.
_PRIOR_SPREAD = 1.5  # standard deviation of log θ before the data: a factor of 4.5 up or down
_MANY_LENGTH_SCALES = 10  # with more of one kernel, their prior is narrower: together they could explain any noise
_PRIOR_NOISE = 4.0  # center of the prior of noise, over where learning begins: 0.4 of the target's variance
_DRAWS = 32  # values of θ
_EFFECTIVE = 8.0  # the least effective number of draws, 1 / Σ w²; weights are tempered to reach it
_PROPOSAL_SPREAD = 1.5  # width of the proposal, over that of the posterior
_FEW_PARAMETERS = 7  # with more of them the proposal is narrower: in many dimensions a wide one has few good draws
_WIDTHS = (0.3, 2.0)  # width of the posterior to one side, over that of the normal distribution at its mode
_LEAST_WEIGHT = 1e-3  # draws of less weight than this part of the largest are left out
_PROBES = 64  # random vectors for the Fisher information of a step to the mode
_EXACT = 1e9  # p n³ up to which the Fisher information at the mode is exact
_GAIN = 1e-4  # the search for the mode ends when a step promises less log posterior than this


class ThetaDensity(Protocol):
    """A density of log θ."""

    def log_density(self, theta: Floats) -> float:
        """Its logarithm, up to a constant; −∞ where there is none."""

    def clip(self, theta: Floats) -> Floats:
        """Values within the bounds of θ."""


class WeightedKernel(NamedTuple):
    """A kernel with one of the values of θ, and the data factorized under it.

    Attributes
    ----------
    weight : float
        All the weights add up to one.
    data : Observations
        Under this kernel.
    factored : FactoredStack
        All the data as one block.
    """

    weight: float
    data: Observations
    factored: FactoredStack


def weighted_kernels(data: Observations) -> list[WeightedKernel]:
    """Kernels with values of θ that are likely given the data, and their weights.

    Parameters
    ----------
    data : Observations
        The kernel has the learned values of θ. Unknown coefficients of the mean (a `Basis`) are integrated over; those
        of an `Estimated` are taken as known.

    Returns
    -------
    list of WeightedKernel
        Empty if the covariance is singular in double precision at the learned values.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> X = np.linspace(0, 6, 20)[:, None]
    >>> data = Observations.checked(RBF(2.0) + WhiteKernel(0.1), X, np.sin(X[:, 0]), mean=None, noise_variance=None)
    >>> found = weighted_kernels(data)
    >>> f"{sum(kernel.weight for kernel in found):.6f}"
    '1.000000'
    """
    posterior = ThetaPosterior(data)
    if posterior.factored_at(data.kernel.theta) is None:
        return []
    found = []
    for theta, weight in Proposal.around_mode(posterior).likely(posterior):
        factored = posterior.factored_at(theta)
        if factored is not None:
            found.append(WeightedKernel(weight, posterior.at(theta), factored))
    return found


@dataclass(frozen=True, eq=False)
class ThetaPosterior:
    """Posterior density of log θ: the marginal likelihood of all the data, times a weak prior.

    A priori the logarithms are independent and normal, with a standard deviation of 1.5, around values of the data's
    own scale: those where learning begins, and for noise 0.4 of the target's variance. Hyper-parameters that have no
    scale, such as an exponent, are centered at their learned value. The length scales of many columns, d > 10, have a
    standard deviation of 1.5 √(10 / d), so that the sum of their variances is no larger than that of ten.

    Attributes
    ----------
    data : Observations
    """

    data: Observations

    @property
    def bounds(self) -> Floats:
        """The kernel's bounds, shape (p, 2)."""
        return np.asarray(self.data.kernel.bounds)

    @cached_property
    def center(self) -> Floats:
        """Means of log θ a priori, shape (p,)."""
        known = self._known_mean
        residuals = known.residuals - known.basis @ ordinary_least_squares(known.basis, known.residuals)
        kernel = self.data.kernel
        more_noise = np.concatenate(
            [
                np.full(parameter.n_elements, np.log(_PRIOR_NOISE) * parameter.name.endswith("noise_level"))
                for parameter in kernel.hyperparameters
                if not parameter.fixed
            ]
        )
        return self.clip(at_scale(kernel, self.data.X, residuals).theta + more_noise)

    @cached_property
    def spread(self) -> Floats:
        """Standard deviations of log θ a priori, shape (p,)."""
        free = [parameter for parameter in self.data.kernel.hyperparameters if not parameter.fixed]
        counts = np.concatenate([np.full(parameter.n_elements, parameter.n_elements) for parameter in free])
        return np.asarray(_PRIOR_SPREAD * np.sqrt(np.minimum(1.0, _MANY_LENGTH_SCALES / counts)))

    def clip(self, theta: Floats) -> Floats:
        """Values within the kernel's bounds."""
        return np.clip(theta, self.bounds[:, 0], self.bounds[:, 1])

    def at(self, theta: Floats) -> Observations:
        """The data under the kernel with these values."""
        return self.data.with_kernel(at_theta(self.data.kernel, theta))

    def factored_at(self, theta: Floats) -> FactoredStack | None:
        """All the data as one block, factorized; None where the covariance is singular in double precision."""
        data, (stack,) = self.at(theta), Composite.full(len(self.data.X)).stacks
        points = data.rows("X", stack)
        try:
            lower, jitter = factor_covariance(data, stack, gram(data.kernel, points))
        except LinAlgError:
            return None
        if jitter.any():
            return None
        return FactoredStack(stack, points, lower, solve_lower(lower, like(data.columns[None].copy(), lower)))

    def log_density(self, theta: Floats) -> float:
        """Logarithm of the posterior density, up to a constant; −∞ where the covariance is singular."""
        factored = self.factored_at(theta)
        if factored is None:
            return -np.inf
        return log_marginal_likelihood(self.data, factored) + self._log_prior(theta)

    def score(self, theta: Floats, coefficients: Floats, probes: int = _PROBES) -> Score:
        """Log density, its gradient and the Fisher information, for given coefficients of the mean."""
        data = self._known_mean.with_kernel(at_theta(self.data.kernel, theta))
        found = total_score(data, Composite.full(len(data.X)), coefficients, probes=probes)
        return found._replace(
            log_likelihood=found.log_likelihood + self._log_prior(theta),
            gradient=found.gradient - (theta - self.center) / self.spread**2,
            fisher=found.fisher + np.diag(1 / self.spread**2),
        )

    @cached_property
    def _known_mean(self) -> Observations:
        """The data under a mean whose coefficients, where they were estimated from other data, are taken as known."""
        return self.data.with_mean(plugged_in(self.data.mean))

    def _log_prior(self, theta: Floats) -> float:
        return -0.5 * float((((theta - self.center) / self.spread) ** 2).sum())


def log_marginal_likelihood(data: Observations, factored: FactoredStack) -> float:
    """Logarithm of p(y | θ), up to a constant, with the mean's coefficients integrated over their prior.

    Coefficients with a flat prior give the restricted likelihood. Those that were estimated from other data are known.
    """
    q, t = data.basis.shape[1], data.n_outputs
    innovations = fetch(factored.innovations)[0]
    functions, targets = innovations[:, :q], innovations[:, q:]
    determinant = -t * float(np.log(fetch(diagonals(factored.lower))).sum())
    known = data.mean.coefficients
    if isinstance(known, Estimated):
        targets = targets - functions @ check_coefficients(known.coefficients, q)
    squares = float((targets**2).sum())
    if not q or isinstance(known, Estimated):
        return determinant - 0.5 * squares
    prior = gaussian_prior(known, q)
    normal = NormalEquations(functions.T @ functions, functions.T @ targets).with_prior(prior)
    explained = float((normal.coefficients * normal.moment).sum())
    # If basis functions cannot be distinguished, the directions without information are the same for every θ.
    rank = int(np.linalg.matrix_rank(data.basis)) if prior is None else q
    sizes = np.sqrt((data.basis**2).sum(axis=0))
    units = np.where(sizes > 0, sizes, 1.0)
    strengths = np.linalg.eigvalsh(normal.information / np.outer(units, units))[q - rank :]
    return determinant - 0.5 * (squares - explained) - 0.5 * t * float(np.log(strengths).sum())


class Proposal(NamedTuple):
    """A split normal distribution of log θ: along every direction it has one width on each side of its mode.

    Attributes
    ----------
    mode : array of shape (p,)
    directions : array of shape (p, p)
        One direction in each column, lower triangular.
    widths : array of shape (2, p)
        Standard deviations along each direction, below and above the mode.
    """

    mode: Floats
    directions: Floats
    widths: Floats

    @classmethod
    def around_mode(cls, posterior: ThetaPosterior) -> "Proposal":
        """The proposal that has the posterior's mode and is wider than it, with few parameters by half."""
        mode, fisher = find_mode(posterior)
        spread = 1 + (_PROPOSAL_SPREAD - 1) * min(1.0, _FEW_PARAMETERS / len(mode))
        return cls.around(posterior, mode, fisher, spread)

    @classmethod
    def around(cls, posterior: ThetaDensity, mode: Floats, fisher: Floats, spread: float = 1.0) -> "Proposal":
        """The proposal that has a posterior's mode and, along every direction, its width times `spread`.

        Parameters
        ----------
        posterior : ThetaDensity
        mode : array of shape (p,)
        fisher : array of shape (p, p)
            The information there.
        spread : float
        """
        values, vectors = np.linalg.eigh(fisher)
        directions = np.linalg.cholesky((vectors / values) @ vectors.T)
        top = posterior.log_density(mode)

        def width(step: Floats) -> float:
            # A normal distribution falls by one at √2 standard deviations.
            fall = top - posterior.log_density(posterior.clip(mode + np.sqrt(2.0) * step))
            return float(np.clip(1 / np.sqrt(fall), *_WIDTHS)) if fall > 0 else _WIDTHS[1]

        widths = np.array([[width(side * step) for step in directions.T] for side in (-1, 1)])
        return cls(mode, directions, spread * widths)

    def likely(self, posterior: ThetaDensity, count: int = _DRAWS) -> list[tuple[Floats, float]]:
        """Some of `count` values of log θ, those that are likely, with weights that add up to one."""
        thetas, log_ratios = self.draw(posterior, count)
        # NaN: basis functions that are the same at the data.
        log_ratios = np.where(np.isnan(log_ratios), -np.inf, log_ratios)
        if not np.isfinite(log_ratios).any():
            return []
        weights = tempered_weights(log_ratios)
        weights = np.where(weights < _LEAST_WEIGHT * weights.max(), 0.0, weights)
        weights /= weights.sum()
        return [(theta, float(weight)) for theta, weight in zip(thetas, weights, strict=True) if weight]

    def draw(self, posterior: ThetaDensity, count: int = _DRAWS) -> tuple[Floats, Floats]:
        """Values of log θ, shape (count, p), within the bounds, and log ratios of posterior to proposal, (count,).

        They are a Latin hypercube sample, the same in every call.
        """
        below, above = self.widths
        levels = latin_hypercube(count, len(self.mode))
        left = below / (below + above)
        steps = np.where(
            levels < left,
            below * ndtri(0.5 * levels / left),
            above * ndtri(0.5 + 0.5 * (levels - left) / (1 - left)),
        )
        thetas = posterior.clip(self.mode + steps @ self.directions.T)
        # Where a value was clipped, the densities are those of the value at the bound.
        steps = np.linalg.solve(self.directions, (thetas - self.mode).T).T
        log_proposal = -0.5 * ((steps / np.where(steps < 0, below, above)) ** 2).sum(axis=1)
        return thetas, np.array([posterior.log_density(theta) for theta in thetas]) - log_proposal


def find_mode(posterior: ThetaPosterior) -> tuple[Floats, Floats]:
    """Mode of the posterior of log θ, shape (p,), and the information there, (p, p): from the better of two starts.

    The information is exact where that is cheap: the draws should not depend on the order of the data.
    """
    data = posterior.data

    def search(start: Floats) -> Any:
        return maximize(
            posterior.score,
            start,
            ordinary_least_squares(data.basis, data.residuals) if _unknown(data) else np.zeros((0, data.n_outputs)),
            posterior.bounds,
            gain_tolerance=_GAIN,
        )

    found = [_or_none(search, start) for start in (data.kernel.theta, posterior.center)]
    best = max((one for one in found if one is not None), key=lambda one: float(one.score.log_likelihood))
    if len(best.theta) * len(data.X) ** 3 > _EXACT:
        return best.theta, best.score.fisher
    return best.theta, posterior.score(best.theta, best.coefficients, probes=-1).fisher


def tempered_weights(log_ratios: Floats) -> Floats:
    """Weights in proportion to a power of the ratios: one, or less if otherwise a few draws had all the weight.

    Parameters
    ----------
    log_ratios : array of shape (draws,)

    Returns
    -------
    array of shape (draws,)
        They add up to one, and 1 / Σ w² is at least 8 if more than 8 ratios are positive.

    Examples
    --------
    >>> weights = tempered_weights(np.arange(32.0))
    >>> print(f"{1 / (weights**2).sum():.2f}")
    8.00
    """

    def weights(power: float) -> Floats:
        found = np.exp(power * (log_ratios - log_ratios.max()))
        return np.asarray(found / found.sum())

    def is_spread(power: float) -> bool:
        return bool(1 / (weights(power) ** 2).sum() >= _EFFECTIVE)

    if is_spread(1.0) or np.isfinite(log_ratios).sum() <= _EFFECTIVE:
        return weights(1.0)
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_spread(middle) else (low, middle)
    return weights(low)


def latin_hypercube(count: int, dimensions: int) -> Floats:
    """Points between 0 and 1, shape (count, dimensions): each of `count` equal intervals has one in every dimension."""
    generator = np.random.default_rng(0)
    order = generator.permuted(np.tile(np.arange(count), (dimensions, 1)), axis=1).T
    return np.asarray((order + 0.5) / count)


def _unknown(data: Observations) -> bool:
    """Whether the mean has coefficients that are not known."""
    return data.mean.coefficients is not None and not isinstance(data.mean.coefficients, Estimated)


def _or_none(search: Callable[[Floats], Any], start: Floats) -> Any:
    try:
        return search(start)
    except LinAlgError:
        return None
