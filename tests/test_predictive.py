"""The predictive distribution against SciPy's distributions, quadrature and draws."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, ExpSineSquared, WhiteKernel
from sklearn.preprocessing import FunctionTransformer, PowerTransformer

from compositegp import Committee, CompositeGPRegressor, CompositeSum, Inducing, Nearest, PredictiveDistribution
from compositegp.forecasting.target_scales import TARGET_SCALES
from compositegp.predictive import (
    IdentityTarget,
    LogTarget,
    NormalMixture,
    StudentT,
    TransformedTarget,
    score_predictions,
)

LOCATION, SCALE = np.array([-0.4, 0.3, 1.1]), np.array([0.5, 0.8, 0.2])
DF = np.array([3.0, 5.0, 40.0])
MINUS_CUBE_ROOT = TransformedTarget(
    FunctionTransformer(lambda y: -np.cbrt(y), lambda z: -(z**3), check_inverse=False).fit(np.zeros((2, 1))),
    -1.0,
    1.0,
)
KERNEL = ConstantKernel(1.5) * RBF([0.8, 1.2]) + WhiteKernel(0.05)


def cases():
    """Distributions, and the same by SciPy's (frozen distribution on the model's scale, map to the user's unit)."""
    normal, t = stats.norm(LOCATION, SCALE), stats.t(DF, LOCATION, SCALE)
    return {
        "normal": (PredictiveDistribution(LOCATION, SCALE), normal, lambda z: z, 1),
        "t": (PredictiveDistribution(LOCATION, SCALE, family=StudentT(DF)), t, lambda z: z, 1),
        "log-normal": (PredictiveDistribution(LOCATION, SCALE, LogTarget()), normal, np.exp, 1),
        "decreasing": (PredictiveDistribution(LOCATION, SCALE, MINUS_CUBE_ROOT), normal, lambda z: -(z**3), -1),
    }


@pytest.mark.parametrize("name", cases())
class TestAgainstScipy:
    def test_quantiles_intervals_and_median(self, name):
        found, reference, unit, sign = cases()[name]
        for q in (0.01, 0.3, 0.975):
            np.testing.assert_allclose(
                found.quantile(q), unit(reference.ppf(q if sign > 0 else 1 - q)), rtol=1e-9, atol=1e-12
            )
        np.testing.assert_allclose(found.median, unit(reference.median()), rtol=1e-9, atol=1e-12)
        lower, upper = found.interval(0.8)
        np.testing.assert_allclose(lower, found.quantile(0.1), rtol=1e-12, atol=0)
        np.testing.assert_allclose(upper, found.quantile(0.9), rtol=1e-12, atol=0)
        assert (lower < upper).all()
        assert found.quantile([0.1, 0.5]).shape == (3, 2)

    def test_the_density_is_the_derivative_of_the_distribution_function(self, name):
        found, reference, unit, _ = cases()[name]
        y = unit(reference.ppf([0.2, 0.6, 0.9]))
        step = 1e-5 * np.abs(y)
        slope = (found.cdf(y + step) - found.cdf(y - step)) / (2 * step)
        np.testing.assert_allclose(np.exp(found.logpdf(y)), slope, rtol=1e-5, atol=0)
        np.testing.assert_array_equal(found.log_score(y), -found.logpdf(y))

    def test_moments_and_draws(self, name):
        found, *_ = cases()[name]
        draws = found.sample(200_000, random_state=0)
        assert draws.shape == (3, 200_000)
        errors = draws.std(axis=1) / np.sqrt(200_000)
        assert (np.abs(draws.mean(axis=1) - found.mean) < 5 * errors).all()
        np.testing.assert_allclose(found.variance, found.std**2, rtol=1e-12, atol=0)
        if name != "t":  # of which the sample variance hardly converges with three degrees of freedom
            np.testing.assert_allclose(draws.std(axis=1), found.std, rtol=0.05, atol=0)
        np.testing.assert_allclose((draws <= found.quantile(0.3)[:, None]).mean(axis=1), 0.3, rtol=0, atol=0.005)

    def test_crps_is_the_integral_of_the_squared_difference(self, name):
        found, reference, unit, _ = cases()[name]
        y = unit(reference.ppf([0.2, 0.6, 0.97]))
        u = np.linspace(5e-7, 1 - 5e-7, 1_000_000)
        for point in range(3):
            one = found[point]
            # 2 ∫ (1{y ≤ q_u} − u)(q_u − y) du
            values = one.transform.inverse(one.location + one.scale * one.family.quantile(u)[..., :])
            level = u if np.all(np.asarray(one.transform.sign) > 0) else 1 - u
            expected = 2 * np.mean(((y[point] <= values) - level) * (values - y[point]))
            np.testing.assert_allclose(found.crps(y)[point], expected, rtol=3e-3, atol=0)


