"""Data in partitions on a cluster of two worker processes, against the same on one machine."""

import itertools
import pickle
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from oracles import composite_gp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from compositegp import (
    Basis,
    Composite,
    CompositeGPRegressor,
    CompositeLikelihood,
    CompositeSum,
    Estimated,
    Nearest,
    NumericalWarning,
    conditioning_sets,
    learn,
    nearest,
    segment,
)
from compositegp.composite import Observations, total_score
from compositegp.means.model import as_mean

pytest.importorskip("distributed")
import dask
import dask.array as da
import dask.dataframe as dd

from compositegp.distributed import DistributedGPRegressor
from compositegp.distributed.partitioned_terms import PartitionedTerms
from compositegp.distributed.partitions import KeptTree, add_up, parts_of, summarize

KERNEL = ConstantKernel() * Matern([1.0, 1.0], nu=1.5) + WhiteKernel()
KNOWN = 1.2 * Matern([0.8, 1.1], nu=1.5) + WhiteKernel(0.05)


def arrays_of(table):
    return np.ascontiguousarray(table[["a", "b"]]), table["y"].to_numpy()


def pieces(table, npartitions):
    """Which rows are in which partition, and the segments that they are split into."""
    frame = dd.from_pandas(table, npartitions=npartitions)
    sizes = [len(frame.partitions[number].compute()) for number in range(frame.npartitions)]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    X = arrays_of(table)[0]
    segments = []
    for start, stop in itertools.pairwise(starts):
        inside = X[start:stop]
        segments += [start + part for part in segment(inside / inside.std(axis=0), 50)]
    return frame, segments


