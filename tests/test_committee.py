import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from oracles import exact_gp
from sklearn.gaussian_process.kernels import DotProduct, Matern, WhiteKernel
from strategies import partitions, problems
from test_posterior import assert_same, prior_scale

from compositegp import Composite, committee, posterior, segment
from compositegp.posteriors import RULES

KERNEL = 1.5 * Matern(0.8, nu=1.5) + WhiteKernel(0.2)


@pytest.fixture
def problem(rng):
    X, Z = rng.uniform(0, 4, size=(60, 2)), rng.uniform(0, 4, size=(9, 2))
    return X, np.sin(X).sum(axis=1) + 0.4 * rng.normal(size=60), Z, segment(X, 13)


def experts_by_dense_algebra(X, y, Z, sets):
    beliefs = [exact_gp(KERNEL, X[s], y[s], Z) for s in sets]
    return np.array([mean for mean, _ in beliefs]), np.array([np.diag(covariance) for _, covariance in beliefs])


def test_each_rule_is_its_textbook_formula(problem):
    X, y, Z, segments = problem
    K = len(segments)
    means, variances = experts_by_dense_algebra(X, y, Z, segments)
    prior_variance = np.diag(KERNEL(Z, Z))
    change = 0.5 * np.log(prior_variance / variances)

    def combined(beta, leftover):
        precision = (beta / variances).sum(axis=0) + leftover / prior_variance
        return (beta * means / variances).sum(axis=0) / precision, 1 / precision

    expected = {
        ("poe", None): combined(np.ones((K, 1)), 0),
        ("gpoe", None): combined(np.full((K, 1), 1 / K), 0),
        ("gpoe", "entropy"): combined(change / change.sum(axis=0), 0),
        ("bcm", None): combined(np.ones((K, 1)), 1 - K),
        ("rbcm", None): combined(change, 1 - change.sum(axis=0)),
    }
    for (rule, weights), (mean, variance) in expected.items():
        found = committee(KERNEL, X, y, Z, segments, rule=rule, weights=weights)
        np.testing.assert_allclose(found.mean, mean, rtol=1e-9, atol=1e-10, err_msg=rule)
        np.testing.assert_allclose(found.variance, variance, rtol=1e-9, err_msg=rule)


