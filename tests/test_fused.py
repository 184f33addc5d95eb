"""Programs of one pass against NumPy: in Triton's interpreter here, and on a GPU where there is one."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from compositegp import Composite, segment, use_device
from compositegp.backend import current_device, fetch, points_within, radial_gram, radial_products
from compositegp.composite import Observations, total_score
from compositegp.kernels import gram, linearize
from compositegp.kernels.stationary import PROFILES
from compositegp.posteriors import NeighborSearch

pytest.importorskip("triton")
torch = pytest.importorskip("torch")

SMOOTHNESS = [0.5, 1.5, 2.5, math.inf]
ARD = [0.8, 1.3, 0.6]
KERNELS = [
    1.7 * Matern(ARD, nu=1.5) + WhiteKernel(0.3),
    1.7 * Matern(ARD, nu=0.5),
    ConstantKernel(1.7, "fixed") * Matern(0.9, nu=2.5) + WhiteKernel(0.3, "fixed"),
    1.7 * RBF(ARD) + 0.4 * RBF(3.0) + WhiteKernel(0.3),
    0.5 * (Matern(ARD, nu=1.5, length_scale_bounds="fixed") + WhiteKernel(0.1)),
    1.7 * RBF(ARD) * Matern(2.0, nu=0.5) + WhiteKernel(0.3),
    ConstantKernel(0.2) + RBF(0.7) ** 2,
]


@pytest.fixture
def fusing(monkeypatch):
    """A device on which the programs work: a GPU, or the processor by Triton's interpreter."""
    if torch.cuda.is_available():
        with use_device("cuda"):
            yield
    else:
        for module in ("backend.fused", "kernels.distances", "posteriors.neighbor_search"):
            monkeypatch.setattr(f"compositegp.{module}.is_fused", lambda A: not isinstance(A, np.ndarray))
        with use_device("cpu"):
            yield


def send(values):
    return current_device().send(values)


@pytest.mark.parametrize("smoothness", SMOOTHNESS)
@pytest.mark.parametrize("shape", [(2, 37, 3), (9, 17)])
def test_values_are_those_of_numpy(smoothness, shape, rng, fusing):
    X, Y = rng.normal(size=shape), rng.normal(size=(5, shape[-1]))
    X[..., 5, :] = X[..., 2, :]
    found, across = fetch(radial_gram(send(X), None, smoothness)), fetch(radial_gram(send(X), send(Y), smoothness))
    value = PROFILES[smoothness].value
    for b in np.ndindex(shape[:-2]):
        np.testing.assert_allclose(found[b], value(cdist(X[b], X[b], "sqeuclidean")), rtol=0, atol=1e-12)
        np.testing.assert_allclose(across[b], value(cdist(X[b], Y, "sqeuclidean")), rtol=0, atol=1e-12)
        np.testing.assert_array_equal(found[b], found[b].T)


