"""With few observations predictions are a mixture over the hyper-parameters: its weights, its moments, its coverage."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from compositegp import Basis, CompositeGPRegressor, CompositeSum, Estimated, Nearest
from compositegp.backend import NumericalWarning
from compositegp.composite import Observations
from compositegp.means import as_mean
from compositegp.prediction import ThetaMixture
from compositegp.prediction.theta_posterior import (
    Proposal,
    ThetaPosterior,
    latin_hypercube,
    log_marginal_likelihood,
    tempered_weights,
    weighted_kernels,
)

KERNEL = 1.0 * RBF([1.0, 1.0]) + WhiteKernel(1.0)
vague = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def small(rng, n=30):
    X = rng.uniform(0, 5, size=(n, 2))
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=n), rng.uniform(0, 5, size=(12, 2))


def learned(X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return CompositeGPRegressor(options.pop("kernel", KERNEL), **options).fit(X, y)


def predictor_of(model):
    return model._current().predictor


def without(model):
    """The same model under its learned hyper-parameters alone."""
    return pickle.loads(pickle.dumps(model)).set_params(prediction=Nearest(theta_uncertainty=False))


def data_of(model):
    return predictor_of(model)._data


class TestCalibrated:
    """From a hundred observations on errors of a mixture are calibrated too."""

    def drawn(self, noise, seed, n=250, m=2000):
        rng = np.random.default_rng(seed)
        X = rng.uniform(0, 10, size=(n + m, 1))
        y = np.sin(X[:, 0]) + 0.3 * noise(rng, X[:, 0])
        return X[:n], y[:n], X[n:], y[n:]

    def test_heavy_tails_are_found(self):
        gains, inside = [], []
        for seed in range(4):
            X, y, Z, new = self.drawn(lambda rng, x: rng.standard_t(2.5, len(x)), seed)
            model = CompositeGPRegressor(1.0 * RBF(1.0) + WhiteKernel()).fit(X, y)
            assert isinstance(predictor_of(model), ThetaMixture)
            found = model.predict_distribution(Z)
            plain = model.set_params(prediction=Nearest(calibration=None)).predict_distribution(Z)
            np.testing.assert_allclose(found.mean, plain.mean, rtol=1e-9)
            gains.append(plain.log_score(new).mean() - found.log_score(new).mean())
            inside.append(found.coverage(new, [0.5, 0.8, 0.95]))
        assert np.mean(gains) > 0.1
        assert np.abs(np.mean(inside, axis=0) - [0.5, 0.8, 0.95]).max() < 0.04

    def test_errors_are_calibrated_in_gaps_too(self):
        inside = []
        for seed in range(8):
            rng = np.random.default_rng(seed)
            x = rng.uniform(0, 10, 250)
            x = x[(x < 4) | (x > 7)]
            gap = np.linspace(4.5, 6.5, 21)
            every = np.concatenate([x, gap])[:, None]
            f = np.linalg.cholesky(Matern(1.0, nu=1.5)(every) + 1e-10 * np.eye(len(every))) @ rng.normal(
                size=len(every)
            )
            y = f + 0.05 * rng.normal(size=len(every)) * np.where(rng.uniform(size=len(every)) < 0.08, 12, 1)
            model = CompositeGPRegressor(1.0 * Matern(1.0, nu=1.5) + WhiteKernel()).fit(x[:, None], y[: len(x)])
            assert isinstance(predictor_of(model), ThetaMixture)
            inside.append(model.predict_distribution(gap[:, None]).coverage(y[len(x) :], [0.5, 0.8, 0.95]))
        # The few wide holes of such data are alike: a share of a half is known to some 0.1.
        assert np.abs(np.mean(inside, axis=0) - [0.5, 0.8, 0.95]).max() < 0.15

    def test_validation_is_of_the_predictions_that_are_made(self):
        rng = np.random.default_rng(9)
        X = rng.normal(size=(110, 8))
        y = X[:, 0] + np.sin(2 * X[:, 1]) + 0.2 * rng.normal(size=110)
        model = learned(X, y, kernel=None)
        near = model.validate().parts[0]
        left_out = model.predict_leave_one_out()
        assert (near.n_skipped, len(near.y)) == (0, 110)
        np.testing.assert_allclose(near.y, y, rtol=1e-12)
        np.testing.assert_allclose(near.predicted.mean, left_out.mean, rtol=1e-9)
        np.testing.assert_allclose(near.predicted.std, left_out.std, rtol=1e-9)

    def test_noise_that_grows_is_found(self):
        X, y, Z, new = self.drawn(lambda rng, x: (0.1 + 0.3 * x) * rng.normal(size=len(x)), 2)
        found = CompositeGPRegressor(1.0 * RBF(1.0) + WhiteKernel()).fit(X, y).predict_distribution(Z)
        assert found.std[Z[:, 0] > 8].mean() > 2 * found.std[Z[:, 0] < 2].mean()
        for part in (Z[:, 0] < 3, Z[:, 0] > 7):
            assert 0.85 < found[part].coverage(new[part], 0.95) <= 1.0

    @pytest.mark.parametrize("seed", range(3))
    def test_a_gaussian_is_left_alone(self, seed):
        rng = np.random.default_rng(seed + 10)
        X, Z = rng.uniform(0, 10, (250, 1)), np.linspace(0, 10, 50)[:, None]
        y = np.linalg.cholesky((RBF(1.0) + WhiteKernel(0.1))(X)) @ rng.normal(size=250)  # as the model says
        model = CompositeGPRegressor(1.0 * RBF(1.0) + WhiteKernel()).fit(X, y)
        assert model.calibration_.is_gaussian
        plain = CompositeGPRegressor(1.0 * RBF(1.0) + WhiteKernel(), prediction=Nearest(calibration=None)).fit(X, y)
        np.testing.assert_array_equal(model.predict(Z, return_std=True), plain.predict(Z, return_std=True))

    def test_calibration_is_stored_and_joint_predictions_have_it(self):
        X, y, Z, _ = self.drawn(lambda rng, x: (0.1 + 0.3 * x) * rng.normal(size=len(x)), 3, m=50)
        model = CompositeGPRegressor(1.0 * RBF(1.0) + WhiteKernel()).fit(X, y)
        found = model.predict_distribution(Z)
        again = pickle.loads(pickle.dumps(model)).predict_distribution(Z)
        np.testing.assert_allclose(again.scale, found.scale, rtol=1e-9)
        joint = model.predict_distribution(Z, joint=True)
        np.testing.assert_allclose(joint.scale, found.scale, rtol=1e-9)
        mixture = model.set_params(prediction=Nearest(calibration=None)).predict_distribution(Z)
        assert (found.scale / mixture.scale).std() > 0.1

    @pytest.mark.parametrize("n", [250, 600])
    def test_leave_one_out_predictions_are_calibrated_too(self, n):
        X, y, _, _ = self.drawn(lambda rng, x: (0.05 + 0.04 * x**2) * rng.normal(size=len(x)), 5, n=n)
        model = CompositeGPRegressor(1.0 * RBF(1.0) + WhiteKernel()).fit(X, y)
        found = model.predict_leave_one_out()
        plain = model.set_params(prediction=Nearest(calibration=None)).predict_leave_one_out()
        np.testing.assert_allclose(found.mean, plain.mean, rtol=1e-9)
        assert plain.coverage(y, 0.5) > 0.6
        np.testing.assert_allclose(found.coverage(y, [0.5, 0.8, 0.95]), [0.5, 0.8, 0.95], rtol=0, atol=0.06)

    def test_fewer_than_a_hundred_are_not_calibrated(self):
        X, y, _, _ = self.drawn(lambda rng, x: rng.standard_t(2.5, len(x)), 4, n=99)
        assert CompositeGPRegressor(1.0 * RBF(1.0) + WhiteKernel()).fit(X, y).calibration_ is None


def test_weights_are_posterior_over_proposal(rng):
    X, y, _ = small(rng)
    model = learned(X, y)
    posterior = ThetaPosterior(data_of(model))
    proposal = Proposal.around_mode(posterior)
    thetas, log_ratios = proposal.draw(posterior)
    theirs = GaussianProcessRegressor(model.kernel_, alpha=0.0, optimizer=None).fit(X, y)
    center = np.log([y.var(), *(np.sqrt(2) * X.std(axis=0)), 0.4 * y.var()])
    expected = []
    for theta in thetas:
        prior = norm.logpdf(theta, center, 1.5).sum()
        steps = np.linalg.solve(proposal.directions, theta - proposal.mode)
        width = np.where(steps < 0, *proposal.widths)
        expected.append(theirs.log_marginal_likelihood(theta) + prior - norm.logpdf(steps / width).sum())
    expected = np.array(expected)
    np.testing.assert_allclose(log_ratios - log_ratios[0], expected - expected[0], rtol=1e-7, atol=1e-7)


def test_moments_against_scikit_learn_at_every_theta(rng):
    X, y, Z = small(rng)
    model = learned(X, y)
    members = weighted_kernels(data_of(model))
    means, covariances = [], []
    for member in members:
        theirs = GaussianProcessRegressor(member.data.kernel, alpha=0.0, optimizer=None).fit(X, y)
        mean, covariance = theirs.predict(Z, return_cov=True)  # of new observations, noise included
        means.append(mean)
        covariances.append(covariance)
    weights = np.array([member.weight for member in members])
    mean = weights @ np.array(means)
    deviations = np.array(means) - mean
    covariance = np.tensordot(weights, covariances, axes=1) + np.einsum(
        "i,ij,ik->jk", weights, deviations, deviations
    )
    found, std = model.predict(Z, return_std=True)
    np.testing.assert_allclose(found, mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(std**2, np.diagonal(covariance), rtol=1e-8)
    found, joint = model.predict(Z, return_cov=True)
    np.testing.assert_allclose(found, mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(joint, covariance, rtol=1e-7, atol=1e-8)
    latent = model.predict(Z, return_std=True, latent=True)[1]
    noise = weights @ [member.data.kernel.k2.noise_level for member in members]
    np.testing.assert_allclose(std**2 - latent**2, noise, rtol=1e-8)
    np.testing.assert_allclose(model.predict(Z, return_std=True, variance="honest")[1], std)
    added = model.predict(Z, return_std=True, noise_variance=0.5)[1]
    np.testing.assert_allclose(added**2, std**2 + 0.5)
    draws = model.sample_y(Z, 40_000)
    np.testing.assert_allclose(np.cov(draws), covariance, rtol=0, atol=0.05)


def test_one_hyperparameter_against_a_grid(rng):
    X = rng.uniform(0, 5, size=(25, 1))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=25)
    Z = np.linspace(-1, 6, 15)[:, None]
    kernel = ConstantKernel(0.5, "fixed") * Matern(1.0, nu=1.5) + WhiteKernel(0.1, "fixed")
    model = learned(X, y, kernel=kernel)
    theirs = GaussianProcessRegressor(model.kernel_, alpha=0.0, optimizer=None).fit(X, y)
    grid = np.linspace(-4, 4, 161)
    log_posterior = np.array([theirs.log_marginal_likelihood(np.array([theta])) for theta in grid])
    log_posterior += norm.logpdf(grid, np.log(X.std()), 2.0)
    weights = np.exp(log_posterior - log_posterior.max())
    weights /= weights.sum()
    means, variances = [], []
    chosen = weights > 1e-9
    for theta in grid[chosen]:
        at = GaussianProcessRegressor(model.kernel_.clone_with_theta([theta]), alpha=0.0, optimizer=None).fit(X, y)
        mean, std = at.predict(Z, return_std=True)
        means.append(mean)
        variances.append(std**2)
    mean = weights[chosen] @ np.array(means)
    variance = weights[chosen] @ (np.array(variances) + (np.array(means) - mean) ** 2)
    found, std = model.predict(Z, return_std=True)
    np.testing.assert_allclose(found, mean, rtol=0, atol=0.02)
    np.testing.assert_allclose(std**2, variance, rtol=0.04)


@pytest.mark.parametrize("mean", ["constant", "linear"])
def test_unknown_coefficients_are_integrated_over(mean, rng):
    """A flat prior is the limit of a Gaussian process with a constant or linear part of large variance."""
    X, y, _ = small(rng)
    posterior = ThetaPosterior(Observations.checked(KERNEL, X, y, mean=mean, noise_variance=None))
    functions = np.ones((len(X), 1)) if mean == "constant" else np.column_stack([np.ones(len(X)), X])
    thetas = [np.array([0.1, 0.3, 0.5, -1.0]), np.array([-0.5, 1.0, 0.0, -2.0])]
    found, expected = [], []
    for theta in thetas:
        found.append(log_marginal_likelihood(posterior.data, posterior.factored_at(theta)))
        K = KERNEL.clone_with_theta(theta)(X) + 1e7 * functions @ functions.T
        expected.append(-0.5 * (y @ np.linalg.solve(K, y) + np.linalg.slogdet(K)[1]))
    np.testing.assert_allclose(found[0] - found[1], expected[0] - expected[1], rtol=1e-5)


def test_basis_functions_that_cannot_be_distinguished(rng):
    X, y, _ = small(rng)
    twice = np.column_stack([X[:, 0], X])
    kernel = 1.0 * RBF([1.0, 1.0, 1.0]) + WhiteKernel(0.1)
    differences = []
    for mean in ("linear", Basis(_without_repetition)):
        posterior = ThetaPosterior(Observations.checked(kernel, twice, y, mean=mean, noise_variance=None))
        differences.append(posterior.log_density(kernel.theta + 0.2) - posterior.log_density(kernel.theta))
    np.testing.assert_allclose(differences[0], differences[1], rtol=1e-6)


def _without_repetition(X):
    return np.column_stack([np.ones(len(X)), X[:, 1:]])


def test_an_estimated_mean_is_taken_as_known(rng):
    X, y, Z = small(rng)
    estimate = Estimated("constant", [0.3], [[0.01]])
    model = learned(X, y, mean=estimate)
    members = weighted_kernels(data_of(model))
    weights = np.array([member.weight for member in members])
    means = [
        0.3 + GaussianProcessRegressor(member.data.kernel, alpha=0.0, optimizer=None).fit(X, y - 0.3).predict(Z)
        for member in members
    ]
    np.testing.assert_allclose(model.predict(Z), weights @ np.array(means), rtol=1e-8, atol=1e-8)
    known = ThetaPosterior(data_of(model).with_mean(as_mean(0.3)))
    given = ThetaPosterior(data_of(model))
    theta = model.kernel_.theta
    np.testing.assert_allclose(given.log_density(theta), known.log_density(theta), rtol=1e-10)


def test_tempered_weights():
    np.testing.assert_allclose(tempered_weights(np.zeros(32)), 1 / 32)
    weights = tempered_weights(np.r_[0.0, np.full(31, -100.0)])
    np.testing.assert_allclose(1 / (weights**2).sum(), 8.0, rtol=1e-6)
    some = tempered_weights(np.r_[np.zeros(10), np.full(22, -np.inf)])
    np.testing.assert_allclose(some, np.r_[np.full(10, 0.1), np.zeros(22)])
    few = tempered_weights(np.r_[0.0, -1.0, np.full(30, -np.inf)])
    np.testing.assert_allclose(few[:2], np.exp([0, -1]) / np.exp([0, -1]).sum())


def test_latin_hypercube_fills_every_interval():
    points = latin_hypercube(32, 5)
    np.testing.assert_allclose(np.sort(points, axis=0), np.tile((np.arange(32)[:, None] + 0.5) / 32, 5))
    assert np.abs(np.corrcoef(points.T) - np.eye(5)).max() < 0.5


def test_values_stay_within_bounds(rng):
    X, y, _ = small(rng)
    kernel = ConstantKernel(1.0, (0.5, 2.0)) * RBF([1.0, 1.0], (0.8, 3.0)) + WhiteKernel(0.1, (0.05, 0.2))
    for member in weighted_kernels(data_of(learned(X, y, kernel=kernel))):
        bounds = kernel.bounds
        assert (member.data.kernel.theta >= bounds[:, 0] - 1e-12).all()
        assert (member.data.kernel.theta <= bounds[:, 1] + 1e-12).all()


@vague
@pytest.mark.parametrize(
    "options",
    [
        {"learning": None},
        {"kernel": ConstantKernel(1.0, "fixed") * RBF(1.0, "fixed") + WhiteKernel(0.1, "fixed")},
        {"prediction": Nearest(20)},
        {"prediction": CompositeSum()},
        {"prediction": Nearest(theta_uncertainty=False)},
    ],
    ids=str,
)
def test_nothing_changes_where_it_does_not_apply(options, rng):
    X, y, Z = small(rng)
    model = CompositeGPRegressor(**{"kernel": KERNEL, **options}).fit(X, y)
    assert not isinstance(predictor_of(model), ThetaMixture)
    if isinstance(options.get("prediction", Nearest()), Nearest):
        neighbors = options.get("prediction", Nearest()).n_neighbors
        plain = CompositeGPRegressor(
            **{"kernel": KERNEL, **options, "prediction": Nearest(neighbors, theta_uncertainty=False)}
        ).fit(X, y)
        np.testing.assert_array_equal(model.predict(Z, return_std=True), plain.predict(Z, return_std=True))
        np.testing.assert_array_equal(model.predict(Z, return_cov=True)[1], plain.predict(Z, return_cov=True)[1])


def test_nothing_changes_above_500_observations(rng):
    X = rng.uniform(0, 5, size=(501, 1))
    y, Z = np.sin(X[:, 0]) + 0.3 * rng.normal(size=501), X[:10] + 0.1
    kernel = 1.0 * RBF(1.0) + WhiteKernel(1.0)
    model = learned(X, y, kernel=kernel)
    np.testing.assert_array_equal(model.predict(Z, return_std=True), without(model).predict(Z, return_std=True))
    assert not isinstance(predictor_of(model), ThetaMixture)
    model.set_params(prediction=Nearest(theta_uncertainty=True))
    assert isinstance(predictor_of(model), ThetaMixture)
    # The effect is small by then.
    np.testing.assert_allclose(
        model.predict(Z, return_std=True), without(model).predict(Z, return_std=True), rtol=0, atol=0.03
    )


def test_a_model_without_information_is_as_it_was(rng):
    """A constant target tells nothing of θ, so nothing is averaged over; a file of such a model neither."""
    X, _, Z = small(rng)
    with pytest.warns(ConvergenceWarning, match="constant target"):
        model = CompositeGPRegressor(KERNEL).fit(X, np.full(len(X), 2.0))
    again = CompositeGPRegressor.from_content(model.to_content())
    for one in (model, again):
        assert not isinstance(predictor_of(one), ThetaMixture)
        np.testing.assert_array_equal(one.predict(Z, return_std=True), without(model).predict(Z, return_std=True))


def test_a_singular_covariance_is_predicted_under_the_learned_values():
    X = np.linspace(0, 1, 40)[:, None]
    with pytest.warns(NumericalWarning, match="singular"):
        model = learned(X, np.sin(3 * X[:, 0]), kernel=RBF(1.0))
    assert isinstance(predictor_of(model), ThetaMixture)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = without(model)
        np.testing.assert_array_equal(model.predict(X, return_std=True), plain.predict(X, return_std=True))
        np.testing.assert_array_equal(model.predict(X, return_cov=True)[1], plain.predict(X, return_cov=True)[1])


def test_files_keep_the_mixture_and_its_parameter(tmp_path, rng):
    X, y, Z = small(rng)
    model = learned(X, y, prediction=Nearest(400, theta_uncertainty=True))
    model.save(tmp_path / "model.cgp")
    again = CompositeGPRegressor.load(tmp_path / "model.cgp")
    assert again.prediction.theta_uncertainty is True
    for one in (again, pickle.loads(pickle.dumps(model)), learned(X, y)):
        np.testing.assert_array_equal(one.predict(Z, return_std=True), model.predict(Z, return_std=True))


@vague
def test_partial_fit_mixes_too(rng):
    X, y, Z = small(rng, 60)
    model = CompositeGPRegressor(KERNEL).partial_fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    assert isinstance(predictor_of(model), ThetaMixture)
    whole = learned(X, y)
    # The same data, prior and likelihood; only where the search for the mode begins is another.
    np.testing.assert_allclose(model.predict(Z), whole.predict(Z), rtol=0, atol=0.1)


def test_outputs_share_the_variance(rng):
    X, y, Z = small(rng)
    both = np.column_stack([y, np.cos(X[:, 1]) + 0.3 * rng.normal(size=len(X))])
    model = learned(X, both)
    members = weighted_kernels(data_of(model))
    weights = np.array([member.weight for member in members])
    means, variances = [], []
    for member in members:
        theirs = GaussianProcessRegressor(member.data.kernel, alpha=0.0, optimizer=None).fit(X, both)
        mean, std = theirs.predict(Z, return_std=True)
        means.append(mean)
        variances.append(std[:, 0] ** 2)
    mean = np.tensordot(weights, means, axes=1)
    spread = np.tensordot(weights, (np.array(means) - mean) ** 2, axes=1).mean(axis=1)
    found, std = model.predict(Z, return_std=True)
    np.testing.assert_allclose(found, mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(std, np.sqrt(weights @ np.array(variances) + spread)[:, None] * [1, 1], rtol=1e-8)
    covariance = model.predict(Z, return_cov=True)[1]
    np.testing.assert_allclose(np.diagonal(covariance[..., 0]), std[:, 0] ** 2, rtol=1e-7)


def test_known_noise_and_a_log_target(rng):
    X, y, Z = small(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = CompositeGPRegressor(KERNEL, target_transform="log").fit(X, np.exp(y), noise_variance=0.05)
    found, plain = model.predict_distribution(Z), without(model).predict_distribution(Z)
    assert (found.mean > 0).all()
    assert found.scale.mean() > plain.scale.mean()


def test_the_parameter_is_checked(rng):
    X, y, _ = small(rng)
    for wrong in ("yes", None, 2):
        with pytest.raises(ValueError, match="theta_uncertainty must be"):
            CompositeGPRegressor(KERNEL, prediction=Nearest(theta_uncertainty=wrong)).fit(X, y)


def coverage(kernel, d, noise, n, seeds):
    """Coverage at 95 % and log score, without and with the mixture: shape (2, 2)."""
    found = []
    for seed in seeds:
        rng = np.random.default_rng([seed, d, n])
        points = rng.uniform(size=(n + 60, d))
        y = np.sqrt(noise) * rng.normal(size=n + 60)
        if noise < 1:
            K = (1 - noise) * kernel.clone_with_theta(np.log(rng.uniform(0.2, 1.5, size=d) * np.sqrt(d)))(points)
            y = y + np.linalg.cholesky(K + 1e-10 * np.eye(n + 60)) @ rng.normal(size=n + 60)
        model = learned(points[:n], y[:n], kernel=1.0 * kernel + WhiteKernel(), mean="constant")
        both = [one.predict_distribution(points[n:]) for one in (without(model), model)]
        found.append([[one.coverage(y[n:]), one.log_score(y[n:]).mean()] for one in both])
    return np.mean(found, axis=0)


def test_coverage_with_50_observations_in_five_columns():
    plain, mixed = coverage(Matern(np.ones(5), nu=1.5), 5, 0.1, 50, range(6))
    assert plain[0] < 0.92
    assert 0.92 < mixed[0] < 0.98
    assert mixed[1] < plain[1]


def test_coverage_of_pure_noise():
    plain, mixed = coverage(RBF(np.ones(5)), 5, 1.0, 50, range(6))
    assert 0.92 < mixed[0] < 0.98
    assert mixed[1] < plain[1]


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.01, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_coverage_with_50_observations(d, noise):
    """More data sets, and 200 observations: benchmarks/theta_coverage.py."""
    ones = np.ones(d) if d > 1 else 1.0
    kernels = [RBF(ones), Matern(ones, nu=1.5), Matern(ones, nu=0.5)]
    plain, mixed = np.mean([coverage(kernel, d, noise, 50, range(16)) for kernel in kernels], axis=0)
    assert 0.92 < mixed[0] < 0.98
    assert mixed[1] < plain[1] + 0.005