class TestLearning:
    def test_is_that_of_one_machine_with_the_same_segments(self, table, client):
        frame, segments = pieces(table, 5)
        X, y = arrays_of(table)
        found = DistributedGPRegressor(
            KERNEL, segment_size=50, conditioning_size=0, learning=CompositeLikelihood(tolerance=None)
        ).fit(frame, target="y")
        expected = learn(KERNEL, X, y, segments, learning=CompositeLikelihood(tolerance=None), conditioning_size=0)
        errors = np.sqrt(np.diagonal(expected.theta_covariance))
        assert (np.abs(found.kernel_.theta - expected.theta) < 0.2 * errors).all()
        assert found.learning_result_.log_likelihood == pytest.approx(expected.log_likelihood, abs=0.02)
        assert found.n_samples_ == 600
        assert list(found.feature_names_in_) == ["a", "b"]

    @pytest.mark.parametrize("mean", [None, Basis("linear", np.ones(3), np.eye(3))])
    def test_scores_are_those_of_one_machine_to_the_last_digits(self, table, client, mean):
        frame, segments = pieces(table, 5)
        X, y = arrays_of(table)
        parts = parts_of(frame, None, "y", 50, "tree")[0]
        terms = PartitionedTerms(parts, list(dask.compute(*map(dask.delayed(summarize), parts))), as_mean(mean), 0)
        beta, numbers = np.zeros((0, 1)) if mean is None else np.array([[0.5], [-1.0], [2.0]]), [0, 3, 4, 11]
        found = terms.read(numbers, KNOWN).score(KNOWN, beta, probes=0, seed=0, n_jobs=None)
        data = Observations.checked(KNOWN, X, y, mean=as_mean(mean), noise_variance=None)
        expected = total_score(data, Composite.marginal([segments[number] for number in numbers]), beta)
        assert found.log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-12)
        np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-9)
        np.testing.assert_allclose(found.normal.information, expected.normal.information, rtol=1e-9)
        np.testing.assert_allclose(found.normal.moment, expected.normal.moment, rtol=1e-9)
        assert found.n_points == expected.n_points

    def test_coefficients_of_the_mean_are_added_up_too(self, table, client):
        table = table.assign(y=table.y + 3 * table.a - 2 * table.b)
        frame, segments = pieces(table, 4)
        X, y = arrays_of(table)
        found = DistributedGPRegressor(
            KERNEL,
            segment_size=50,
            conditioning_size=0,
            mean="linear",
            learning=CompositeLikelihood(tolerance=None),
        ).fit(frame, target="y")
        expected = learn(
            KERNEL, X, y, segments, mean="linear", learning=CompositeLikelihood(tolerance=None), conditioning_size=0
        )
        errors = np.sqrt(np.diagonal(expected.mean_covariance))
        assert (np.abs(found.mean_.coefficients - expected.mean_coefficients) < 0.1 * errors).all()
        np.testing.assert_allclose(np.diagonal(found.mean_.covariance), errors**2, rtol=0.1)

    def test_conditioning_stays_inside_a_partition(self, table, client):
        frame, segments = pieces(table, 3)
        X, y = arrays_of(table)
        parts = parts_of(frame, None, "y", 50, "tree")[0]
        summaries = list(dask.compute(*map(dask.delayed(summarize), parts)))
        terms = PartitionedTerms(parts, summaries, as_mean(None), 20)
        found = terms.read(np.arange(len(terms)), KNOWN).score(
            KNOWN, np.zeros((0, 1)), probes=0, seed=0, n_jobs=None
        )
        data, expected, start = Observations.checked(KNOWN, X, y, mean=None, noise_variance=None), 0.0, 0
        for summary in summaries:
            own = segments[start : start + len(summary.sizes)]
            start += len(own)
            given = conditioning_sets(X, own, 20, kernel=KNOWN)
            expected += total_score(data, Composite.conditional(own, given), np.zeros((0, 1))).log_likelihood
        assert found.log_likelihood == pytest.approx(expected, rel=1e-10)

    def test_works_without_a_cluster_and_from_arrays(self, table):
        X, y = arrays_of(table)
        chunks = da.from_array(X, chunks=(150, 2)), da.from_array(y, chunks=150)
        with dask.config.set(scheduler="synchronous"):
            found = DistributedGPRegressor(segment_size=50).fit(*chunks)
            mean, std = found.predict(X[:9] + 0.01, return_std=True)
        truth = np.sin(X[:9] + 0.01).sum(axis=1)
        assert (np.abs(mean - truth) < 4 * std).all()
        assert std.max() < 0.3

    @pytest.mark.filterwarnings("ignore")  # Dask's own, about pandas
    def test_parquet_that_is_read_again_for_every_pass_gives_the_same(self, table, client, tmp_path):
        dd.from_pandas(table, npartitions=4).to_parquet(tmp_path / "table")
        frame = dd.read_parquet(tmp_path / "table")
        kept = DistributedGPRegressor(KERNEL, segment_size=50).fit(frame, target="y")
        reread = DistributedGPRegressor(KERNEL, segment_size=50, persist=False).fit(frame, target="y")
        np.testing.assert_array_equal(reread.kernel_.theta, kept.kernel_.theta)