@pytest.mark.parametrize(("smoothness", "n", "d"), [(0.5, 33, 1), (1.5, 33, 3), (2.5, 9, 17), (math.inf, 9, 2)])
def test_products_are_those_of_numpy(smoothness, n, d, rng, fusing):
    X, weights, vectors = rng.normal(size=(2, n, d)), rng.normal(size=(2, n, n)), rng.normal(size=(2, n, 2))
    X[0, 5] = X[0, 2]
    found = fetch(radial_products(send(X), smoothness, send(weights), send(vectors)))
    ones = send(np.ones((1, 1, 1))).expand(2, n, n)
    plain = fetch(radial_products(send(X), smoothness, ones, send(vectors)))
    differences = (X[:, :, None] - X[:, None]) ** 2
    value, slope = PROFILES[smoothness].value_and_slope(differences.sum(axis=-1))
    matrices = np.concatenate([value[:, None], slope[:, None] * np.moveaxis(differences, -1, 1)], axis=1)
    np.testing.assert_allclose(found, (weights[:, None] * matrices) @ vectors[:, None], rtol=0, atol=1e-12)
    np.testing.assert_allclose(plain, matrices @ vectors[:, None], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_kernels_of_kernels_are_those_of_scikit_learn(kernel, rng, fusing):
    X, cotangent, vectors = rng.normal(size=(17, 3)), rng.normal(size=(17, 17)), rng.normal(size=(17, 2))
    linearized = linearize(kernel, send(X))
    K, gradient = kernel(X, eval_gradient=True)
    np.testing.assert_allclose(fetch(linearized.value), K, rtol=0, atol=1e-12)
    np.testing.assert_allclose(fetch(gram(kernel, send(X))), K, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        fetch(linearized.pullback(send(cotangent))),
        np.einsum("ij,ijp->p", cotangent, gradient),
        rtol=0,
        atol=1e-10,
    )
    expected = np.einsum("ij,ijp,jm->pim", cotangent, gradient, vectors)
    np.testing.assert_allclose(
        fetch(linearized.products(send(cotangent), send(vectors))), expected, rtol=0, atol=1e-10
    )
    np.testing.assert_allclose(fetch(linearized.jacobian()), np.moveaxis(gradient, -1, 0), rtol=0, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("probes", [0, 2, -1])
def test_scores_are_those_of_numpy(probes, weighted, rng, fusing):
    X, y = rng.uniform(0, 3, size=(60, 3)), rng.normal(size=60)
    weights = rng.uniform(0.5, 2.0, size=60) if weighted else None
    data = Observations.checked(KERNELS[0], X, y, mean=None, noise_variance=0.1)
    data = Observations.of(data.kernel, data.mean, X, y, data.noise_variance, weights)
    segments = segment(X, 20)
    composite = Composite.conditional(segments, [[], segments[0][:9], segments[1][:9]])
    found = total_score(data, composite, np.zeros((0, 1)), probes=probes)
    with use_device(None):
        expected = total_score(data, composite, np.zeros((0, 1)), probes=probes)
    assert found.log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-12)
    np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-9)
    np.testing.assert_allclose(found.fisher, expected.fisher, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("capacity", [400, 20])
def test_points_within_a_distance_are_all_found(capacity, rng, fusing):
    points, tests = rng.normal(size=(300, 3)), rng.normal(size=(40, 3))
    bounds = rng.uniform(0.1, 2.0, size=40)
    found = points_within(send(points.T), send(tests.T), send(bounds), capacity)
    counts, positions, squares = map(fetch, found)
    expected = cdist(tests, points, "sqeuclidean")
    np.testing.assert_array_equal(counts, (expected <= bounds[:, None]).sum(axis=1))
    for number, row in enumerate(expected):
        kept = min(capacity, counts[number])
        some = positions[number, :kept]
        assert len(set(some)) == kept
        assert (row[some] <= bounds[number]).all()
        np.testing.assert_allclose(squares[number, :kept], row[some], rtol=1e-12)
        assert np.isinf(squares[number, kept:]).all()


@pytest.mark.parametrize("rank", ["enough", "too low"])
def test_the_nearest_of_many_are_those_of_the_tree(rank, rng, fusing, monkeypatch):
    monkeypatch.setattr("compositegp.posteriors.neighbor_search._MANY_POINTS", 400)
    monkeypatch.setattr("compositegp.posteriors.neighbor_search._SAMPLE", 100)
    if rank == "too low":  # then the bound is too near for some, and all their distances are looked at
        monkeypatch.setattr("compositegp.posteriors.neighbor_search._capacity", lambda n, count: (2, 40))
    points, centres = rng.uniform(size=(700, 3)), rng.uniform(size=(20, 3))
    points[5:40] = centres[3] + 1e-3 * rng.normal(size=(35, 3))
    found = NeighborSearch(points)
    np.testing.assert_array_equal(
        fetch(found.at_ranks_there(centres, np.arange(9), None)), found.nearest(centres, 9, None)
    )
    distances = cdist(centres, points)
    np.testing.assert_array_equal(found.nearest(centres, 9, None), np.argsort(distances, axis=1)[:, :9])
    np.testing.assert_allclose(found.distance_to(centres, 9, None), np.sort(distances, axis=1)[:, 8])
