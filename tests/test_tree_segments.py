"""Segments that are made when they are read: the same as if all had been made, whatever is read first."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from compositegp import CompositeGPRegressor
from compositegp.composite import EarlierPoints, Spreads, TreeSegments, boundaries_of, in_spreads, partition
from compositegp.composite.cells import Cells, cells_around


def points(n, d, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 100 * rng.normal(size=d)
    X[:, 0] = X[:, 0].round(1)  # with ties
    return X


def halved_by_hand(points, rows):
    """A tree of two leaves, by its definition: a cut through the median of the widest column or direction."""
    centered = points[rows] - points[rows].mean(axis=0)
    products = centered.T @ centered
    variances, directions = np.linalg.eigh(products)
    column = np.argmax(np.diag(products))
    direction = np.eye(len(products))[column]
    if variances[-1] > 1.5 * products[column, column]:
        direction = directions[:, -1]
    order = np.argsort(centered @ direction)
    return [set(rows[part]) for part in np.array_split(order, 2)]


@given(n=st.integers(1, 400), d=st.integers(1, 4), size=st.integers(1, 60), seed=st.integers(0, 99))
def test_what_is_read_first_does_not_matter(n, d, size, seed):
    X = points(n, d, seed)
    expected = partition(in_spreads(X), size)
    segments = TreeSegments.balanced(X, size, Spreads.of(X))
    assert len(segments) == len(expected)
    assert_array_equal(np.diff(boundaries_of(segments)), [len(part) for part in expected])
    for number in np.random.default_rng(seed).permutation(len(expected)):
        assert_array_equal(segments[number], expected[number])
    assert [part.tolist() for part in segments[1:]] == [part.tolist() for part in expected[1:]]


def test_a_segment_that_is_read_cuts_its_branches_alone():
    segments = TreeSegments.balanced(points(4096, 2, 0), 8)
    assert len(segments[77]) == 8
    assert len(segments._cuts) == 9  # of 512 leaves
    assert len(segments[-1]) == 8
    assert len(segments._cuts) <= 17


@pytest.mark.parametrize("seed", range(4))
def test_halves_are_cuts_of_the_segments(seed):
    X = np.random.default_rng(seed).normal(size=(611, 3))
    whole = partition(X, 64)
    halves = TreeSegments.balanced(X, 64).halved()
    for number in np.random.default_rng(seed).permutation(len(whole)):
        found = [set(halves[2 * number]), set(halves[2 * number + 1])]
        expected = halved_by_hand(X, whole[number])
        assert [len(part) for part in found] == [len(part) for part in expected]
        assert found in (expected, expected[::-1]) or {*map(frozenset, found)} == {*map(frozenset, expected)}


def test_halves_and_segments_may_be_read_in_turn():
    X = points(1000, 3, 1)
    segments = TreeSegments.balanced(X, 50)
    halves = segments.halved()
    quarters = halves.halved()
    for number, expected in enumerate(partition(X, 50)):
        assert_array_equal(np.union1d(halves[2 * number], halves[2 * number + 1]), expected)
        assert_array_equal(np.sort(np.concatenate(quarters[4 * number : 4 * number + 4])), expected)
        assert_array_equal(segments[number], expected)


def test_threads_read_the_same_segments():
    X = points(20_000, 3, 2)
    expected, segments = partition(X, 64), TreeSegments.balanced(X, 64)
    numbers = np.random.default_rng(0).permutation(len(expected))
    with ThreadPoolExecutor(8) as pool:
        for number, found in zip(numbers, pool.map(segments.__getitem__, numbers), strict=True):
            assert_array_equal(found, expected[number])


def test_a_copy_of_which_some_was_read():
    X = points(500, 2, 3)
    segments = TreeSegments.balanced(X, 20)
    _ = segments[7]
    again = pickle.loads(pickle.dumps(segments))
    assert [part.tolist() for part in again] == [part.tolist() for part in partition(X, 20)]


def test_cells_have_the_points_of_earlier_segments():
    X = points(9000, 3, 4)
    segments = TreeSegments.balanced(X, 16)
    cells = cells_around(X, segments).seen_by(lambda rows: X[rows])
    for number in (40, 333, 562):
        own = segments[number]
        start = int(boundaries_of(segments)[number])
        assert_array_equal(
            np.sort(cells.around(X[own].mean(axis=0), start, start)), np.sort(np.concatenate(segments[:number]))
        )


def test_branches_have_the_earlier_points_that_a_look_at_all_finds(monkeypatch):
    X = np.random.default_rng(5).normal(size=(8000, 2))
    segments, numbers, kernel = TreeSegments.balanced(X, 32), np.array([170, 211, 249]), RBF([0.5, 2.0])
    expected = EarlierPoints(X, list(segments), 2).of(numbers, kernel)
    monkeypatch.setattr("compositegp.composite.block_vecchia._MANY_POINTS", 100)
    monkeypatch.setattr("compositegp.composite.cells._BRANCH", 128)
    looked_at = []
    around = Cells.around
    monkeypatch.setattr(Cells, "around", lambda *rest: looked_at.append(around(*rest)) or looked_at[-1])
    for one, other in zip(EarlierPoints(X, segments, 2).of(numbers, kernel), expected, strict=True):
        assert_array_equal(one, other)
    assert [len(pool) < 1000 for pool in looked_at] == [True] * 3


def test_a_fit_makes_the_segments_that_it_reads(monkeypatch):
    made = []
    whole = TreeSegments.__getitem__

    def read(self, number):
        if not isinstance(number, slice):
            made.append((len(self), int(number)))
        return whole(self, number)

    monkeypatch.setattr(TreeSegments, "__getitem__", read)
    rng = np.random.default_rng(6)
    X = rng.uniform(size=(24_000, 2))
    y = np.sin(6 * X[:, 0]) + np.cos(5 * X[:, 1]) + 0.3 * rng.normal(size=len(X))
    model = CompositeGPRegressor(RBF([0.3, 0.3]) + WhiteKernel(0.1), segment_size=64, conditioning_size=16).fit(
        X, y
    )
    assert 0 < len({number for count, number in made if count == 375}) < 300
    assert model.kernel_.k2.noise_level == pytest.approx(0.09, rel=0.1)
