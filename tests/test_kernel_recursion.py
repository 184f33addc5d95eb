"""The running average of a kernel over segments of new values: the paper's recursion, safe in any chunks."""

import copy
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from compositegp.forecasting import CompositeGPForecaster
from compositegp.forecasting.horizon_terms import Geometry, covariances, cut_windows
from compositegp.forecasting.kernel_recursion import KernelRecursion
from compositegp.forecasting.memory import fisher_information, learn_memory, prior_precision
from compositegp.forecasting.whole_past import WholePast
from compositegp.learning import Average, RecursiveEstimate

BOUNDS = (1e-4, 1e4)
KERNEL = ConstantKernel(1.3, BOUNDS) * Matern(7.0, BOUNDS, nu=1.5) + WhiteKernel(0.2, BOUNDS)
BLOCK, REACH = 12, 40


def drawn(n, seed, kernel=KERNEL):
    noise = np.random.default_rng(seed).normal(size=n)
    return np.linalg.cholesky(kernel(np.arange(float(n))[:, None])) @ noise


def dense_slopes(kernel, n):
    """∂K / ∂θ by scikit-learn: shape (p, n, n)."""
    return np.moveaxis(kernel(np.arange(float(n))[:, None], eval_gradient=True)[1], 2, 0)


def fisher_of(points, kernel, slopes):
    """½ tr(K⁻¹ ∂K K⁻¹ ∂K) of some points."""
    K = kernel(np.arange(float(slopes.shape[1]))[:, None])[np.ix_(points, points)]
    solved = [np.linalg.solve(K, slope[np.ix_(points, points)]) for slope in slopes]
    return 0.5 * np.array([[np.trace(a @ b) for b in solved] for a in solved])


def test_the_information_of_windows_is_that_of_their_terms():
    """Of (past and step, weight 1) and (past, weight −1), each by the textbook's formula."""
    y, starts = drawn(60, 0), [15, 30, 44]
    y[[33, 28]] = np.nan  # a step of the second window, and a value of its past
    geometry = Geometry(np.array([1, 2, 5, 9]), np.array([0, 3]))
    slopes, expected = dense_slopes(KERNEL, 60), np.zeros((3, 3))
    for start in starts:
        past = start - geometry.lags
        past = past[np.isfinite(y[past])]
        for step in start + geometry.steps:
            if np.isfinite(y[step]):
                expected += fisher_of(np.append(past, step), KERNEL, slopes) - fisher_of(past, KERNEL, slopes)
    found = fisher_information(KERNEL, cut_windows(y, starts, geometry, 10, 10))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_the_information_of_a_whole_past_is_that_of_its_likelihood(rng):
    y = drawn(30, 0)
    y[[4, 11]] = np.nan
    functions = rng.normal(size=(30, 2))
    at = np.flatnonzero(np.isfinite(y))
    K = (KERNEL(np.arange(30.0)[:, None]) + 0.7 * functions @ functions.T)[np.ix_(at, at)]
    solved = [np.linalg.solve(K, slope[np.ix_(at, at)]) for slope in dense_slopes(KERNEL, 30)]
    expected = 0.5 * np.array([[np.trace(a @ b) for b in solved] for a in solved])
    found = fisher_information(KERNEL, [WholePast(y, functions, 0.7)])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def begun(kernel, information, segment):
    average = Average.known(kernel.theta, information, 1, 0.0)
    return KernelRecursion(average, np.full(3, 0.1), np.arange(BLOCK), BLOCK, segment, REACH)


def test_it_is_the_papers_average_where_segments_know_their_own_maximum():
    """θ̄ ← (Λ + J)⁻¹ (Λ θ̄ + J θ̂), with θ̂ learned from each segment alone."""
    count, segment = 4, 50 * BLOCK
    y = drawn(REACH + count * segment, 1)
    lags = np.arange(1, REACH + 1)
    kernel, information = KERNEL, np.eye(3)
    recursion = begun(kernel, information, segment)
    paper = RecursiveEstimate.empty(3).add(kernel.theta, information)
    for number in range(count):
        first = number * segment
        part = y[first : first + REACH + segment]
        windows = cut_windows(part, np.arange(REACH, len(part), BLOCK), Geometry(lags, np.arange(BLOCK)), 1, 0)
        own = learn_memory(KERNEL, windows).kernel
        paper = paper.add(own.theta, fisher_information(own, windows))
        before = kernel
        kernel, recursion, ratio = recursion.take_in(kernel, lags, part, first, BLOCK)
        assert recursion.until == REACH + (number + 1) * segment
        squares = [
            np.mean([one.mean_square(covariances(k, REACH + BLOCK)) for one in windows]) for k in (kernel, before)
        ]
        assert ratio == pytest.approx(squares[0] / squares[1], rel=1e-9)
    errors = paper.standard_errors
    np.testing.assert_allclose(recursion.average.estimate.precision, paper.precision, rtol=0.15, atol=30)
    assert (np.abs(kernel.theta - paper.theta) < 0.5 * errors).all()
    assert (np.abs(kernel.theta - KERNEL.theta) < 8 * errors).all()  # terms of a horizon err alike
    assert recursion.average.n_segments == 1 + count
    assert (recursion.standard_errors < 0.05).all()


