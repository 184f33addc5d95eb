"""Several outputs share one kernel and one factorisation: each is predicted as if it were alone."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from compositegp import (
    Basis,
    Committee,
    Composite,
    CompositeGPRegressor,
    CompositeLikelihood,
    CompositeSum,
    FisherAverage,
    Inducing,
    Nearest,
    learn,
    nearest,
    posterior,
    prior,
    segment,
)
from compositegp.composite import Observations, total_score

KERNEL = ConstantKernel(1.3) * Matern([0.8, 1.1], nu=1.5) + WhiteKernel(0.1)
PREDICTIONS = [
    Nearest(60, local_mean=False, calibration=None),
    Nearest(1000),
    CompositeSum(),
    Inducing(30),
    Inducing(30, "pitc"),
    Committee("rbcm"),
]


@pytest.fixture
def data(rng):
    X = rng.uniform(0, 4, size=(150, 2))
    Y = np.column_stack([np.sin(X[:, 0]), 5 + np.cos(X[:, 1]), X[:, 0] * X[:, 1]]) + 0.1 * rng.normal(size=(150, 3))
    return X, Y, rng.uniform(0, 4, size=(20, 2))


@pytest.mark.parametrize("mean", [None, "linear", Basis("constant", [1.0], [[4.0]])], ids=str)
@pytest.mark.parametrize("prediction", PREDICTIONS, ids=repr)
def test_each_output_is_predicted_as_if_alone(data, prediction, mean):
    X, Y, Z = data
    options = {
        "learning": None,
        "mean": mean,
        "prediction": prediction,
        "segment_size": 50,
        "conditioning_size": 20,
    }
    together = CompositeGPRegressor(KERNEL, **options).fit(X, Y)
    means, stds = together.predict(Z, return_std=True)
    assert means.shape == stds.shape == (20, 3)
    for column in range(3):
        alone = CompositeGPRegressor(KERNEL, **options).fit(X, Y[:, column])
        mean_alone, std_alone = alone.predict(Z, return_std=True)
        np.testing.assert_allclose(means[:, column], mean_alone, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(stds[:, column], std_alone, rtol=1e-9, atol=1e-12)
        if mean is not None:
            np.testing.assert_allclose(
                together.mean_coefficients_[:, column], alone.mean_coefficients_, rtol=1e-7, atol=1e-9
            )


@pytest.mark.parametrize("n", [300, 700])
def test_joint_error_bars_of_outputs_of_different_size_are_those_of_each(n, rng):
    X, Z = rng.uniform(0, 10, (n, 2)), rng.uniform(0, 10, (60, 2))
    Y = np.stack([np.sin(X[:, 0]), 100 * np.cos(X[:, 1])], axis=1) + rng.normal(size=(n, 2)) * [0.2, 20.0]
    kernel = ConstantKernel(1.0) * Matern([2.0, 2.0], nu=1.5) + WhiteKernel(0.1)
    model = CompositeGPRegressor(kernel, learning=None).fit(X, Y)
    alone, joint = model.predict_distribution(Z), model.predict_distribution(Z, joint=True)
    np.testing.assert_allclose(joint.std / alone.std, 1.0, rtol=0.1)  # tails are those of the average point
    mean, covariance = joint.mean_and_covariance()
    assert covariance.shape == (60, 60, 2)
    np.testing.assert_allclose(np.sqrt(np.einsum("iit->it", covariance)), joint.std, rtol=1e-9)
    draws = joint.sample(4000, random_state=0)
    np.testing.assert_allclose(draws.std(axis=2) / joint.std, 1.0, rtol=0.1)
    some = joint[10:13]
    np.testing.assert_allclose(some.mean_and_covariance()[1], covariance[10:13, 10:13], rtol=1e-9)
    new = np.stack([np.sin(Z[:, 0]), 100 * np.cos(Z[:, 1])], axis=1) + rng.normal(size=(60, 2)) * [0.2, 20.0]
    for column in range(2):
        inside = np.abs(new[:, column] - mean[:, column]) < 1.96 * joint.std[:, column]
        assert 0.85 < inside.mean() <= 1.0


def test_several_outputs_equal_those_of_scikit_learn(data):
    X, Y, Z = data
    theirs = GaussianProcessRegressor(KERNEL, optimizer=None, alpha=1e-14).fit(X, Y)
    ours = CompositeGPRegressor(KERNEL, learning=None, prediction=Nearest(calibration=None)).fit(X, Y)
    np.testing.assert_allclose(
        ours.predict(Z, return_std=True), theirs.predict(Z, return_std=True), rtol=0, atol=1e-8
    )
    mean, covariance = theirs.predict(Z, return_cov=True)
    found = ours.predict(Z, return_cov=True)
    np.testing.assert_allclose(found[0], mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found[1], covariance, rtol=0, atol=1e-8)
    assert ours.sample_y(Z, 5).shape == theirs.sample_y(Z, 5).shape == (20, 3, 5)
    value, gradient = ours.log_marginal_likelihood(KERNEL.theta + 0.1, eval_gradient=True)
    expected = theirs.log_marginal_likelihood(KERNEL.theta + 0.1, eval_gradient=True)
    assert value == pytest.approx(expected[0])
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-6, atol=1e-8)


def test_the_score_is_the_sum_over_the_outputs(data, rng):
    X, Y, _ = data
    segments = segment(X, 40)
    composite = Composite.conditional(
        segments, [segments[max(k - 1, 0)] if k else [] for k in range(len(segments))]
    )
    beta = rng.normal(size=(3, 3))

    def score(y, coefficients):
        observations = Observations.checked(KERNEL, X, y, mean="linear", noise_variance=None)
        return total_score(observations, composite, coefficients, probes=-1)

    whole, parts = score(Y, beta), [score(Y[:, k], beta[:, k : k + 1]) for k in range(3)]
    assert whole.log_likelihood == pytest.approx(sum(part.log_likelihood for part in parts), rel=1e-12)
    np.testing.assert_allclose(whole.gradient, sum(part.gradient for part in parts), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(whole.fisher, sum(part.fisher for part in parts), rtol=1e-9, atol=1e-9)
    for k, part in enumerate(parts):
        np.testing.assert_allclose(whole.normal.moment[:, k], part.normal.moment[:, 0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("learning", [CompositeLikelihood(None), FisherAverage(None)], ids=repr)
def test_copies_of_one_output_teach_the_same_with_smaller_errors(data, learning):
    X, Y, _ = data
    segments = segment(X, 50)
    one = learn(KERNEL, X, Y[:, 0], segments, learning=learning, conditioning_size=0, warn=False)
    two = learn(KERNEL, X, Y[:, [0, 0]], segments, learning=learning, conditioning_size=0, warn=False)
    assert (np.abs(one.theta - two.theta) < 0.1 * one.theta_standard_errors + 1e-3).all()
    known = one.theta_standard_errors < 0.5
    ratio = two.theta_standard_errors[known] / one.theta_standard_errors[known]
    np.testing.assert_allclose(ratio, np.sqrt(0.5), rtol=0.1)


@pytest.mark.parametrize("mean", [None, "linear"])
def test_functions_and_the_recursion_take_several_outputs(data, mean):
    X, Y, Z = data
    segments = segment(X, 50)
    whole = posterior(KERNEL, X, Y, Z, Composite.marginal(segments), mean=mean)
    belief = prior(KERNEL, Z, mean=mean)
    for part in segments:
        belief = belief.update(X[part], Y[part])
    np.testing.assert_allclose(belief.mean, whole.mean, rtol=0, atol=1e-7)
    near = nearest(KERNEL, X, Y, Z, n_neighbors=40, mean=mean)
    for column in range(3):
        alone = posterior(KERNEL, X, Y[:, column], Z, Composite.marginal(segments), mean=mean)
        np.testing.assert_allclose(whole.mean[:, column], alone.mean, rtol=0, atol=1e-9)
        np.testing.assert_allclose(whole.covariance, alone.covariance, rtol=0, atol=1e-10)
        found = nearest(KERNEL, X, Y[:, column], Z, n_neighbors=40, mean=mean).mean
        np.testing.assert_allclose(near.mean[:, column], found, rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match="2 output"):
        belief.update(X[:5], Y[:5, :2])


def test_a_stream_of_several_outputs(data):
    X, Y, Z = data
    model = CompositeGPRegressor(KERNEL, learning=None, conditioning_size=0, prediction=CompositeSum(watch=Z))
    for start in range(0, 150, 50):
        model.partial_fit(X[start : start + 50], Y[start : start + 50])
    parts = [np.arange(start, start + 50) for start in range(0, 150, 50)]
    expected = posterior(KERNEL, X, Y, Z, Composite.marginal(parts))
    np.testing.assert_allclose(model.predict(Z), expected.mean, rtol=0, atol=1e-8)
    with pytest.raises(ValueError, match="outputs of shape"):
        model.partial_fit(X[:5], Y[:5, 0])


def test_the_default_kernel_does_not_depend_on_the_units_of_the_outputs(data):
    X, Y, Z = data
    units = np.array([1e-6, 1.0, 1e5])
    mean, std = CompositeGPRegressor().fit(X, Y).predict(Z, return_std=True)
    other_mean, other_std = CompositeGPRegressor().fit(X, Y * units + [0, 7, -3]).predict(Z, return_std=True)
    np.testing.assert_allclose(other_mean, mean * units + [0, 7, -3], rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(other_std, std * units, rtol=1e-5, atol=0)


def test_rows_with_a_missing_output_are_left_out(data):
    X, Y, Z = data
    holed = Y.copy()
    holed[::7, 1] = np.nan
    kept = ~np.isnan(holed[:, 1])
    with pytest.warns(UserWarning, match="NaN in 22 of 150 rows"):
        found = CompositeGPRegressor(KERNEL, learning=None).fit(X, holed)
    np.testing.assert_array_equal(
        found.predict(Z), CompositeGPRegressor(KERNEL, learning=None).fit(X[kept], Y[kept]).predict(Z)
    )
