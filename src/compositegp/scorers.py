"""Scores of predictive distributions, for `GridSearchCV`, `cross_validate` and wherever scikit-learn takes `scoring`.

R² and RMSE look at means alone. These look at the whole distribution, so that a search chooses error bars too:

==================  ====================================================================================
`neg_crps`          minus the continuous ranked probability score, in the unit of the target
`neg_log_score`     the log predictive density, in nats
`coverage`          share of the targets inside the central 95 % intervals: near 0.95 is good
==================  ====================================================================================

They take any estimator with `predict_distribution`, one with ``predict(X, return_std=True)``, whose distributions are
taken as normal, and pipelines and searches around these.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_array

from compositegp.backend import Floats
from compositegp.predictive import PredictiveDistribution

__all__ = ["Coverage", "NegCRPS", "NegLogScore", "coverage", "neg_crps", "neg_log_score", "predicted_distribution"]


def predicted_distribution(estimator: Any, X: Any) -> PredictiveDistribution:
    """Predictive distributions at `X` of an estimator, or of the one inside a pipeline or a search.

    Parameters
    ----------
    estimator : fitted estimator
        With `predict_distribution`, or with the option `return_std` of `predict`.
    X : array or data frame of shape (M, d)

    Returns
    -------
    PredictiveDistribution

    Examples
    --------
    >>> from sklearn.linear_model import BayesianRidge
    >>> predicted_distribution(BayesianRidge().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 1.0]), [[3.0]])
    PredictiveDistribution(Normal at 1 point(s))
    """
    if hasattr(estimator, "predict_distribution"):
        found: PredictiveDistribution = estimator.predict_distribution(X)
        return found
    if isinstance(estimator, Pipeline):
        return predicted_distribution(estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X)
    if hasattr(estimator, "best_estimator_"):
        return predicted_distribution(estimator.best_estimator_, X)
    try:
        mean, std = estimator.predict(X, return_std=True)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{type(estimator).__name__} has no predictive distribution: it needs predict_distribution, or the option "
            f"return_std of predict ({error})."
        ) from error
    return PredictiveDistribution(np.asarray(mean, dtype=np.float64), np.asarray(std, dtype=np.float64))


class _Scorer:
    """A callable of (estimator, X, y), as scikit-learn's `scoring` takes it; larger values are better."""

    def __call__(self, estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The mean score of the targets; those that are NaN were not observed, and are left out."""
        targets = check_array(y, ensure_2d=False, dtype=np.float64, ensure_all_finite="allow-nan", input_name="y")
        found = predicted_distribution(estimator, X)
        targets = targets.reshape(found.location.shape)
        observed = ~np.isnan(targets).reshape(len(targets), -1).any(axis=1)
        if not observed.any():
            raise ValueError("y is NaN in every row: there is nothing to score.")
        scores = self.scores(found[observed], targets[observed]).reshape(int(observed.sum()), -1).mean(axis=1)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)[observed]
        return float(np.average(scores, weights=weights))

    def scores(self, found: PredictiveDistribution, y: Floats) -> Floats:
        """The score of each target, shape (M,) or (M, t)."""
        raise NotImplementedError


@dataclass(frozen=True)
class NegCRPS(_Scorer):
    """Minus the continuous ranked probability score, averaged over the targets.

    Examples
    --------
    >>> from compositegp import CompositeGPRegressor
    >>> from sklearn.model_selection import cross_val_score
    >>> X = np.linspace(0, 10, 60)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=60)
    >>> bool((cross_val_score(CompositeGPRegressor(), X, y, scoring=NegCRPS(), cv=3) < 0).all())
    True
    """

    def scores(self, found: PredictiveDistribution, y: Floats) -> Floats:
        """−CRPS."""
        return -found.crps(y)


@dataclass(frozen=True)
class NegLogScore(_Scorer):
    """Log predictive density, averaged over the targets: minus the log score."""

    def scores(self, found: PredictiveDistribution, y: Floats) -> Floats:
        """Ln p(y)."""
        return found.logpdf(y)


@dataclass(frozen=True)
class Coverage(_Scorer):
    """Share of the targets inside their central intervals.

    It is near `level` where error bars are right: a figure to look at, not to maximize.

    Parameters
    ----------
    level : float
        Between 0 and 1.
    """

    level: float = 0.95

    def scores(self, found: PredictiveDistribution, y: Floats) -> Floats:
        """1 for a target inside its interval, else 0."""
        lower, upper = found.interval(self.level)
        return np.asarray((lower <= y) & (y <= upper), dtype=np.float64)


neg_crps = NegCRPS()
neg_log_score = NegLogScore()
coverage = Coverage()