def test_with_much_information_before_a_segment_changes_nothing():
    y = drawn(REACH + 10 * BLOCK, 2)
    recursion = begun(KERNEL, 1e9 * np.eye(3), 10 * BLOCK)
    kernel, recursion, ratio = recursion.take_in(KERNEL, np.arange(1, REACH + 1), y, 0, BLOCK)
    np.testing.assert_allclose(kernel.theta, KERNEL.theta, rtol=0, atol=1e-5)
    np.testing.assert_allclose(recursion.standard_errors, 0.1, rtol=1e-5)
    assert ratio == pytest.approx(1.0, abs=1e-4)


def test_the_ratio_is_that_of_the_variances():
    """A series that is twice as large, with nothing known before: its errors are restated over four times v."""
    small = KERNEL.clone_with_theta(KERNEL.theta - np.array([np.log(4), 0.0, np.log(4)]))
    y = drawn(REACH + 40 * BLOCK, 3)
    recursion = begun(small, np.diag([0.0, 1e9, 0.0]), 40 * BLOCK)
    kernel, _, ratio = recursion.take_in(small, np.arange(1, REACH + 1), y, 0, BLOCK)
    horizons = cut_windows(y, np.arange(REACH, len(y), BLOCK), Geometry(np.arange(1, 41), np.arange(BLOCK)), 1, 0)
    squares = [horizons[0].mean_square(covariances(one, 60)) for one in (kernel, small)]
    assert ratio == pytest.approx(squares[0] / squares[1])
    assert squares[0] == pytest.approx(1.0, abs=0.1)
    assert 0.2 < ratio < 0.3


def test_a_segment_without_values_is_counted_and_left_out():
    recursion = begun(KERNEL, np.eye(3), 2 * BLOCK)
    kernel, found, ratio = recursion.take_in(
        KERNEL, np.arange(1, REACH + 1), np.full(REACH + 2 * BLOCK, np.nan), 0, BLOCK
    )
    assert kernel is KERNEL
    assert (found.average.n_segments, found.average.n_left_out, ratio) == (2, 1, 1.0)
    assert found.until == REACH + 2 * BLOCK


def series(parts, seed=0):
    """Hourly values of processes that follow each other, each from its kernel."""
    values = np.concatenate([drawn(n, seed + number, kernel) for number, (n, kernel) in enumerate(parts)])
    return pd.Series(10 + values, pd.date_range("2024-01-01", periods=len(values), freq="h"))


CALM = ConstantKernel(1.0) * Matern(30.0, nu=0.5) + WhiteKernel(0.1)
NOISY = ConstantKernel(1.0) * Matern(30.0, nu=0.5) + WhiteKernel(0.8)


def fitted_to(y):
    return CompositeGPForecaster(None, seasons=[], search=False, n_neighbors=80).fit(y)


def noise_of(model):
    return model.parts_["noise"].noise_level


