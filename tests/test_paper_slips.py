"""The slips of Liu et al. (2018): the printed formula, the corrected one, and what is true.

docs/theory.md tells readers; each test here is named there.
"""

import numpy as np
import pytest
from oracles import exact_gp
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel

from compositegp import Composite, posterior
from compositegp.paper import spatial

KERNEL = Matern(1.5, nu=1.5) + WhiteKernel(0.1)


def information(kernel, X, Z):
    """I(z; y) = ½ (ln det Σ_zz − ln det Σ_z|y)."""
    _, covariance = exact_gp(kernel, X, np.zeros(len(X)), Z)
    return 0.5 * (np.linalg.slogdet(kernel(Z, Z))[1] - np.linalg.slogdet(covariance)[1])


def total_correlation(covariance, segments):
    return 0.5 * (
        sum(np.linalg.slogdet(covariance[np.ix_(part, part)])[1] for part in segments)
        - np.linalg.slogdet(covariance)[1]
    )


def composite_marginal_covariance(kernel, X, Z, segments):
    """Covariance of y under p(y_1:K) = ∫ p(z) Π p(y_k | z) dz: the segments are tied by z alone."""
    covariance = kernel(X, Z) @ np.linalg.solve(kernel(Z, Z), kernel(Z, X))
    for part in segments:
        covariance[np.ix_(part, part)] = kernel(X[part])
    return covariance


def test_slip_1_mse_bound(rng):
    X, Z = rng.uniform(0, 5, size=(15, 1)), np.array([[2.5]])
    _, covariance = exact_gp(KERNEL, X, np.zeros(15), Z)
    prior_variance = KERNEL(Z, Z)[0, 0]
    corrected = prior_variance * np.exp(-2 * information(KERNEL, X, Z))
    printed = corrected / (2 * np.pi * np.e)
    np.testing.assert_allclose(corrected, covariance[0, 0])  # the GP attains it, as the paper says
    assert printed < 0.06 * covariance[0, 0]


def test_slip_2_block_of_theorem_2(rng):
    X = rng.uniform(0, 5, size=(14, 1))
    S = KERNEL(X)
    S11, S12, S21, S22 = S[:6, :6], S[:6, 6:], S[6:, :6], S[6:, 6:]
    inverse11 = np.linalg.inv(S11)
    conditional = S22 - S21 @ inverse11 @ S12
    printed = inverse11 @ S12 @ np.linalg.solve(conditional, S21 @ inverse11)
    corrected = inverse11 + printed
    truth = np.linalg.inv(S)[:6, :6]
    np.testing.assert_allclose(corrected, truth, rtol=0, atol=1e-9)
    assert np.abs(printed - truth).max() > 0.1


class TestSlip3InformationGain:
    X = np.arange(12.0)[:, None]
    Z = np.array([[12.0], [13.0], [14.0]])
    segments = [np.arange(0, 4), np.arange(4, 8), np.arange(8, 12)]

    def quantities(self, kernel, X=None, Z=None, segments=None):
        X, Z = self.X if X is None else X, self.Z if Z is None else Z
        segments = self.segments if segments is None else segments
        belief = posterior(kernel, X, np.zeros(len(X)), Z, Composite.marginal(segments))
        exact = information(kernel, X, Z)
        summed = sum(information(kernel, X[part], Z) for part in segments)
        T = total_correlation(composite_marginal_covariance(kernel, X, Z, segments), segments)
        gain = 0.5 * (np.linalg.slogdet(kernel(Z, Z))[1] - np.linalg.slogdet(belief.covariance)[1])
        return exact, summed, T, gain

    def test_the_gain_is_the_sum_less_the_total_correlation(self):
        for length_scale in (0.5, 2.0, 5.0):
            _, summed, T, gain = self.quantities(Matern(length_scale, nu=1.5) + WhiteKernel(0.1))
            assert T >= 0
            np.testing.assert_allclose(gain, summed - T, rtol=1e-8)

    def test_the_gain_is_the_mean_divergence_of_drawn_data(self, rng):
        """E over the composite's own marginal of D(p_CGP ‖ p)."""
        kernel = Matern(5.0, nu=1.5) + WhiteKernel(0.1)
        _, summed, _, gain = self.quantities(kernel)
        K_zz = kernel(self.Z, self.Z)
        covariance = composite_marginal_covariance(kernel, self.X, self.Z, self.segments)
        draws = rng.multivariate_normal(np.zeros(12), covariance, size=40_000)
        composite = Composite.marginal(self.segments)
        # The mean is linear in the data: its coefficients are the means for unit vectors.
        weights = np.stack([posterior(kernel, self.X, e, self.Z, composite).mean for e in np.eye(12)], axis=1)
        belief = posterior(kernel, self.X, np.zeros(12), self.Z, composite)
        means = draws @ weights.T
        divergences = 0.5 * (
            np.trace(np.linalg.solve(K_zz, belief.covariance))
            + np.einsum("im,mn,in->i", means, np.linalg.inv(K_zz), means)
            - 3
            + np.linalg.slogdet(K_zz)[1]
            - np.linalg.slogdet(belief.covariance)[1]
        )
        error = divergences.std() / np.sqrt(len(divergences))
        assert abs(divergences.mean() - gain) < 4 * error
        assert abs(divergences.mean() - summed) > 20 * error  # the printed formula

    def test_the_printed_sign_can_be_wrong(self):
        """Printed: redundant, hence over-confident. True: the composite gains less than the exact GP."""
        kernel = RBF(1.0) + WhiteKernel(0.1)
        X = np.linspace(0, 4, 24)[:, None]
        Z = np.array([[0.9], [2.0], [3.1]])
        exact, summed, _, gain = self.quantities(kernel, X, Z, np.array_split(np.arange(24), 4))
        assert summed > exact
        assert gain < exact


def test_slip_4_size_of_the_test_set():
    grid, held = spatial.held_out_box()
    assert len(grid) == 64 * 64
    assert (~held).sum() == 3840  # as in the paper
    assert held.sum() == 256  # the paper says 512
    np.testing.assert_array_equal(np.ptp(grid[held], axis=0), [15, 15])


def test_theorem_2_with_the_corrected_block_is_the_excess_mse(rng):
    """The paper's K = 2 coefficient blocks against the linear coefficients of the composite mean."""
    X, Z = rng.uniform(0, 5, size=(14, 1)), np.array([[2.2]])
    first, second = np.arange(6), np.arange(6, 14)
    S, S_z = KERNEL(X), KERNEL(Z, X)[0]
    prior_variance = KERNEL(Z, Z)[0, 0]
    inverse11 = np.linalg.inv(S[:6, :6])
    tilde21 = np.outer(S_z[6:], S_z[:6]) / prior_variance
    tilde_conditional = S[6:, 6:] - tilde21 @ inverse11 @ tilde21.T
    ratio = (prior_variance - S_z[:6] @ inverse11 @ S_z[:6]) / prior_variance
    primed = np.zeros((14, 14))
    primed[:6, :6] = inverse11
    primed[6:, 6:] = ratio * np.linalg.inv(tilde_conditional)
    primed[6:, :6] = -primed[6:, 6:] @ tilde21 @ inverse11
    alpha = (np.linalg.inv(S) - primed).T @ S_z
    composite = Composite.marginal([first, second])
    weights = np.array([posterior(KERNEL, X, e, Z, composite).mean[0] for e in np.eye(14)])
    np.testing.assert_allclose(primed.T @ S_z, weights, rtol=0, atol=1e-9)
    difference = np.linalg.solve(S, S_z) - weights
    assert difference @ S @ difference == pytest.approx(alpha @ S @ alpha)