class TestPrediction:
    def test_composite_is_the_sum_over_all_the_segments(self, table, client, rng):
        frame, segments = pieces(table, 5)
        X, y = arrays_of(table)
        Z = rng.uniform(0, 6, size=(12, 2))
        options = {"learning": None, "segment_size": 50, "conditioning_size": 0, "prediction": "composite"}
        mean, std = (
            DistributedGPRegressor(KNOWN, **options).fit(frame, target="y").predict(Z, return_std=True, latent=True)
        )
        expected, covariance = composite_gp(KNOWN, X, y, Z, [(part, 1.0) for part in segments])
        np.testing.assert_allclose(mean, expected, rtol=0, atol=1e-5)
        np.testing.assert_allclose(std**2, np.diag(covariance), rtol=0, atol=1e-5)

    def test_groups_are_predicted_one_by_one(self, table, client, rng):
        frame, _ = pieces(table, 3)
        Z = rng.uniform(0, 6, size=(30, 2))
        model = DistributedGPRegressor(
            KNOWN, segment_size=50, prediction=CompositeSum(group_size=10), learning=None
        )
        mean = model.fit(frame, target="y").predict(Z)
        for group in segment(Z, 10, kernel=KNOWN):
            np.testing.assert_allclose(model.predict(Z[group]), mean[group], rtol=0, atol=1e-8)

    @pytest.mark.parametrize("npartitions", [1, 5, 40])
    @pytest.mark.parametrize("mean", [None, "linear"])
    def test_nearest_looks_into_all_the_partitions(self, table, client, rng, npartitions, mean):
        frame = dd.from_pandas(table, npartitions=npartitions)
        X, y = arrays_of(table)
        Z = rng.uniform(-1, 7, size=(20, 2))
        model = DistributedGPRegressor(
            KNOWN, mean=mean, prediction=Nearest(25, local_mean=False, calibration=None)
        ).fit(frame, target="y")
        found, std = model.predict(Z, return_std=True)
        expected = nearest(model.kernel_, X, y, Z, mean=model.mean_, n_neighbors=25)
        noise = model.kernel_.k2.noise_level
        np.testing.assert_allclose(found, expected.mean, rtol=0, atol=1e-8)
        np.testing.assert_allclose(std**2, expected.variance + noise, rtol=0, atol=1e-8)

    def test_unsorted_partitions_give_the_same(self, table, client, rng):
        Z = rng.uniform(0, 6, size=(20, 2))
        shuffled = table.sample(frac=1, random_state=0, ignore_index=True)
        found = [
            DistributedGPRegressor(KNOWN, prediction=Nearest(n_neighbors=25), learning=None)
            .fit(dd.from_pandas(each, npartitions=4), target="y")
            .predict(Z)
            for each in (table, shuffled)
        ]
        np.testing.assert_allclose(*found, rtol=0, atol=1e-10)

    def test_test_points_may_be_frames_of_any_kind(self, table, client):
        frame, _ = pieces(table, 2)
        model = DistributedGPRegressor(KNOWN, learning=None).fit(frame, target="y")
        expected = model.predict(arrays_of(table)[0][:7])
        np.testing.assert_allclose(model.predict(table[["b", "a"]].head(7)), expected)
        np.testing.assert_allclose(model.predict(dd.from_pandas(table.head(7), npartitions=2)), expected)


def shuffled_columns(number):
    """One of three partitions, the second with its columns in another order."""
    X = np.random.default_rng(number).uniform(0, 6, size=(100, 2))
    frame = pd.DataFrame({"a": X[:, 0], "y": np.sin(X[:, 0]) + X[:, 1], "b": X[:, 1]})
    return frame[["b", "y", "a"]] if number == 1 else frame


class TestColumns:
    def test_are_taken_by_name_in_every_partition(self):
        frame = dd.from_map(shuffled_columns, range(3), meta=shuffled_columns(0), enforce_metadata=False)
        whole = pd.concat([shuffled_columns(number) for number in range(3)], ignore_index=True)
        with dask.config.set(scheduler="synchronous"):
            model = DistributedGPRegressor(KNOWN, prediction=Nearest(n_neighbors=40), learning=None).fit(
                frame, target="y"
            )
            found = model.predict(whole[["b", "a"]].head(9))
        X, y = arrays_of(whole)
        np.testing.assert_allclose(found, nearest(KNOWN, X, y, X[:9], n_neighbors=40).mean, rtol=0, atol=1e-8)

    def test_may_be_numbers_and_of_any_numeric_type(self, table):
        table = table.assign(a=table.a.round().astype("Int64"), b=table.b > 3)
        table.columns = [0, "y", 1]
        with dask.config.set(scheduler="synchronous"):
            model = DistributedGPRegressor(KNOWN, learning=None).fit(
                dd.from_pandas(table, npartitions=2), target="y"
            )
            by_name, by_place = (
                model.predict(table[[1, 0]].head(5)),
                model.predict(table[[0, 1]].astype(float).head(5)),
            )
            np.testing.assert_allclose(by_name, by_place)
            X, y = np.ascontiguousarray(table[[0, 1]], dtype=float), table["y"].to_numpy()
            model.fit(da.from_array(X, chunks=(300, 2)), da.from_array(y, chunks=300))
            assert not hasattr(model, "feature_names_in_")  # arrays have none
            np.testing.assert_allclose(model.predict(X[:5]), by_place)


def test_the_default_kernel_is_at_the_datas_scale_even_if_nothing_is_learned(table):
    X, y = arrays_of(table)
    chunks = da.from_array(1000 * X, chunks=(150, 2)), da.from_array(y, chunks=150)
    with dask.config.set(scheduler="synchronous"):
        found = DistributedGPRegressor(learning=None).fit(*chunks).predict(1000 * X[:20])
    assert np.abs(found - np.sin(X[:20]).sum(axis=1)).max() < 0.5


