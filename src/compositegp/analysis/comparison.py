"""Comparison of a composite with the exact Gaussian process, before any data are seen."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from compositegp.analysis.excess_error import actual_mse, excess_mse
from compositegp.analysis.linear_predictor import LinearPredictor, neighborhood, predictor, without_data
from compositegp.backend import Floats, Indices
from compositegp.composite import Composite, Observations, check_composite
from compositegp.functionals import OnFunctionals, PointsLike, lift
from compositegp.validation import check_count, check_points

_FAITHFUL = 0.1  # a claimed variance within this part of the actual one counts as right
_SAME_INFORMATION = 0.01  # nats within which two informations count as equal


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """Claimed and actual errors of a composite and of the exact Gaussian process, averaged over data.

    Attributes
    ----------
    claimed_variance : array of shape (M,)
        Variances that the composite's belief claims.
    actual_mse : array of shape (M,)
        Mean squared error of its mean, under the model: the honest variance.
    exact_variance : array of shape (M,)
        Posterior variance of the exact GP, which is its mean squared error and the least that any predictor can have:
        σ_z² exp(−2 I(z; y)).
    excess_mse : array of shape (M,)
        E[(μ_GP − μ_composite)²] = actual_mse − exact_variance.
    information_exact : float
        I(z; y) in nats, all test points jointly.
    information_composite : float
        Expected divergence of the composite's belief from the prior, under its own marginal:
        ½ (ln det Σ_zz − ln det Σ̃_z).
    segment_information : array of shape (K,)
        I(z; y_k) of each segment in nats: what it alone tells about the test points. With conditioning sets it is
        I(z; y_k | y_C), with terms of your own w I(z; y_S), with inducing points I(u; y_k), about these.
    pointwise_exact, pointwise_sum : arrays of shape (M,)
        The exact information, and the paper's index, about each test value alone.
    neighborhood : int or None
        None where the exact GP has all the data. Otherwise the number of points, nearest to the test points, that it
        has: `exact_variance` is then an upper bound, `excess_mse` and `information_exact` are lower bounds.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> X = np.arange(20.0)[:, None]
    >>> halves = Composite.marginal([np.arange(10), np.arange(10, 20)])
    >>> report = compare(RBF(3.0) + WhiteKernel(0.1), X, [[9.5], [15.5]], halves)
    >>> print(report.confidence)
    ['under-confident' 'faithful']
    """

    claimed_variance: Floats
    actual_mse: Floats
    exact_variance: Floats
    excess_mse: Floats
    information_exact: float
    information_composite: float
    segment_information: Floats
    pointwise_exact: Floats
    pointwise_sum: Floats
    neighborhood: int | None

    @property
    def information_sum(self) -> float:
        """Σ w I(z; y_S), the paper's index: the gain of the composite and the total correlation of the segments."""
        return float(self.segment_information.sum())

    @property
    def total_correlation(self) -> float:
        """T = Σ w I(z; y_S) − gain, which the paper's Theorem 3 omits; never negative for a marginal composite."""
        return self.information_sum - self.information_composite

    @property
    def confidence(self) -> npt.NDArray[np.str_]:
        """For each test point: "over-confident", "under-confident" or "faithful"; an array of strings (M,)."""
        ratio = self.claimed_variance / np.maximum(self.actual_mse, np.finfo(np.float64).tiny)
        verdicts = np.where(ratio < 1 - _FAITHFUL, "over-confident", "faithful")
        return np.where(ratio > 1 + _FAITHFUL, "under-confident", verdicts)

    @property
    def redundancy(self) -> npt.NDArray[np.str_]:
        """For each test point: "redundant", "synergistic" or "neither"; an array of strings (M,)."""
        difference = self.pointwise_exact - self.pointwise_sum
        verdicts = np.where(difference < -_SAME_INFORMATION, "redundant", "neither")
        return np.where(difference > _SAME_INFORMATION, "synergistic", verdicts)

    @property
    def verdict(self) -> str:
        """The comparison in three lines of text."""
        over, same, under = (
            int((self.confidence == name).sum()) for name in ("over-confident", "faithful", "under-confident")
        )
        redundant, synergistic = (int((self.redundancy == name).sum()) for name in ("redundant", "synergistic"))
        bound = "" if self.neighborhood is None else f" (or more: against the {self.neighborhood} nearest points)"
        share = self.excess_mse.mean() / max(self.exact_variance.mean(), np.finfo(np.float64).tiny)
        return (
            f"Mean squared error {self.actual_mse.mean():.4g}, {share:.1%} above the exact GP's "
            f"{self.exact_variance.mean():.4g}{bound}; variance claimed {self.claimed_variance.mean():.4g}.\n"
            f"Of {len(self.actual_mse)} test points {over} are over-confident, {same} faithful, {under} "
            f"under-confident; for {redundant} the segments are redundant, for {synergistic} synergistic.\n"
            f"Information in nats: exact {self.information_exact:.4g}, composite {self.information_composite:.4g}, sum "
            f"over the terms {self.information_sum:.4g}."
        )

    @property
    def table(self) -> dict[str, npt.NDArray[Any]]:
        """One row for each test point, as columns of length M: for ``pandas.DataFrame(report.table)``."""
        return {
            "exact_variance": self.exact_variance,
            "actual_mse": self.actual_mse,
            "claimed_variance": self.claimed_variance,
            "excess_mse": self.excess_mse,
            "information_exact": self.pointwise_exact,
            "information_sum": self.pointwise_sum,
            "confidence": self.confidence,
            "redundancy": self.redundancy,
        }

    def __repr__(self) -> str:
        return self.verdict


