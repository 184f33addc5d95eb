"""Random kernels, points and partitions for property tests."""

import numpy as np
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from compositegp import OnColumns

positive = st.floats(0.3, 3.0)
seeds = st.integers(0, 2**32 - 1)


@st.composite
def length_scales(draw, d):
    return draw(st.one_of(positive, st.lists(positive, min_size=d, max_size=d)))


@st.composite
def leaves(draw, d):
    kind = draw(st.integers(0, 6))
    if kind == 0:
        return RBF(draw(length_scales(d)))
    if kind == 1:
        return Matern(draw(length_scales(d)), nu=draw(st.sampled_from([0.5, 1.5, 2.5, np.inf])))
    if kind == 2:
        return RationalQuadratic(draw(positive), alpha=draw(positive))
    if kind == 3:
        # Positive definite on one column only.
        return OnColumns(ExpSineSquared(draw(positive), periodicity=draw(positive)), draw(st.integers(0, d - 1)))
    if kind == 4:
        return DotProduct(draw(positive))
    if kind == 5:
        return ConstantKernel(draw(positive))
    return OnColumns(RBF(draw(positive)), [draw(st.integers(0, d - 1))])


@st.composite
def latent_kernels(draw, d):
    kernel = draw(positive) * draw(leaves(d))
    for _ in range(draw(st.integers(0, 2))):
        kernel = kernel + draw(leaves(d)) if draw(st.booleans()) else kernel * draw(leaves(d))
    return kernel


@st.composite
def noisy_kernels(draw, d):
    return draw(latent_kernels(d)) + WhiteKernel(draw(st.floats(0.05, 1.0)))


@st.composite
def problems(draw, max_n=24, max_m=6):
    """A kernel with noise, points, data drawn at random, and test points that are not too close."""
    d = draw(st.integers(1, 3))
    n = draw(st.integers(1, max_n))
    m = draw(st.integers(1, max_m))
    rng = np.random.default_rng(draw(seeds))
    kernel = draw(noisy_kernels(d))
    X = rng.uniform(-2, 2, size=(n, d))
    Z = rng.uniform(-2, 2, size=(m, d))
    return kernel, X, rng.normal(size=n), Z


@st.composite
def partitions(draw, n):
    labels = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    return [np.flatnonzero(np.asarray(labels) == label) for label in sorted(set(labels))]
