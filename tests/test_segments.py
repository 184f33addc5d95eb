import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import RBF
from strategies import seeds

from compositegp import conditioning_sets, segment
from compositegp.composite import SCHEMES


@given(st.integers(1, 200), st.integers(1, 60), st.integers(1, 4), st.sampled_from(SCHEMES), seeds)
def test_is_a_balanced_partition(n, size, d, scheme, seed):
    X = np.random.default_rng(seed).integers(0, 5, size=(n, d)).astype(float)  # with many duplicates
    segments = segment(X, size, scheme, random_state=0)
    np.testing.assert_array_equal(np.sort(np.concatenate(segments)), np.arange(n))
    sizes = [len(part) for part in segments]
    assert max(sizes) <= size
    assert max(sizes) - min(sizes) <= 1
    assert len(segments) == -(-n // size)
    assert all((np.diff(part) > 0).all() for part in segments)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_is_deterministic(scheme, rng):
    X = rng.normal(size=(300, 3))
    for a, b in zip(*(segment(X, 37, scheme, random_state=5) for _ in range(2)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_random_depends_on_the_seed(rng):
    X = rng.normal(size=(300, 3))
    assert any(
        (a != b).any() for a, b in zip(*(segment(X, 30, "random", random_state=s) for s in (1, 2)), strict=True)
    )


def test_sequential_and_interleaved():
    X = np.zeros((7, 1))
    assert [list(part) for part in segment(X, 3, "sequential")] == [[0, 1, 2], [3, 4], [5, 6]]
    assert [list(part) for part in segment(X, 3, "interleaved")] == [[0, 3, 6], [1, 4], [2, 5]]


@pytest.mark.parametrize("d", [1, 2, 5])
def test_tree_is_local(d, rng):
    X = rng.uniform(size=(4096, d))

    def spread(scheme):
        return np.mean([X[part].var(axis=0).sum() for part in segment(X, 64, scheme, random_state=0)])

    # A box of 1/64 of the volume has a side of 64^(−1/d).
    assert spread("tree") < 1.6 * 64 ** (-2 / d) * spread("random")


def test_tree_cuts_across_a_slanted_line(rng):
    t = rng.uniform(size=256)
    X = np.stack([t, 2 * t], axis=1) + 1e-3 * rng.normal(size=(256, 2))
    segments = segment(X, 64)
    order = sorted(segments, key=lambda part: t[part].mean())
    for left, right in itertools.pairwise(order):
        assert t[left].max() < t[right].min() + 0.01


def test_tree_of_a_grid_is_tiles():
    grid = np.stack(np.meshgrid(np.arange(16.0), np.arange(16.0)), axis=-1).reshape(-1, 2)
    for part in segment(grid, 16):
        np.testing.assert_array_equal(np.ptp(grid[part], axis=0), [3, 3])


def test_tree_measures_in_length_scales(rng):
    X = rng.uniform(size=(256, 2)) * [1, 100]
    segments = segment(X, 64, kernel=RBF([0.001, 1000]))
    assert max(np.ptp(X[part, 0]) for part in segments) < 0.4
    assert min(np.ptp(X[part, 1]) for part in segments) > 80


def test_each_label_is_a_segment():
    segments = segment(np.zeros((5, 1)), scheme=["b", "a", "b", "c", "a"])
    assert [list(part) for part in segments] == [[1, 4], [0, 2], [3]]


@pytest.mark.parametrize("X", [np.ones((10, 3)), np.ones((10, 1)), np.ones((1, 1)), 1e300 * np.ones((10, 2))])
def test_constant_inputs_are_partitioned(X):
    segments = segment(X, 4)
    np.testing.assert_array_equal(np.sort(np.concatenate(segments)), np.arange(len(X)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"segment_size": 0}, "segment_size must be a whole number of at least 1; found 0"),
        ({"segment_size": 2.5}, "segment_size must be"),
        ({"scheme": "kmeans"}, "scheme must be one of sequential, interleaved, random, tree"),
        ({"scheme": [0, 1]}, "one label for each of the 3 point"),
        ({"scheme": None}, "scheme must be a name"),
        ({"kernel": "rbf"}, "kernel must be a kernel object"),
    ],
)
def test_bad_arguments_of_segment_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        segment(np.zeros((3, 1)), **arguments)


@pytest.mark.parametrize("d", [1, 2, 6])
@pytest.mark.parametrize("shape", ["uniform", "standard_cauchy"])
def test_conditioning_sets_of_many_points_are_as_near_as_those_of_a_look_at_all(d, shape, rng):
    X = getattr(rng, shape)(size=(40_000, d))
    segments = segment(X, 250)
    some = np.arange(20, 160, 7)
    by_cells = conditioning_sets(X, segments, 50, only=some)
    earlier = np.cumsum([len(part) for part in segments])
    order = np.concatenate(segments)
    ratios = []
    for number, found in zip(some, by_cells, strict=True):
        before = order[: earlier[number - 1]]
        assert np.isin(found, before).all()
        assert len(np.unique(found)) == 50
        own = X[segments[number]]
        pool = before[np.argsort(((X[before] - own.mean(axis=0)) ** 2).sum(axis=1))[: 8 * 50]]
        nearest = np.sort(cdist(X[pool], own).min(axis=1))[:50]
        ratios.append(cdist(X[found], own).min(axis=1).mean() / (nearest.mean() + 1e-9))
    # A segment in the tails of a Cauchy distribution has no center to look around: one of them may be off.
    assert np.mean(ratios) < 1.05
    assert np.max(ratios) < 2.0