def compare(
    kernel: Kernel,
    X: PointsLike,
    Z: PointsLike,
    composite: Composite,
    *,
    inducing: ArrayLike | None = None,
    noise_variance: ArrayLike | None = None,
    exact_limit: int = 6000,
    n_neighbors: int = 3000,
) -> Report:
    """Compare a composite with the exact Gaussian process. No targets are needed: errors are averaged over data.

    Parameters
    ----------
    kernel : scikit-learn kernel
    X : array of shape (n, d)
    Z : array of shape (M, d), or functionals
        Test points, which the composite predicts jointly, as `posterior` does.
    composite : Composite
    inducing : array of shape (m, d), optional
        Inducing points: FITC or PITC.
    noise_variance : None, number or array of shape (n,)
    exact_limit : int
        Largest number of points for which the exact GP is computed, in n³ operations.
    n_neighbors : int
        Beyond that limit the exact GP has only this number of points: those nearest to the test points, in the
        kernel's length scales.

    Returns
    -------
    Report

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> X = np.arange(20.0)[:, None]
    >>> halves = Composite.marginal([np.arange(10), np.arange(10, 20)])
    >>> report = compare(RBF(3.0) + WhiteKernel(0.1), X, [[9.5], [15.5]], halves)
    >>> report.actual_mse.round(4), report.exact_variance.round(4)
    (array([0.0396, 0.0313]), array([0.0304, 0.0311]))
    """
    data, tests = without_data(kernel, X, Z, noise_variance)
    kernel, (inducing,) = lift(data.kernel, inducing=inducing)
    sites = None if inducing is None else check_points(inducing, "inducing", tests.shape[1])
    if isinstance(kernel, OnFunctionals):
        data = data.lifted(kernel.functionals)
    ours = predictor(data, tests, check_composite(composite), sites)
    mse = actual_mse(data, tests, ours.coefficients)
    few = len(data.X) <= check_count(exact_limit, "exact_limit")
    nearby = None if few else neighborhood(data, tests, check_count(n_neighbors, "n_neighbors"))
    exact = _exact(data, tests, nearby)
    if nearby is None:
        excess = excess_mse(data, ours.coefficients, exact.coefficients)
    else:
        excess = np.maximum(mse - exact.claimed_variance, 0.0)
    return Report(
        ours.claimed_variance,
        mse,
        exact.claimed_variance,
        excess,
        exact.information,
        ours.information,
        ours.segment_information,
        exact.pointwise_sum,
        ours.pointwise_sum,
        None if nearby is None else len(nearby),
    )


def _exact(data: Observations, Z: Floats, nearby: Indices | None) -> LinearPredictor:
    if nearby is not None:
        data = data.take(nearby)
    return predictor(data, Z, Composite.full(len(data.X)), None)
