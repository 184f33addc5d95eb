"""Scores of distributions in scikit-learn's searches and cross-validation."""

import numpy as np
import pytest
import scipy.stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from compositegp import CompositeGPRegressor, Nearest, scorers
from compositegp.scorers import Coverage, coverage, neg_crps, neg_log_score, predicted_distribution

KERNEL = 1.0 * RBF(1.0) + WhiteKernel(0.1)


@pytest.fixture
def data(rng):
    X = rng.uniform(0, 10, size=(90, 1))
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=90)


def test_scores_are_those_of_the_distribution(data):
    X, y = data
    model = CompositeGPRegressor(KERNEL, learning=None).fit(X[:60], y[:60])
    mean, std = model.predict(X[60:], return_std=True)
    normal = scipy.stats.norm(mean, std)
    assert neg_log_score(model, X[60:], y[60:]) == pytest.approx(normal.logpdf(y[60:]).mean())
    inside = np.abs(y[60:] - mean) < scipy.stats.norm.ppf(0.9) * std
    assert Coverage(0.8)(model, X[60:], y[60:]) == pytest.approx(inside.mean())
    # CRPS = E|Y − y| − ½ E|Y − Y'|
    draws = normal.rvs(size=(20000, 30), random_state=0)
    expected = np.abs(draws - y[60:]).mean() - 0.5 * np.abs(draws[::2] - draws[1::2]).mean()
    assert -neg_crps(model, X[60:], y[60:]) == pytest.approx(expected, rel=0.02)


def test_cross_validation_with_several_scores(data):
    X, y = data
    scoring = {"crps": neg_crps, "log": neg_log_score, "coverage": coverage}
    found = cross_validate(CompositeGPRegressor(KERNEL, learning=None), X, y, cv=KFold(3), scoring=scoring)
    first = slice(0, 30)
    model = CompositeGPRegressor(KERNEL, learning=None).fit(X[30:], y[30:])
    distribution = model.predict_distribution(X[first])
    assert found["test_crps"][0] == pytest.approx(-distribution.crps(y[first]).mean())
    assert found["test_log"][0] == pytest.approx(-distribution.log_score(y[first]).mean())
    assert found["test_coverage"][0] == pytest.approx(distribution.coverage(y[first], 0.95))


def test_a_search_chooses_error_bars_where_r2_cannot(data):
    """Known noise that is far too large hardly changes means: the log score sees it."""
    X, y = data
    model = CompositeGPRegressor(2.0 * RBF(1.0) + WhiteKernel(1e-6), learning=None)
    scaled = {"kernel": [2.0 * RBF(1.0) + WhiteKernel(0.09), 200.0 * RBF(1.0) + WhiteKernel(9.0)]}
    searches = [GridSearchCV(model, scaled, scoring=score, cv=3).fit(X, y) for score in (neg_crps, neg_log_score)]
    assert all(search.best_index_ == 0 for search in searches)
    r2 = GridSearchCV(model, scaled, cv=3).fit(X, y).cv_results_["mean_test_score"]
    assert r2[0] == pytest.approx(r2[1], abs=1e-6)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_pipelines_and_searches_inside_and_outside(data, n_jobs):
    X, y = data
    model = CompositeGPRegressor(Matern(nu=1.5) + WhiteKernel(0.1), learning=None)
    pipeline = make_pipeline(StandardScaler(), model)
    search = GridSearchCV(
        pipeline,
        {"compositegpregressor__kernel__k2__noise_level": [0.1, 100.0]},
        scoring={"crps": neg_crps, "coverage": coverage},
        refit="crps",
        cv=3,
        n_jobs=n_jobs,
    ).fit(X, y)
    assert search.best_params_ == {"compositegpregressor__kernel__k2__noise_level": 0.1}
    assert search.cv_results_["mean_test_coverage"][1] == 1.0
    inner = search.best_estimator_[-1].predict_distribution(search.best_estimator_[:-1].transform(X))
    for estimator in (search.best_estimator_, search, make_pipeline(search.best_estimator_)):
        np.testing.assert_array_equal(predicted_distribution(estimator, X).mean, inner.mean)
        assert neg_crps(estimator, X, y) == pytest.approx(-inner.crps(y).mean())


def test_other_libraries_models_can_be_compared(data):
    X, y = data
    theirs = GaussianProcessRegressor(KERNEL, optimizer=None, alpha=0.0)
    ours = CompositeGPRegressor(KERNEL, learning=None)
    for score in (neg_crps, neg_log_score, coverage):
        np.testing.assert_allclose(
            cross_val_score(theirs, X, y, scoring=score, cv=3), cross_val_score(ours, X, y, scoring=score, cv=3)
        )
    assert np.isfinite(neg_crps(make_pipeline(StandardScaler(), BayesianRidge()).fit(X, y), X, y))
    with pytest.raises(ValueError, match="LinearRegression has no predictive distribution"):
        neg_crps(LinearRegression().fit(X, y), X, y)


def test_weights_missing_targets_and_several_outputs(data):
    X, y = data
    model = CompositeGPRegressor(KERNEL, learning=None, prediction=Nearest(20, group_size=1)).fit(X, y)
    weights = np.r_[np.ones(40), np.zeros(50)]
    for score in (neg_crps, neg_log_score, coverage):
        assert score(model, X, y, weights) == pytest.approx(score(model, X[:40], y[:40]), rel=1e-9)
        missing = np.where(np.arange(90) < 40, y, np.nan)
        assert score(model, X, missing) == pytest.approx(score(model, X, y, weights), rel=1e-12)
    both = CompositeGPRegressor(KERNEL, learning=None).fit(X, np.column_stack([y, -y]))
    alone = CompositeGPRegressor(KERNEL, learning=None).fit(X, y)
    assert neg_crps(both, X, np.column_stack([y, -y])) == pytest.approx(neg_crps(alone, X, y))
    with pytest.raises(ValueError, match="nothing to score"):
        neg_crps(model, X, np.full(90, np.nan))


def test_public_names():
    assert all(hasattr(scorers, name) for name in scorers.__all__)