class TestForecaster:
    def test_a_kernel_that_does_not_change_stays_within_its_errors(self):
        y = series([(24 * 60, CALM), (24 * 56, CALM)])
        before = fitted_to(y[: 24 * 60])
        model = copy.deepcopy(before).update(y[24 * 60 :], learn=True)
        known = before.theta_standard_errors_ < 0.5
        assert known.sum() >= 3
        change = np.abs(model.kernel_.theta - before.kernel_.theta)
        assert change[known].max() > 0
        assert (change[known] < 3 * before.theta_standard_errors_[known]).all()
        assert (model.theta_standard_errors_[known] < before.theta_standard_errors_[known]).all()
        assert "averaged over the fit and 8 later segment(s)" in "\n".join(model.describe())
        assert "later segment" not in "\n".join(before.describe())

    def test_it_moves_to_a_kernel_that_changes_and_bands_follow(self):
        y = series([(24 * 60, CALM), (24 * 84, NOISY)])
        begin, end = 24 * 60, len(y) - 24 * 28
        model, frozen = fitted_to(y[:begin]), fitted_to(y[:begin])
        far = [abs(np.log(noise_of(model) / 0.8))]
        for start in range(begin, end, 24 * 28):
            model.update(y[start : start + 24 * 28], learn=True)
            far.append(abs(np.log(noise_of(model) / 0.8)))
        assert far[0] > 1.5
        assert far[-1] < 0.25 * far[0]
        frozen.update(y[begin:end])
        assert noise_of(frozen) == noise_of(fitted_to(y[:begin]))
        # The next four weeks, one day at a time.
        inside, scores = [], {"learned": [], "frozen": []}
        for start in range(end, len(y), 24):
            now = y[start : start + 24]
            for name, one in (("learned", model), ("frozen", frozen)):
                found = one.predict_distribution(24, joint=False)
                scores[name].append(found.crps(now.to_numpy())[:3])
                if name == "learned":
                    inside.append(np.abs(2 * found.cdf(now.to_numpy()) - 1) < 0.8)
                one.update(now, learn=name == "learned")
        assert 0.7 < np.mean(inside) < 0.9
        assert np.mean(scores["learned"]) < np.mean(scores["frozen"])  # soon after the origin, where noise matters

    @pytest.mark.parametrize("whole", [False, True])
    def test_it_does_not_matter_in_how_many_parts_rows_arrive(self, tmp_path, whole):
        rng = np.random.default_rng(5)
        neighbors, size_of_all = (200, 210) if whole else (40, 500)
        y = series([(size_of_all, CALM)])
        y.iloc[150 + rng.choice(size_of_all - 151, 20 - 16 * whole, replace=False)] = np.nan
        y.iloc[180 : 190 if whole else 230] = np.nan
        fitted = CompositeGPForecaster(None, horizon=6, n_neighbors=neighbors, search=False).fit(y[:150])
        found = set()
        for number, size in enumerate((1, 31, 500)):
            model = copy.deepcopy(fitted)
            for start in range(150, size_of_all, size):
                part = y[start : start + size].dropna()
                if len(part):
                    model.update(part, learn=True)
                    if number == 1:  # as after a process was killed
                        model.save(tmp_path / "model.cgp")
                        model = CompositeGPForecaster.load(tmp_path / "model.cgp")
            model.save(tmp_path / "model.cgp")
            with zipfile.ZipFile(tmp_path / "model.cgp") as archive:
                found.add(tuple(archive.read(name) for name in sorted(archive.namelist())))
        assert len(found) == 1
        assert not np.array_equal(model.kernel_.theta, fitted.kernel_.theta)
        assert len(model._series.grid.values) < 2 * 150 + 6 + 42 + 6

    def test_rows_that_were_passed_over_teach_nothing_later(self):
        y = series([(24 * 50, CALM)])
        model = CompositeGPForecaster(None, horizon=6, seasons=[], n_neighbors=40, search=False).fit(y[:600])
        theta = model.kernel_.theta
        model.update(y[600:800])
        model.update(y[800:830], learn=True)  # less than a segment
        np.testing.assert_array_equal(model.kernel_.theta, theta)
        model.update(y[830:850], learn=True)
        assert (model.kernel_.theta != theta).any()
        with pytest.raises(ValueError, match="learn must be True or False; found 'yes'"):
            model.update(y[850:860], learn="yes")

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("information", lambda v: v - 1e6 * np.eye(len(v))),
            ("standard_errors", lambda v: -v - 1),
            ("steps", lambda v: v + 1000),
            ("apart", lambda v: 0),
            ("segment", lambda v: 10**6),
            ("until", lambda v: v + 1),
        ],
    )
    def test_numbers_of_a_file_that_no_model_has_are_refused(self, name, value):
        from compositegp.forecasting.stored_series import from_values, to_values

        content = to_values(fitted_to(series([(400, CALM)]))._series)
        from_values(**content)
        numbers = content["series"]["recursion"]
        numbers[name] = value(numbers[name])
        with pytest.raises(ValueError, match=r"information|out of range|until|must be"):
            from_values(**content)


def test_lengths_and_variances_have_their_own_freedom():
    np.testing.assert_allclose(np.diag(prior_precision(KERNEL, 0.5)), [1 / 1.5**2, 1 / 0.5**2, 1 / 1.5**2])