class TestBadInput:
    def test_bad_arguments_are_named(self, table, client):
        frame = dd.from_pandas(table, npartitions=2)
        with pytest.raises(ValueError, match="target must be one of the columns"):
            DistributedGPRegressor().fit(frame, target="z")
        with pytest.raises(ValueError, match="CompositeGPRegressor for data in memory"):
            DistributedGPRegressor().fit(*arrays_of(table))
        X, y = arrays_of(table)
        with pytest.raises(ValueError, match="rechunk"):
            DistributedGPRegressor().fit(da.from_array(X, chunks=(100, 2)), da.from_array(y, chunks=150))
        with pytest.raises(ValueError, match="prediction must be"):
            DistributedGPRegressor(prediction="fitc").fit(frame, target="y")
        with pytest.raises(NotFittedError, match="not fitted"):
            DistributedGPRegressor().predict(X)
        for wrong in (table.a.astype(str), pd.date_range("2024", periods=600), table.a.round().astype("category")):
            with pytest.raises(ValueError, match=r"X has columns that are not numbers: b \("):
                DistributedGPRegressor().fit(dd.from_pandas(table.assign(b=wrong), npartitions=2), target="y")
        with pytest.raises(ValueError, match=r"partition . has missing or infinite values in column\(s\) b"):
            DistributedGPRegressor().fit(dd.from_pandas(table.assign(b=np.nan), npartitions=2), target="y")
        with pytest.raises(ValueError, match="partition . has infinite targets"):
            DistributedGPRegressor().fit(dd.from_pandas(table.assign(y=np.inf), npartitions=2), target="y")
        with pytest.raises(ValueError, match="give no y"):
            DistributedGPRegressor().fit(frame, frame["y"])
        with pytest.raises(ValueError, match="no column to predict it from"):
            DistributedGPRegressor().fit(frame[["y"]], target="y")
        with pytest.raises(ValueError, match="tolerance must be"):
            DistributedGPRegressor(learning=CompositeLikelihood(tolerance=-3)).fit(frame, target="y")
        with pytest.raises(ValueError, match="Give its functions as a Basis"):
            DistributedGPRegressor(mean=Estimated("linear", np.zeros(3), np.eye(3))).fit(frame, target="y")
        model = DistributedGPRegressor(KNOWN, learning=None).fit(frame, target="y")
        with pytest.raises(ValueError, match="lacks the columns b"):
            model.predict(table[["a"]])
        with pytest.raises(ValueError, match="X has columns that are not numbers: a"):
            model.predict(table.assign(a="x"))
        expected = model.predict(X[:3])
        with pytest.raises(ValueError, match="partition"):  # a fit that fails leaves the model as it was
            model.fit(dd.from_pandas(table.assign(b=np.nan), npartitions=2), target="y")
        np.testing.assert_array_equal(model.predict(X[:3]), expected)

    def test_missing_targets_are_left_out(self, table, client):
        X, y = arrays_of(table)
        holed = table.assign(y=table.y.where(table.index % 3 > 0))
        with pytest.warns(UserWarning, match="missing in 200 of 600 rows"):
            model = DistributedGPRegressor(KNOWN, prediction=Nearest(n_neighbors=30), learning=None).fit(
                dd.from_pandas(holed, npartitions=3), target="y"
            )
        kept = table.index % 3 > 0
        np.testing.assert_allclose(
            model.predict(X[:5]), nearest(KNOWN, X[kept], y[kept], X[:5], n_neighbors=30).mean, rtol=0, atol=1e-8
        )

    def test_empty_partitions_and_no_data(self, table, client):
        frame = dd.from_pandas(table, npartitions=4)
        half = frame[frame.a < 2.5]  # leaves some of the partitions empty
        X, _ = arrays_of(table[table.a < 2.5])
        for prediction in (Nearest(30), Nearest(200), Nearest(10**6), CompositeSum()):
            model = DistributedGPRegressor(KNOWN, learning=None, prediction=prediction)
            found = model.fit(half, target="y").predict(X[:5])
            assert np.abs(found - np.sin(X[:5]).sum(axis=1)).max() < 0.3
        with pytest.raises(ValueError, match="no row with a target"):
            DistributedGPRegressor().fit(frame[frame.a < -1], target="y")


