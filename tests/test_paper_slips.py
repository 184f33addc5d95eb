"""The slips of Liu et al. (2018): the printed formula, the corrected one, and what is true.

docs/theory.md tells readers; each test here is named there.
"""

import numpy as np
import pytest
from oracles import exact_gp
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, ExpSineSquared, Matern, WhiteKernel

from compositegp import Composite, fisher_information, posterior
from compositegp.analysis import compare
from compositegp.paper import section_5, spatial, time_series

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


def draw(kernel, X, Z, rng, size):
    """Draws of the noise-free z and of the observations y, from the model."""
    points = np.concatenate([Z, X])
    covariance = kernel(points, points)
    covariance[len(Z) :, len(Z) :] = kernel(X)
    drawn = rng.multivariate_normal(np.zeros(len(points)), covariance, size=size)
    return drawn[:, : len(Z)], drawn[:, len(Z) :]


def test_slip_1_mse_bound(rng):
    """The least error that is measured is the corrected bound, 17 times the printed one."""
    X, Z = rng.uniform(0, 5, size=(15, 1)), np.array([[2.5]])
    report = compare(KERNEL, X, Z, Composite.full(15))
    corrected = KERNEL(Z, Z)[0, 0] * np.exp(-2 * information(KERNEL, X, Z))
    printed = corrected / (2 * np.pi * np.e)
    np.testing.assert_allclose(report.exact_variance[0], corrected, rtol=1e-8)  # attained, as the paper says
    z, y = draw(KERNEL, X, Z, rng, 20_000)
    squares = (z[:, 0] - y @ posterior(KERNEL, X, np.eye(15), Z, Composite.full(15)).mean[0]) ** 2
    error = squares.std() / np.sqrt(len(squares))
    assert abs(squares.mean() - corrected) < 4 * error
    assert abs(squares.mean() - printed) > 50 * error


def test_slip_2_block_of_theorem_2(rng):
    """The excess error by the printed block is not that of `analysis`, nor that which is measured."""
    X, Z = np.sort(rng.uniform(0, 5, size=(14, 1)), axis=0), np.array([[2.2]])
    example = section_5.Example("two halves", KERNEL, X, Z, 2)
    excess = example.compare().excess_mse[0]
    assert section_5.printed_excess(example, corrected=True) == pytest.approx(excess, rel=1e-6)
    assert section_5.printed_excess(example) > 2 * excess
    _, y = draw(KERNEL, X, Z, rng, 20_000)
    exact, composite = (
        posterior(KERNEL, X, np.eye(14), Z, terms).mean[0] for terms in (Composite.full(14), example.composite)
    )
    squares = (y @ (exact - composite)) ** 2
    error = squares.std() / np.sqrt(len(squares))
    assert abs(squares.mean() - excess) < 4 * error
    assert abs(squares.mean() - section_5.printed_excess(example)) > 20 * error


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
        segments = np.array_split(np.arange(24), 4)
        exact, summed, _, gain = self.quantities(kernel, X, Z, segments)
        assert summed > exact
        assert gain < exact
        found = compare(kernel, X, Z, Composite.marginal(segments))  # what the library says of it
        assert found.information_sum > found.information_exact > found.information_composite
        np.testing.assert_allclose(
            [found.information_exact, found.information_sum, found.information_composite],
            [exact, summed, gain],
            rtol=0,
            atol=1e-7,
        )


def test_slip_4_size_of_the_test_set():
    grid, held = spatial.held_out_box()
    assert len(grid) == 64 * 64
    assert (~held).sum() == 3840  # as in the paper
    assert held.sum() == 256  # the paper says 512
    np.testing.assert_array_equal(np.ptp(grid[held], axis=0), [15, 15])


