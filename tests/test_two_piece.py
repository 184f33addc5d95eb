"""Student's t skewed by two scales: against quadrature, Monte Carlo, finite differences and the symmetric t."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import integrate, stats

from compositegp.predictive import Calibration, PredictiveDistribution, StudentT, TwoPieceT
from compositegp.predictive.two_piece import two_piece_log_density

CASES = [(3.0, 1.4), (7.5, 0.6), (40.0, 2.5), (1e6, 1.3)]


def density(df, skew):
    return lambda z: float(np.exp(TwoPieceT(np.array([df]), skew).logpdf(np.array([z])))[0])


@pytest.mark.parametrize(("df", "skew"), CASES)
def test_density_is_one_in_all_with_mean_zero_and_the_stated_deviation(df, skew):
    f = density(df, skew)
    moments = [integrate.quad(lambda z, k=k: z**k * f(z), -np.inf, np.inf, limit=400)[0] for k in (0, 1, 2)]
    assert moments[0] == pytest.approx(1.0, abs=1e-6)
    assert moments[1] == pytest.approx(0.0, abs=2e-4)
    assert np.sqrt(moments[2]) == pytest.approx(float(TwoPieceT(np.array([df]), skew).std[0]), rel=5e-3)


@pytest.mark.parametrize(("df", "skew"), CASES)
def test_distribution_function_is_the_integral_of_the_density_and_quantiles_invert_it(df, skew):
    family = TwoPieceT(np.array([df]), skew)
    for z in (-2.5, -0.3, 0.0, 0.4, 3.0):
        expected = integrate.quad(density(df, skew), -np.inf, z, limit=400)[0]
        assert float(family.cdf(np.array([z]))[0]) == pytest.approx(expected, abs=1e-7)
    levels = np.array([1e-9, 0.01, 0.3, 0.5, 0.8, 0.999, 1 - 1e-9])
    np.testing.assert_allclose(family.cdf(family.quantile(levels)), levels, rtol=1e-6)


@pytest.mark.parametrize(("df", "skew"), CASES)
@pytest.mark.parametrize("outcome", [-3.0, -0.2, 0.1, 4.0])
def test_crps_is_the_integral_of_the_squared_difference_of_distribution_functions(df, skew, outcome):
    family = TwoPieceT(np.array([df]), skew)

    def squared(z):
        return (float(family.cdf(np.array([z]))[0]) - (z >= outcome)) ** 2

    expected = sum(integrate.quad(squared, *ends, limit=400)[0] for ends in ((-np.inf, outcome), (outcome, np.inf)))
    assert float(family.crps(np.array([outcome]))[0]) == pytest.approx(expected, abs=2e-5)


def test_without_skew_it_is_students_t(rng):
    df, z = np.array([2.5, 6.0, 90.0]), rng.normal(size=3) * 3
    plain, skewed = StudentT(df), TwoPieceT(df, 1.0)
    for name in ("cdf", "logpdf", "crps"):
        np.testing.assert_allclose(getattr(skewed, name)(z), getattr(plain, name)(z), rtol=1e-9)
    np.testing.assert_allclose(skewed.quantile(0.3), plain.quantile(0.3), rtol=1e-9)
    np.testing.assert_allclose(skewed.std, plain.std, rtol=1e-12)
    np.testing.assert_allclose(skewed.bent(z), z, rtol=1e-8)


@given(st.floats(-4, 4), st.floats(-1, 1), st.floats(0.9, 5), st.floats(-1.2, 1.2))
def test_derivatives_are_those_of_finite_differences(z, log_scale, log_df, log_skew):
    errors, at = np.array([z]), (log_scale, log_df, log_skew)
    mode = np.exp(log_scale) * float(TwoPieceT(np.exp([log_df]), np.exp(log_skew))._mode[0])
    assume(abs(z + mode) >= 0.05)  # the second derivative jumps at the mode

    def value(*numbers):
        scale, df, skew = numbers
        return float(two_piece_log_density(errors, np.array([scale]), np.array([df]), skew)[0][0])

    family = TwoPieceT(np.exp([log_df]), float(np.exp(log_skew)))
    direct = family.logpdf(errors * np.exp(-log_scale)) - log_scale
    assert value(*at) == pytest.approx(float(direct[0]), rel=1e-9, abs=1e-9)
    found = two_piece_log_density(errors, np.array([log_scale]), np.array([log_df]), log_skew)[1:]
    for number, slope in enumerate(found):
        step = np.eye(3)[number] * 1e-5
        numeric = (value(*(at + step)) - value(*(at - step))) / 2e-5
        assert float(slope[0]) == pytest.approx(numeric, rel=1e-4, abs=1e-5)


def test_draws_have_the_distribution_alone_and_jointly(rng):
    family = TwoPieceT(np.array([5.0, 8.0]), 1.7)
    location, scale = np.array([1.0, -2.0]), np.array([0.5, 3.0])
    alone = PredictiveDistribution(location, scale, family=family)
    together = PredictiveDistribution(
        location, scale, family=family.shared(), covariance=np.outer(scale, scale) * [[1.0, 0.6], [0.6, 1.0]]
    )
    for found in (alone, together):
        draws = found.sample(20_000, random_state=0)
        for point in range(2):
            standard = (draws[point] - location[point]) / scale[point]
            chances = found[point].family.cdf(standard)
            assert stats.kstest(chances, "uniform").pvalue > 1e-3
    assert stats.spearmanr(*together.sample(20_000, random_state=1)).statistic > 0.5


def test_calibration_recovers_skew_and_predicts_both_tails(rng):
    m = 4000
    distance, zeros = np.repeat([0, 8], m // 2), np.zeros(m)
    z = 0.7 * TwoPieceT(np.array([6.0]), 1.5).quantile(rng.uniform(size=m))
    found = Calibration.fit(z, zeros, 0.1 * rng.normal(size=m), rng.normal(size=(m, 3)) * 0.1, distance)
    assert np.exp(found.log_skew) == pytest.approx(1.5, rel=0.06)
    factors, df = found.apply(zeros, zeros, np.zeros((m, 1, 3)))
    fresh = 0.7 * TwoPieceT(np.array([6.0]), 1.5).quantile(rng.uniform(size=m))
    below = found.family(df).cdf(fresh / factors[:, 0])
    for level in (0.05, 0.25, 0.5, 0.75, 0.95):
        assert (below <= level).mean() == pytest.approx(level, abs=0.025)


def test_a_prediction_with_weight_two_counts_as_two(rng):
    m = 900
    distance = np.repeat([0, 8, 64], m // 3)
    arguments = [np.zeros(m), 0.5 * np.log1p(distance), rng.normal(size=(m, 3)) * 0.1, distance]
    z, twice = 1.5 * rng.standard_t(5, size=m), rng.uniform(size=m) < 0.4
    again = np.concatenate([np.arange(m), np.flatnonzero(twice)])
    weighted = Calibration.fit(z, *arguments, weights=1.0 + twice)
    repeated = Calibration.fit(z[again], *(one[again] for one in arguments))
    factors, df = weighted.apply(arguments[0], arguments[1], arguments[2][:, None])
    theirs, their_df = repeated.apply(arguments[0], arguments[1], arguments[2][:, None])
    np.testing.assert_allclose(factors, theirs, rtol=1e-3)
    np.testing.assert_allclose(df, their_df, rtol=1e-2)


def test_turning_the_target_over_turns_the_skew_over(rng):
    m = 2000
    arguments = np.zeros(m), 0.1 * rng.normal(size=m), rng.normal(size=(m, 3)) * 0.1, np.repeat([0, 8], m // 2)
    z = rng.gamma(2.0, size=m) - 2.0
    one, other = Calibration.fit(z, *arguments), Calibration.fit(-z, *arguments)
    assert one.log_skew > 0.1
    assert one.log_skew == pytest.approx(-other.log_skew, abs=1e-3)