@pytest.mark.parametrize("weights", ["entropy", "unit"])
def test_grbcm_is_its_textbook_formula(problem, weights):
    X, y, Z, segments = problem
    shared, *parts = segments
    means, variances = experts_by_dense_algebra(X, y, Z, [np.concatenate([shared, part]) for part in parts])
    (mean_c,), (variance_c,) = experts_by_dense_algebra(X, y, Z, [shared])
    beta = 0.5 * np.log(variance_c / variances) if weights == "entropy" else np.ones(means.shape)
    beta[0] = 1
    precision = (beta / variances).sum(axis=0) + (1 - beta.sum(axis=0)) / variance_c
    mean = ((beta * means / variances).sum(axis=0) + (1 - beta.sum(axis=0)) * mean_c / variance_c) / precision
    for arguments in ({}, {"communication": shared}):
        found = committee(KERNEL, X, y, Z, segments, rule="grbcm", weights=weights, **arguments)
        np.testing.assert_allclose(found.mean, mean, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(found.variance, 1 / precision, rtol=1e-8)


@given(problems(), st.data())
def test_joint_bcm_is_the_composite_gp(problem, data):
    """Tresp's formula, from each expert's own posterior covariance: Σ_k Σ_k⁻¹ − (K − 1) Σ_zz⁻¹."""
    kernel, X, y, Z = problem
    segments = data.draw(partitions(len(X)))
    assume(np.linalg.cond(kernel(Z, Z)) <= 1e6)
    precision, shift = -(len(segments) - 1) * np.linalg.inv(kernel(Z, Z)), 0
    for part in segments:
        mean, covariance = exact_gp(kernel, X[part], y[part], Z)
        precision = precision + np.linalg.inv(covariance)
        shift = shift + np.linalg.solve(covariance, mean)
    tresp = np.linalg.solve(precision, shift), np.linalg.inv(precision)
    cgp = posterior(kernel, X, y, Z, Composite.marginal(segments))
    assert_same(cgp, tresp, prior_scale(kernel, Z), atol=1e-7 * prior_scale(kernel, Z))


def test_pointwise_bcm_is_the_composite_gp_of_each_point_alone(problem):
    X, y, Z, segments = problem
    found = committee(KERNEL, X, y, Z, segments, rule="bcm")
    for z, mean, variance in zip(Z, found.mean, found.variance, strict=True):
        alone = posterior(KERNEL, X, y, z[None], Composite.marginal(segments))
        assert_same(alone, (np.array([mean]), np.array([[variance]])))


def test_grbcm_with_unit_weights_is_the_conditional_composite(problem):
    X, y, Z, segments = problem
    shared, *parts = segments
    composite = Composite.conditional(segments, [[], *[shared] * len(parts)])
    pointwise = committee(KERNEL, X, y, Z[:1], segments, rule="grbcm", weights="unit")
    alone = posterior(KERNEL, X, y, Z[:1], composite)
    assert_same(alone, (pointwise.mean, pointwise.variance[:, None]))


def test_communication_points_are_taken_out_of_the_segments(problem):
    X, y, Z, segments = problem
    shared = np.concatenate([part[:3] for part in segments])
    rest = [np.setdiff1d(part, shared) for part in segments]
    composite = Composite.conditional([shared, *rest], [[], *[shared] * len(rest)])
    found = committee(KERNEL, X, y, Z, segments, rule="grbcm", weights="unit", communication=shared)
    for z, mean, variance in zip(Z, found.mean, found.variance, strict=True):
        alone = posterior(KERNEL, X, y, z[None], composite)
        assert_same(alone, (np.array([mean]), np.array([[variance]])))


def test_one_segment_is_the_exact_gp(problem):
    X, y, Z, _ = problem
    mean, covariance = exact_gp(KERNEL, X, y, Z)
    for rule in ("poe", "gpoe", "bcm"):
        found = committee(KERNEL, X, y, Z, [np.arange(60)], rule=rule)
        np.testing.assert_allclose(found.mean, mean, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(found.variance, np.diag(covariance), rtol=1e-8)


@pytest.mark.parametrize("rule", RULES)
def test_far_from_the_data_every_rule_but_poe_falls_back_to_the_prior(problem, rule):
    X, y, _, segments = problem
    found = committee(KERNEL, X, y, np.full((1, 2), 1e3), segments, rule=rule, mean=2.0)
    prior_variance = 1.5 / len(segments) if rule == "poe" else 1.5
    np.testing.assert_allclose(found.variance, prior_variance)
    np.testing.assert_allclose(found.mean, 2.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rule": "vote"}, "rule must be one of poe, gpoe, bcm, rbcm, grbcm; found 'vote'"),
        ({"weights": "random"}, "weights must be one of"),
        ({"rule": "grbcm", "segments": [[0, 1]]}, "grbcm needs a communication set"),
        ({"rule": "grbcm", "communication": []}, "communication is empty"),
        ({"rule": "rbcm", "communication": [0]}, "communication is for rule grbcm"),
        ({"segments": 7}, "segments must be a list of index arrays"),
    ],
)
def test_bad_arguments_of_committee_are_named(arguments, message):
    arguments = {"segments": [[0], [1]]} | arguments
    with pytest.raises(ValueError, match=message):
        committee(KERNEL, np.zeros((2, 1)), np.zeros(2), np.zeros((1, 1)), **arguments)


def test_values_known_beforehand_and_experts_without_a_say(problem):
    X, y, _, segments = problem
    for rule in RULES:
        found = committee(DotProduct(0.0) + WhiteKernel(0.1), X, y, np.zeros((1, 2)), segments, rule=rule)
        np.testing.assert_allclose(found.mean, 0)
        np.testing.assert_allclose(found.variance, 0, rtol=0, atol=1e-200)
    far = committee(KERNEL, X, y, np.full((1, 2), 1e3), segments, rule="poe", weights="entropy")
    np.testing.assert_allclose([far.mean[0], far.variance[0]], [0, 1.5])


def test_a_communication_set_of_all_points_is_the_exact_gp(problem):
    X, y, Z, segments = problem
    mean, covariance = exact_gp(KERNEL, X, y, Z)
    found = committee(KERNEL, X, y, Z, segments, rule="grbcm", communication=np.arange(60))
    np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.variance, np.diag(covariance), rtol=1e-9)