def test_sums_are_trees_of_the_same_shape_for_any_scheduler():
    numbers = [dask.delayed(1.0 / (1 + n)) for n in range(100)]
    with dask.config.set(scheduler="synchronous"):
        (one,) = dask.compute(add_up(numbers, sum))
    with dask.config.set(scheduler="threads"):
        (other,) = dask.compute(add_up(numbers, sum))
    assert one == other == pytest.approx(sum(1 / (1 + n) for n in range(100)))


def test_segments_are_those_of_each_partition(table):
    parts, names = parts_of(dd.from_pandas(table, npartitions=3), None, "y", 64, "tree")
    assert names == ["a", "b"]
    with dask.config.set(scheduler="synchronous"):
        for part in dask.compute(*parts):
            np.testing.assert_array_equal(np.sort(np.concatenate(part.segments)), np.arange(len(part.X)))
            assert max(map(len, part.segments)) <= 64


def test_a_search_tree_is_kept_for_one_kernel_and_does_not_travel(table):
    X = arrays_of(table)[0]
    kept = KeptTree()
    tree = kept.of(X, KNOWN)
    assert kept.of(X, clone(KNOWN)) is tree
    np.testing.assert_allclose(tree.data, X / [0.8, 1.1])
    other = kept.of(X, RBF(2.0))
    np.testing.assert_allclose(other.data, X / 2.0)
    assert kept.of(X, KNOWN) is not tree
    assert len(pickle.dumps(kept)) < 200
    assert pickle.loads(pickle.dumps(kept)).of(X, KNOWN).query(X[3])[1] == 3


def test_one_partition_with_one_segment_is_the_exact_gp():
    X = np.linspace(0, 3, 40)[:, None]
    y, kernel = np.sin(X[:, 0]), RBF() + WhiteKernel(0.01)
    with dask.config.set(scheduler="synchronous"):
        model = DistributedGPRegressor(kernel, prediction="composite", learning=None)
        mean = model.fit(da.from_array(X, chunks=(40, 1)), da.from_array(y, chunks=40)).predict(X[:3] + 0.01)
    expected, _ = composite_gp(kernel, X, y, X[:3] + 0.01, Composite.full(40).terms)
    np.testing.assert_allclose(mean, expected, rtol=0, atol=1e-6)


