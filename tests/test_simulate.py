"""Simulated fields have the kernel's covariance."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, ExpSineSquared, Matern, WhiteKernel

from compositegp import simulate
from compositegp.simulate import stationary_field


@pytest.mark.parametrize(
    ("kernel", "shape", "spacing"),
    [
        (2.0 * Matern(3.0, nu=1.5), 12, 1.0),
        (RBF(2.0) + WhiteKernel(0.5), 10, 0.5),
        (ConstantKernel(0.5) * RBF([2.0, 4.0]), (5, 4), (1.0, 2.0)),
        (Matern(6.0, nu=0.5), (4, 5), 1.0),
        (RBF(10.0), 9, 1.0),  # needs a larger torus
    ],
    ids=str,
)
def test_draws_have_the_covariance_of_the_kernel(kernel, shape, spacing):
    n = 20_000
    fields = stationary_field(kernel, shape, spacing=spacing, n_draws=n, random_state=0)
    sizes = np.atleast_1d(shape)
    assert fields.shape == (n, *sizes)
    steps = np.broadcast_to(spacing, len(sizes))
    ticks = [step * np.arange(size) for step, size in zip(steps, sizes, strict=True)]
    points = np.stack(np.meshgrid(*ticks, indexing="ij"), -1).reshape(-1, len(sizes))
    expected = kernel(points)
    flat = fields.reshape(n, -1)
    found = flat.T @ flat / n
    variances = np.outer(np.diagonal(expected), np.diagonal(expected))
    error = np.sqrt((variances + expected**2) / n)
    assert np.abs((found - expected) / error).max() < 4.5
    assert np.abs(flat.mean(axis=0) / np.sqrt(np.diagonal(expected) / n)).max() < 4.5


def test_draws_are_independent_and_repeatable():
    a = stationary_field(RBF(1.0), 50, n_draws=3, random_state=1)
    np.testing.assert_array_equal(a, stationary_field(RBF(1.0), 50, n_draws=3, random_state=1))
    many = stationary_field(RBF(1.0), 2, n_draws=20_000, random_state=0)
    pairs = many[0::2, 0] * many[1::2, 0]  # the real and imaginary parts of one transform
    assert abs(pairs.mean()) < 4 / np.sqrt(len(pairs))


def test_a_large_grid_is_drawn():
    kernel = Matern(20.0, nu=1.5)
    (field,) = stationary_field(kernel, (512, 512), random_state=0)
    for lag in (1, 4, 10):
        expected = 1 - kernel([[0.0]], [[float(lag)]])[0, 0]
        for steps in (field[lag:] - field[:-lag], field[:, lag:] - field[:, :-lag]):
            # Of one field of some hundred ranges the semivariance has a standard error of 4 %.
            assert 0.5 * np.mean(steps**2) == pytest.approx(expected, rel=0.12)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((DotProduct(), 5), {}, "not stationary"),
        ((RBF(), (2, 2, 2)), {}, "one or two numbers"),
        ((RBF(), 0), {}, "shape must be"),
        ((RBF(), 5), {"spacing": 0.0}, "spacing must be positive"),
        ((RBF(), 5), {"n_draws": 0}, "n_draws must be"),
        ((ExpSineSquared(1.0, 7.3), 50), {}, "no non-negative circulant embedding"),
    ],
)
def test_bad_arguments_of_stationary_field_are_named(arguments, options, message, monkeypatch):
    monkeypatch.setattr(simulate, "_MOST_POINTS", 2**16)
    with pytest.raises(ValueError, match=message):
        stationary_field(*arguments, **options)
