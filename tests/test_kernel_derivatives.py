"""Covariances of derivatives against finite differences of scikit-learn's kernels."""

import numpy as np
import pytest
from array_api_compat import array_namespace
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)
from strategies import positive, seeds

from compositegp import OnColumns
from compositegp.backend import current_device, fetch
from compositegp.kernels import MaternOnSphere, OnSphere, RotatedMatern, derivative, gram

ARD = np.array([0.5, 1.0, 2.0])
SMOOTH = [
    ConstantKernel(2.0),
    WhiteKernel(0.3),
    RBF(0.8),
    RBF(ARD),
    Matern(0.8, nu=1.5),
    Matern(ARD, nu=1.5),
    Matern(0.8, nu=2.5),
    Matern(ARD, nu=2.5),
    Matern(ARD, nu=np.inf),
    RationalQuadratic(0.7, 1.3),
    ExpSineSquared(0.7, 1.3),
    OnColumns(ExpSineSquared(0.7, 1.3), 1),
    DotProduct(0.6),
    RBF(0.8) + WhiteKernel(0.1),
    2.0 * RBF(ARD) * Matern(0.5, nu=1.5) + ExpSineSquared(1.0, 0.9) * RBF(3.0) + WhiteKernel(0.1),
    Exponentiation(RBF(0.8) + 0.5, 3),
    Exponentiation(RBF(0.8), 1),
    (DotProduct(0.6) + 0.3) ** 2,
    OnColumns(Matern(ARD[:2], nu=1.5), [0, 2]) * OnColumns(RBF(0.4), 1),
    OnColumns(RBF(0.8), [1, 1]),
    OnColumns(RotatedMatern.at_angle(30.0, ratio=4.0, nu=2.5), [0, 1]),
    OnColumns(RotatedMatern.at_angle(80.0, ratio=2.0, nu=np.inf), [2, 1]) * RBF(2.0),
    OnColumns(OnSphere(RBF(1.0), radius=60.0), [0, 1]),
    OnColumns(MaternOnSphere(90.0, flattening=1.5, nu=2.5), [0, 1]),
    OnColumns(Matern(1.0, nu=0.5), 2) + RBF(1.0) * OnColumns(DotProduct(), [2, 0]),
]
COLUMNS = [None, 0, 1]  # the last of the kernels is rough in column 2
H = 1e-3


def moved(X, column, by):
    X = X.copy()
    X[:, column] += by
    return X


def difference(function, X, column):
    """Central difference of fourth order of a function of points."""
    near = function(moved(X, column, H)) - function(moved(X, column, -H))
    far = function(moved(X, column, 2 * H)) - function(moved(X, column, -2 * H))
    return (8 * near - far) / (12 * H)


def by_differences(kernel, X, Y, first, second):
    """Derivatives of scikit-learn's own kernel matrix."""
    if first is not None:
        return difference(lambda moved_X: by_differences(kernel, moved_X, Y, None, second), X, first)
    if second is not None:
        return difference(lambda moved_Y: kernel(X, moved_Y), Y, second)
    return kernel(X, Y)


@pytest.mark.parametrize("kernel", SMOOTH, ids=str)
def test_equals_finite_differences(kernel, rng, device):
    X, Y = rng.normal(size=(7, 3)), rng.normal(size=(5, 3))
    here = current_device()
    send = (lambda A: A) if here is None else here.send
    for first in COLUMNS:
        for second in COLUMNS:
            found = derivative(kernel, send(X), send(Y), first, second)
            assert array_namespace(found) is array_namespace(send(X))
            expected = by_differences(kernel, X, Y, first, second)
            np.testing.assert_allclose(fetch(found), expected, rtol=1e-7, atol=1e-7 * (1 + np.abs(expected).max()))


@pytest.mark.parametrize("kernel", SMOOTH, ids=str)
def test_batches_are_sets_side_by_side(kernel, rng):
    X, Y = rng.normal(size=(2, 4, 3)), rng.normal(size=(2, 5, 3))
    for first in COLUMNS:
        for second in COLUMNS:
            each = [derivative(kernel, x, y, first, second) for x, y in zip(X, Y, strict=True)]
            np.testing.assert_allclose(derivative(kernel, X, Y, first, second), each, rtol=1e-12, atol=1e-13)
            shared = [derivative(kernel, x, Y[0], first, second) for x in X]
            np.testing.assert_allclose(derivative(kernel, X, Y[0], first, second), shared, rtol=1e-12, atol=1e-13)


@given(length=positive, alpha=positive, period=positive, seed=seeds, far=st.booleans())
def test_variances_of_slopes(length, alpha, period, seed, far):
    """At one point: φ″ of the kernel as a function of the distance, from the textbook."""
    x = np.random.default_rng(seed).normal(size=(1, 2)) * (1e3 if far else 1.0)
    expected = [
        (RBF(length), 1 / length**2),
        (Matern(length, nu=2.5), 5 / 3 / length**2),
        (Matern(length, nu=1.5), 3 / length**2),
        (RationalQuadratic(length, alpha), 1 / length**2),
        (OnColumns(ExpSineSquared(length, period), 0), (2 * np.pi / period / length) ** 2),
    ]
    for kernel, variance in expected:
        np.testing.assert_allclose(derivative(kernel, x, x, 0, 0), [[variance]], rtol=1e-12)
        np.testing.assert_allclose(derivative(kernel, x, x, 0, 1), [[0.0]], rtol=0, atol=1e-12)
        np.testing.assert_allclose(derivative(kernel, x, x, 0, None), [[0.0]], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kernel", [k for k in SMOOTH if "nu=0.5" not in str(k)], ids=str)
def test_the_joint_covariance_of_values_and_slopes_is_positive(kernel, rng):
    if kernel == ExpSineSquared(0.7, 1.3):
        kernel = OnColumns(kernel, 0)  # a covariance on one column only
    X = rng.normal(size=(6, 3))
    K = np.block([[derivative(kernel, X, X, first, second) for second in COLUMNS] for first in COLUMNS])
    np.testing.assert_allclose(K, K.T, rtol=0, atol=1e-10 * np.abs(K).max())
    assert np.linalg.eigvalsh(K)[0] >= -1e-9 * np.abs(K).max()


def test_rough_and_unknown_kernels_say_so():
    x = np.zeros((1, 1))
    with pytest.raises(ValueError, match="nu=0.5.*derivative nowhere"):
        derivative(2.0 * Matern(1.0, nu=0.5), x, x, 0, None)
    with pytest.raises(ValueError, match="nu=2.2.*only nu=1.5, 2.5 and inf"):
        derivative(Matern(1.0, nu=2.2), x, x, 0, None)
    with pytest.raises(ValueError, match="PairwiseKernel.*no rule for derivatives"):
        derivative(RBF() + PairwiseKernel(metric="laplacian"), x, x, None, 0)
    kernel = PairwiseKernel(metric="laplacian")
    np.testing.assert_array_equal(derivative(kernel, x, x), gram(kernel, x, x))