class TestTestPointsInPartitions:
    """Predictions of Dask collections are Dask arrays, and equal to those of the same points in memory."""

    @pytest.fixture
    def fitted(self, table):
        model = DistributedGPRegressor(KERNEL, learning=None, prediction=Nearest(40))
        return model.fit(dd.from_pandas(table, npartitions=4), target="y")

    def test_frames(self, fitted, table):
        tests = table.head(90)
        mean, std = fitted.predict(dd.from_pandas(tests, npartitions=3), return_std=True)
        assert isinstance(mean, da.Array)
        assert isinstance(std, da.Array)
        expected = fitted.predict_distribution(tests)
        np.testing.assert_allclose(mean.compute(), expected.mean, rtol=1e-9)
        np.testing.assert_allclose(std.compute(), expected.std, rtol=1e-9)

    def test_arrays(self, fitted, table):
        points = table[["a", "b"]].to_numpy()[:61]
        chunks = da.from_array(points, chunks=(25, 2))
        expected = fitted.predict_distribution(points)
        np.testing.assert_allclose(fitted.predict_quantiles(chunks, [0.1, 0.9]), expected.quantile([0.1, 0.9]))
        for lazy, eager in zip(fitted.predict_interval(chunks, 0.8), expected.interval(0.8), strict=True):
            assert isinstance(lazy, da.Array)
            np.testing.assert_allclose(lazy, eager)

    def test_composites_are_those_of_the_points_of_each_partition(self, composite, table, monkeypatch):
        monkeypatch.setattr("compositegp.distributed.partitioned_prediction.MESSAGE", 700)  # some groups at a time
        points = table[["a", "b"]].to_numpy()[:50]
        mean, std = composite.predict(da.from_array(points, chunks=(25, 2)), return_std=True)
        for start in (0, 25):
            expected = [composite.predict(points[[row]], return_std=True) for row in range(start, start + 25)]
            means, stds = np.array(expected)[..., 0].T
            np.testing.assert_allclose(mean[start : start + 25], means, rtol=1e-7)
            np.testing.assert_allclose(std[start : start + 25], stds, rtol=1e-7)

    def test_composites_are_predicted_in_groups(self, table):
        model = DistributedGPRegressor(KNOWN, learning=None, prediction=CompositeSum(group_size=9), segment_size=50)
        model.fit(dd.from_pandas(table, npartitions=4), target="y")
        points = table[["a", "b"]].to_numpy()[:60]
        lower, upper = model.predict_interval(da.from_array(points, chunks=(30, 2)), 0.8)
        assert isinstance(lower, da.Array)
        for own in (slice(0, 30), slice(30, 60)):
            expected = model.predict_interval(points[own], 0.8)
            np.testing.assert_allclose([lower[own], upper[own]], expected, rtol=1e-7)

    @pytest.fixture
    def composite(self, table):
        model = DistributedGPRegressor(KNOWN, learning=None, prediction=CompositeSum(group_size=1), segment_size=50)
        return model.fit(dd.from_pandas(table, npartitions=4), target="y")

    @pytest.mark.parametrize("which", ["fitted", "composite"])
    def test_nothing_of_the_size_of_the_test_points_comes_to_the_client(self, which, request, table, monkeypatch):
        fitted = request.getfixturevalue(which)
        chunks = da.from_array(table[["a", "b"]].to_numpy()[:60], chunks=(20, 2))
        sizes, compute = [], dask.compute

        def watched(*arguments, **options):
            found = compute(*arguments, **options)
            sizes.extend(
                len(np.ravel(part)) for each in found for part in np.atleast_1d(np.asarray(each, dtype=object))
            )
            return found

        fitted.predict(chunks[:2]).compute()  # so that what Nearest learns is known
        monkeypatch.setattr(dask, "compute", watched)
        fitted.predict(chunks)
        assert max(sizes) <= 2


@pytest.mark.parametrize("y", [[3.0] * 12, [3.0]], ids=["constant", "one row"])
def test_targets_that_do_not_vary_behave_as_in_memory(y):
    X = np.arange(len(y), dtype=float)[:, None]
    chunks = da.from_array(X, chunks=(5, 1)), da.from_array(np.array(y), chunks=5)
    found = []
    for model, data in ((DistributedGPRegressor(), chunks), (CompositeGPRegressor(), (X, np.array(y)))):
        with pytest.warns(ConvergenceWarning, match="hyper-parameters stay where the kernel has them"):
            model.fit(*data)
        found.append(model.predict([[0.5], [2.0]]))
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_warnings_of_workers_reach_the_client():
    X = np.repeat(np.linspace(0, 1, 30), 2)[:, None]
    chunks = da.from_array(X, chunks=(30, 1)), da.from_array(np.sin(X[:, 0]), chunks=30)
    model = DistributedGPRegressor(RBF(1.0), learning=None, prediction="composite", conditioning_size=0).fit(
        *chunks
    )
    with pytest.warns(NumericalWarning, match="singular in double"):
        model.predict([[0.5]])
    lazy = model.predict(da.from_array(np.array([[0.5]]), chunks=(1, 1)))
    with pytest.warns(NumericalWarning, match="singular in double"):
        lazy.compute()


def test_warnings_of_workers_in_other_processes_reach_the_client(client):
    X = np.repeat(np.linspace(0, 1, 30), 2)[:, None]
    chunks = da.from_array(X, chunks=(30, 1)), da.from_array(np.sin(X[:, 0]), chunks=30)
    model = DistributedGPRegressor(RBF(1.0), learning=None, prediction="composite", conditioning_size=0).fit(
        *chunks
    )
    lazy = model.predict(da.from_array(np.array([[0.5]]), chunks=(1, 1)))

    def warned():
        return any(one.category is NumericalWarning and "singular in double" in str(one.message) for one in raised)

    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        lazy.compute()
        deadline = time.monotonic() + 10
        while not warned() and time.monotonic() < deadline:  # it comes by another way than the result
            time.sleep(0.05)
    assert warned()
