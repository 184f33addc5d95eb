import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF
from strategies import partitions, seeds

from compositegp import Composite, conditioning_sets, segment


def as_sets(terms):
    return sorted((tuple(sorted(term.indices.tolist())), term.weight) for term in terms)


def test_terms_of_each_method():
    segments = [[0, 3], [1, 4], [2]]
    assert as_sets(Composite.full(3).terms) == [((0, 1, 2), 1)]
    assert as_sets(Composite.marginal(segments).terms) == [((0, 3), 1), ((1, 4), 1), ((2,), 1)]
    assert as_sets(Composite.pointwise(3).terms) == [((0,), 1), ((1,), 1), ((2,), 1)]
    assert as_sets(Composite.conditional(segments, [[], [0], [1, 4]]).terms) == [
        ((0,), -1),
        ((0, 1, 4), 1),
        ((0, 3), 1),
        ((1, 2, 4), 1),
        ((1, 4), -1),
    ]
    own = Composite([([2, 0], 0.5), ([1], 2.0)])
    assert as_sets(own.terms) == [((0, 2), 0.5), ((1,), 2)]
    assert own.n_points == 3
    assert repr(own) == "Composite(2 term(s) over 3 point(s))"


def test_conditioning_on_nothing_is_marginal():
    segments = [[0, 3], [1, 4], [2]]
    assert as_sets(Composite.conditional(segments, [[], [], []]).terms) == as_sets(
        Composite.marginal(segments).terms
    )


@given(st.data(), st.integers(1, 30))
def test_each_point_counts_once(data, n):
    """Σ_S w [i ∈ S] = 1 for every point i: no datum is counted twice."""
    segments = data.draw(partitions(n))
    earlier = np.empty(0, dtype=int)
    conditioning = []
    for part in segments:
        keep = data.draw(st.lists(st.booleans(), min_size=len(earlier), max_size=len(earlier)))
        conditioning.append(earlier[np.asarray(keep, dtype=bool)])
        earlier = np.concatenate([earlier, part])
    count = np.zeros(n)
    for indices, weight in Composite.conditional(segments, conditioning).terms:
        count[indices] += weight
    np.testing.assert_array_equal(count, 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Composite.marginal([[0, 1], [1, 2]]), "segments name point 1 twice"),
        (lambda: Composite.marginal([[0, 0]]), r"segments\[0\] has index 0 twice"),
        (lambda: Composite.marginal([[0, -1]]), "negative index -1"),
        (lambda: Composite.marginal([[0.5]]), r"segments\[0\] must be a one-dimensional array of whole numbers"),
        (lambda: Composite.marginal([[0], []]), r"segments\[1\] is empty"),
        (lambda: Composite.marginal([]), "segments is empty"),
        (lambda: Composite.marginal("tree"), "segments must be a list of index arrays"),
        (lambda: Composite.marginal(7), "segments must be a list of index arrays"),
        (lambda: Composite.full(0), "n_samples must be a whole number of at least 1"),
        (lambda: Composite.pointwise(-1), "n_samples must be"),
        (lambda: Composite([]), "at least one"),
        (lambda: Composite([[0, 1, 2]]), r"terms must be \(indices, weight\) pairs"),
        (lambda: Composite([([0], np.nan)]), "weights of terms contains NaN"),
        (lambda: Composite([([0], "much")]), "weights of terms must be an array of real numbers"),
        (lambda: Composite(7), r"terms must be \(indices, weight\) pairs"),
        (lambda: Composite.marginal([[[0], [1, 2]]]), r"segments\[0\] must be a one-dimensional"),
        (
            lambda: Composite.conditional([[0], [1]], [[], [10**15]]),
            r"conditioning\[1\] has point 1000000000000000",
        ),
        (lambda: Composite.conditional([[0], [1]], [[]]), r"conditioning has 1 set\(s\) for 2"),
        (lambda: Composite.conditional([[0], [1]], [[1], []]), r"conditioning\[0\] has point 1"),
        (lambda: Composite.conditional([[0], [1]], [[], [1]]), r"conditioning\[1\] has point 1"),
        (lambda: Composite.conditional([[0], [1]], [[], [9]]), r"conditioning\[1\] has point 9"),
    ],
)
def test_bad_terms_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


class TestConditioningSets:
    @given(st.integers(1, 60), st.integers(0, 12), st.integers(1, 3), seeds)
    def test_are_the_nearest_earlier_points(self, n, size, d, seed):
        X = np.random.default_rng(seed).normal(size=(n, d))
        segments = segment(X, 8, "random", random_state=0)
        earlier = np.empty(0, dtype=int)
        for part, found in zip(segments, conditioning_sets(X, segments, size), strict=True):
            assert len(found) == min(size, len(earlier))
            assert np.isin(found, earlier).all()
            if len(earlier) <= 8 * size and len(found):  # beyond that the candidates are a pool round the centre
                distance = np.linalg.norm(X[earlier][:, None] - X[part][None], axis=-1).min(axis=1)
                expected = earlier[np.argsort(distance)[:size]]
                np.testing.assert_array_equal(found, np.sort(expected))
            earlier = np.concatenate([earlier, part])

    def test_of_a_series_are_the_points_just_before(self):
        X = np.arange(10_000.0)[:, None]
        sets = conditioning_sets(X, segment(X, 100, "sequential"), 20)
        for k, found in enumerate(sets[1:], start=1):
            np.testing.assert_array_equal(found, np.arange(100 * k - 20, 100 * k))

    def test_a_tree_finds_what_a_look_at_all_points_finds(self, rng, monkeypatch):
        X = rng.normal(size=(3000, 2))
        segments = segment(X, 50, "random", random_state=0)
        by_looking = conditioning_sets(X, segments, 20)
        monkeypatch.setattr("compositegp.composite.block_vecchia._MANY_POINTS", 100)
        for a, b in zip(conditioning_sets(X, segments, 20), by_looking, strict=True):
            np.testing.assert_array_equal(a, b)

    def test_sets_of_some_segments_are_those_among_all(self, rng):
        X = rng.normal(size=(300, 2))
        segments = segment(X, 20)
        everything = conditioning_sets(X, segments, 7)
        for number, found in zip([3, 11], conditioning_sets(X, segments, 7, only=[3, 11]), strict=True):
            np.testing.assert_array_equal(found, everything[number])

    def test_length_scales_decide_what_is_near(self):
        X = np.array([[0.0, 0], [1, 0], [0, 1], [0.1, 0.1]])
        segments = [[0], [1], [2], [3]]
        assert conditioning_sets(X, segments, 2, kernel=RBF([0.1, 10]))[3].tolist() == [0, 2]
        assert conditioning_sets(X, segments, 2, kernel=RBF([10, 0.1]))[3].tolist() == [0, 1]

    def test_sequential_conditioning_works_with_composite(self, rng):
        X = rng.normal(size=(50, 2))
        segments = segment(X, 10)
        composite = Composite.conditional(segments, conditioning_sets(X, segments, 7))
        assert sum(weight * len(indices) for indices, weight in composite.terms) == 50

    @pytest.mark.parametrize(
        ("segments", "size", "message"),
        [([[0]], -1, "size must be"), ([[0]], 1.5, "size must be"), ([[7]], 1, "segments name point 7")],
    )
    def test_bad_arguments_are_named(self, segments, size, message):
        with pytest.raises(ValueError, match=message):
            conditioning_sets(np.zeros((3, 1)), segments, size)