def test_coverage_is_that_of_the_levels():
    rng = np.random.default_rng(0)
    found = PredictiveDistribution(np.zeros(40_000), np.ones(40_000))
    np.testing.assert_allclose(
        found.coverage(rng.normal(size=40_000), [0.5, 0.8, 0.95]), [0.5, 0.8, 0.95], rtol=0, atol=0.01
    )
    assert found.coverage(np.zeros(40_000), 0.5) == 1.0


def test_some_of_the_points_have_their_own_distributions():
    found = PredictiveDistribution(LOCATION, SCALE, family=StudentT(DF))
    some = found[[2, 0]]
    np.testing.assert_array_equal(some.quantile(0.9), found.quantile(0.9)[[2, 0]])
    assert len(found[np.array([True, False, True])]) == 2
    assert repr(some) == "PredictiveDistribution(StudentT at 2 point(s))"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: d.quantile(1.0), "q must be"),
        (lambda d: d.interval(95), "level must be"),
        (lambda d: d.crps([1.0]), "y must have the shape"),
        (lambda d: d.sample(0), "n must be"),
        (lambda d: d.mean_and_covariance(), "no covariance"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(PredictiveDistribution(LOCATION, SCALE))


class TestOfTheRegressor:
    @pytest.fixture
    def data(self, rng):
        X = rng.uniform(0, 4, size=(160, 2))
        return X, 3 + np.sin(X[:, 0]) + 0.2 * rng.normal(size=160), rng.uniform(0, 4, size=(30, 2))

    @pytest.mark.parametrize("variance", ["claimed", "honest"])
    @pytest.mark.parametrize("transform", [None, "log", PowerTransformer()], ids=str)
    @pytest.mark.parametrize("prediction", [Nearest(40), CompositeSum(), Inducing(30)], ids=repr)
    def test_every_way_to_ask_is_read_off_it(self, data, prediction, transform, variance):
        X, y, Z = data
        model = CompositeGPRegressor(
            KERNEL, learning=None, mean=1.0, prediction=prediction, target_transform=transform, segment_size=50
        ).fit(X, y)
        found = model.predict_distribution(Z, variance=variance)
        mean, std = model.predict(Z, return_std=True, variance=variance)
        np.testing.assert_array_equal(mean, found.mean)
        np.testing.assert_array_equal(std, found.std)
        np.testing.assert_array_equal(model.predict_interval(Z, 0.9, variance=variance), found.interval(0.9))
        np.testing.assert_array_equal(model.predict_quantiles(Z, 0.3, variance=variance), found.quantile(0.3))
        np.testing.assert_allclose(found.cdf(found.quantile(0.2)), 0.2, rtol=0, atol=1e-6)
        assert np.isfinite(found.crps(found.median)).all()
        assert np.isfinite(found.logpdf(found.median)).all()

    def test_honest_distributions_are_wider_where_segments_share_information(self, rng):
        t = np.arange(1056.0)[:, None]  # the paper's time series
        kernel = ExpSineSquared(1.0, 128.0) + RBF(20.0) + WhiteKernel(0.1)
        model = CompositeGPRegressor(
            kernel,
            learning=None,
            prediction="composite",
            segment_size=256,
            segmentation="sequential",
            conditioning_size=0,
        ).fit(t[:1024], rng.normal(size=1024))
        claimed, honest = (
            model.predict_distribution(t[1024:], variance=v, latent=True) for v in ("claimed", "honest")
        )
        np.testing.assert_array_equal(claimed.mean, honest.mean)
        widths = [upper - lower for lower, upper in (found.interval(0.5) for found in (claimed, honest))]
        assert (widths[1] > widths[0]).all()
        assert widths[1].mean() > 1.2 * widths[0].mean()

    def test_committees_have_no_honest_variance_and_no_joint_belief(self, data):
        X, y, Z = data
        model = CompositeGPRegressor(KERNEL, learning=None, prediction=Committee("rbcm"), segment_size=50).fit(X, y)
        with pytest.raises(ValueError, match="no closed form"):
            model.predict_distribution(Z, variance="honest")
        with pytest.raises(ValueError, match="no joint covariance"):
            model.predict_distribution(Z, joint=True)

    def test_joint_draws_have_the_covariance(self, data):
        X, y, Z = data
        found = CompositeGPRegressor(KERNEL, learning=None).fit(X, y).predict_distribution(Z[:4], joint=True)
        draws = found.sample(200_000, random_state=1)
        np.testing.assert_allclose(np.cov(draws), found.mean_and_covariance()[1], rtol=0, atol=5e-3)


def test_scores_are_those_of_scipy():
    y = np.array([-0.5, 0.2, 1.0])
    found = PredictiveDistribution(LOCATION, SCALE, IdentityTarget())
    scores = score_predictions(found, y)
    assert scores["RMSE"] == pytest.approx(np.sqrt(np.mean((LOCATION - y) ** 2)))
    assert scores["log score"] == pytest.approx(-stats.norm(LOCATION, SCALE).logpdf(y).mean())
    assert scores["coverage 50 %"] == 1.0


@pytest.mark.parametrize(
    ("df", "forward", "inverse"),
    [(2.5, np.sinh, np.arcsinh), (4.0, np.asarray, np.asarray), (30.0, np.cbrt, lambda z: z**3)],
)
def test_crps_of_long_tails_behind_a_transform_is_the_monte_carlo_one(df, forward, inverse):
    transform = TransformedTarget(FunctionTransformer(forward, inverse, check_inverse=False))
    found = PredictiveDistribution.of_marginals(
        np.array([0.5]), np.array([1.0]), transform=transform, family=StudentT(np.array([df]))
    )
    draws = inverse(0.5 + found.scale[0] * stats.t(df).rvs(400_000, random_state=0))
    expected = np.abs(draws - 1.0).mean() - 0.5 * np.abs(draws[::2] - draws[1::2]).mean()
    assert found.crps(np.array([1.0]))[0] == pytest.approx(expected, rel=0.02)


def test_crps_where_a_transformer_does_not_reach_the_tails():
    limited = FunctionTransformer(np.asarray, lambda z: np.where(np.abs(z) < 3, z, np.nan), check_inverse=False)

    def crps(scale):
        found = PredictiveDistribution(np.zeros(1), np.array([scale]), TransformedTarget(limited))
        return found.crps(np.array([0.4]))[0]

    for scale, close in ((0.6, 1e-4), (1.0, 0.02)):  # values beyond the limits are met once in millions; 3 in 1,000
        assert crps(scale) == pytest.approx(
            PredictiveDistribution(0 * LOCATION, scale + 0 * SCALE).crps(0 * LOCATION + 0.4)[0], rel=close
        )
    with pytest.raises(ValueError, match="has no inverse"):
        crps(1.5)  # 1 in 20


@pytest.mark.parametrize("df", [2.01, 4.0, 1e3])
def test_quantiles_of_a_mixture_are_the_roots_of_its_distribution(df):
    family, q = NormalMixture(df), np.array([1e-300, 1e-12, 1e-3, 0.025, 0.3, 0.5])
    found = family.quantile(q)
    np.testing.assert_allclose(np.log(family.cdf(found)), np.log(q), rtol=0, atol=1e-11)
    np.testing.assert_allclose(family.quantile(1 - q[2:]), -found[2:], rtol=1e-11, atol=1e-14)
    np.testing.assert_array_equal(family.quantile(np.array([0.0, 1.0])), [-np.inf, np.inf])
    by_search = brentq(lambda z: float(family.cdf(np.array(z))) - 0.3, -5, 0, xtol=1e-14)
    np.testing.assert_allclose(found[4], by_search, rtol=1e-12)


@pytest.mark.parametrize("transform", ["log", "sqrt", "fourth_root"])
@pytest.mark.parametrize("level", [1e3, 1e6, 1e9])
def test_deviations_keep_their_digits_beside_a_large_mean(transform, level):
    """On a transformed scale errors of one unit around a large level: their deviation is that unit."""
    scale = TARGET_SCALES[transform]
    location = scale.forward(np.array([level]))
    unit = scale.forward(np.array([level + 1.0])) - location
    found = PredictiveDistribution(location, unit, scale, NormalMixture(8.0))
    spread = np.sqrt(np.mean(np.asarray(NormalMixture(8.0).scales) ** 2))
    np.testing.assert_allclose(found.std, spread, rtol=1e-2)
    np.testing.assert_allclose(found.mean, level, rtol=1e-5)