def test_slip_5_error_covariance_of_a_segment(rng):
    """Errors of estimates spread as the inverse of the Fisher information, not as the Fisher information."""
    X = np.arange(400.0)[:, None]
    kernel = ConstantKernel(1.0) * RBF(2.0, "fixed")
    information_ = float(fisher_information(kernel, X)[0, 0])
    root = np.linalg.cholesky(kernel(X) + 1e-10 * np.eye(400))
    y = root @ rng.standard_normal((400, 300))
    whitened = np.linalg.solve(root, y)
    estimates = np.log(np.mean(whitened**2, axis=0))  # maximum likelihood of ln α², in closed form
    spread = estimates.var(ddof=1)
    assert spread == pytest.approx(1 / information_, rel=0.3)
    assert spread < 0.01 * information_


def test_slip_6_the_noise_is_not_a_constant_covariance(rng):
    """Section 2 has independent errors: then distant observations have the covariance of f, without σ²_ε."""
    t = np.array([[0.0], [37.0]])
    latent = 1.0 * ExpSineSquared(1.0, 128.0) + 1.0 * RBF(20 / np.sqrt(2))
    f = np.linalg.cholesky(latent(t)) @ rng.standard_normal((2, 200_000))
    y = f + np.sqrt(0.1) * rng.standard_normal(f.shape)
    products = y[0] * y[1]
    error = products.std() / np.sqrt(products.size)
    assert abs(products.mean() - time_series.KERNEL(t)[0, 1]) < 4 * error
    assert abs(products.mean() - (latent(t)[0, 1] + 0.1)) > 10 * error  # as printed


def test_slip_7_the_mean_of_a_segment_depends_on_z(rng):
    """E[y given z] = μ_y + Σ_yz Σ_zz⁻¹ (z − μ_z): printed with the mean of the belief in the place of z."""
    X, Z = rng.uniform(0, 5, size=(4, 1)), np.array([[1.0], [4.0]])
    z, y = draw(KERNEL, X, Z, rng, 100_000)
    slopes = np.linalg.lstsq(z, y, rcond=None)[0].T  # of the regression of y on z
    H = KERNEL(X, Z) @ np.linalg.inv(KERNEL(Z, Z))
    np.testing.assert_allclose(slopes, H, rtol=0, atol=0.02)
    assert np.abs(H).max() > 0.2  # zero, if the printed formula were right: it has no z


def test_slip_8_the_least_loss_is_not_zero(rng):
    """L(q) = D(q ‖ exp(−ℓ) p) has its minimum −ln p(y_1:K) at the CGP's posterior: exp(−ℓ) p is no density."""
    X, Z = rng.uniform(0, 5, size=(12, 1)), np.array([[1.0], [4.0]])
    segments = np.array_split(np.arange(12), 3)
    _, (y,) = draw(KERNEL, X, Z, rng, 1)
    best = posterior(KERNEL, X, y, Z, Composite.marginal(segments))
    marginal = multivariate_normal(np.zeros(12), composite_marginal_covariance(KERNEL, X, Z, segments))
    prior = multivariate_normal(np.zeros(2), KERNEL(Z, Z))

    def loss(mean, covariance):
        """The average loss, and its standard error, by draws from q."""
        q = multivariate_normal(mean, covariance)
        z = q.rvs(20_000, random_state=rng)
        values = q.logpdf(z) - prior.logpdf(z)
        for part in segments:
            H = KERNEL(X[part], Z) @ np.linalg.inv(KERNEL(Z, Z))
            given = KERNEL(X[part]) - H @ KERNEL(Z, X[part])
            values -= multivariate_normal(cov=given).logpdf(y[part] - z @ H.T)
        return values.mean(), values.std() / np.sqrt(len(values))

    least, error = loss(best.mean, best.covariance)
    assert error < 1e-6  # the integrand is a constant: q is proportional to exp(−ℓ) p
    assert least == pytest.approx(-marginal.logpdf(y), rel=1e-6)
    assert abs(least) > 1  # zero, if the printed minimum were right
    for mean, covariance in ((best.mean + 0.3, best.covariance), (best.mean, 2 * best.covariance)):
        other, error = loss(mean, covariance)
        assert other > least + 4 * error


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
