"""A ValueError names the argument, what was found, and what to do."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, CompoundKernel, WhiteKernel

from compositegp import (
    Basis,
    Composite,
    CompositeGPRegressor,
    Linear,
    Nearest,
    committee,
    factorize,
    nearest,
    posterior,
    prior,
    project,
    segment,
)
from compositegp import functionals as F
from compositegp.forecasting import CompositeGPForecaster

KERNEL = RBF(1.0) + WhiteKernel(0.1)
X, Y, Z = np.arange(6.0).reshape(3, 2), np.arange(3.0), np.zeros((2, 2))


def with_nan(array, value=np.nan):
    array = array.copy()
    array[-1] = value
    return array


CASES = [
    ({"X": with_nan(X)}, r"X contains NaN: 2 value\(s\) not finite, the first at index \(2, 0\)"),
    ({"X": with_nan(X, np.inf)}, "X contains infinity"),
    ({"X": [["a", "b"]] * 3}, "X must be an array of real numbers; found list"),
    ({"X": [[1.0, 2.0], [3.0]]}, "X must be an array of real numbers"),
    ({"X": np.ma.masked_equal(X, 3.0)}, "X has masked values"),
    ({"noise_variance": [[1.0], [2.0, 3.0]]}, "noise_variance must be an array of real numbers"),
    ({"mean": Linear}, "mean must be None, a finite number"),
    ({"X": X + 1j}, "X must be an array of real numbers"),
    ({"X": X[:, 0]}, r"X must have two axes.*reshape\(-1, 1\)"),
    ({"X": X[:0]}, r"X is empty: found shape \(0, 2\)"),
    ({"X": X[:, :0]}, "X is empty"),
    ({"X": None}, "X must be an array of real numbers|X must have two axes"),
    ({"y": with_nan(Y)}, r"y contains NaN: 1 value\(s\) not finite, the first at index 2"),
    ({"y": Y[:2]}, r"y has 2 value\(s\), but there are 3"),
    ({"y": Y[:, None, None]}, r"y must have one axis.*ravel\(\)"),
    ({"y": ["a", "b", "c"]}, "y must be an array of real numbers"),
    ({"Z": Z[:, :1]}, r"Z has 1 column\(s\), but the other points have 2"),
    ({"Z": with_nan(Z)}, "Z contains NaN"),
    ({"Z": Z[:0]}, "Z is empty"),
    ({"inducing": Z[:, :1]}, "inducing has 1 column"),
    ({"inducing": with_nan(Z)}, "inducing contains NaN"),
    ({"kernel": "rbf"}, "kernel must be a kernel object.*found str 'rbf'"),
    ({"kernel": None}, "kernel must be a kernel object"),
    ({"kernel": CompoundKernel([RBF()])}, "kernel must be a kernel object"),
    ({"kernel": RBF([1.0, 2.0, 3.0])}, r"3 length scales, but the points have 2 column\(s\)"),
    ({"composite": [[0, 1, 2]]}, "composite must be a Composite"),
    ({"composite": Composite.full(4)}, "composite names point 3, but X has only 3"),
    ({"noise_variance": -1.0}, r"noise_variance has a negative value \(-1 at index 0\)"),
    ({"noise_variance": [1.0, 2.0]}, r"noise_variance has 2 value\(s\)"),
    ({"noise_variance": np.nan}, "noise_variance contains NaN"),
    ({"noise_variance": "much"}, "noise_variance must be an array of real numbers"),
    ({"mean": "quadratic"}, "mean must be None, a finite number"),
    ({"mean": np.nan}, "mean must be None, a finite number"),
    ({"mean": lambda X: X}, r"mean must return one finite number for each of the 3 point\(s\)"),
    ({"mean": lambda X: np.full(len(X), np.nan)}, "mean must return one finite number"),
    ({"mean": Linear([1.0])}, r"mean has coefficients of shape \(1,\), but the points have 2 column\(s\)"),
]


@pytest.mark.parametrize(("change", "message"), CASES, ids=[message[:40] for _, message in CASES])
def test_bad_arguments_of_posterior_are_named(change, message):
    arguments = {"kernel": KERNEL, "X": X, "y": Y, "Z": Z, "composite": Composite.full(3)} | change
    with pytest.raises(ValueError, match=message):
        posterior(**arguments)


@pytest.mark.parametrize(("change", "message"), [case for case in CASES if not {"Z", "inducing"} & set(case[0])])
def test_bad_arguments_of_factorize_are_named(change, message):
    arguments = {"kernel": KERNEL, "X": X, "y": Y, "composite": Composite.full(3)} | change
    with pytest.raises(ValueError, match=message):
        factorize(**arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X_k": X[:, :1]}, "X_k has 1 column"),
        ({"X_k": with_nan(X)}, "X_k contains NaN"),
        ({"y_k": with_nan(Y)}, "y_k contains NaN"),
        ({"y_k": Y[:2]}, "y_k has 2 value"),
    ],
)
def test_update_leaves_the_belief_as_it_was(change, message):
    belief = prior(KERNEL, Z)
    before = belief.mean.copy(), belief.covariance.copy()
    arguments = {"X_k": X, "y_k": Y} | change
    with pytest.raises(ValueError, match=message):
        belief.update(**arguments)
    np.testing.assert_array_equal(belief.mean, before[0])
    np.testing.assert_array_equal(belief.covariance, before[1])


def test_a_belief_by_way_of_inducing_points_takes_no_segments():
    with pytest.raises(ValueError, match="computed through inducing points"):
        posterior(KERNEL, X, Y, Z, Composite.full(3), inducing=X).update(X, Y)


def test_project_needs_a_belief_in_whitened_coordinates():
    with pytest.raises(ValueError, match="belief must come from"):
        project(posterior(KERNEL, X, Y, Z, Composite.full(3), inducing=X), KERNEL, Z)


def test_bad_arguments_of_prior_segment_and_sample_are_named():
    with pytest.raises(ValueError, match="Z contains NaN"):
        prior(KERNEL, with_nan(Z))
    with pytest.raises(ValueError, match="X contains NaN"):
        segment(with_nan(X))
    with pytest.raises(ValueError, match="n_draws must be"):
        prior(KERNEL, Z).sample(0)


def test_text_is_named_and_what_to_do_about_it():
    text, good = np.array([["1"], ["north"], ["3"]], dtype=object), np.arange(3.0)[:, None]
    model = CompositeGPRegressor(KERNEL, learning=None)
    for call in (lambda: model.fit(text, Y), lambda: model.fit(good, Y).predict(text)):
        with pytest.raises(ValueError, match=r"X has text where numbers should be.*'north'.*OneHotEncoder"):
            call()
    with pytest.raises(ValueError, match=r"y has text where numbers should be.*'north'"):
        model.fit(good, text[:, 0])
    times = pd.date_range("2024-01-01", periods=3, freq="h")
    with pytest.raises(
        ValueError, match=r"1 value\(s\) that are no numbers, the first 'north' at 2024-01-01 01:00"
    ):
        CompositeGPForecaster().fit(pd.Series(text[:, 0], times))


def test_lists_frames_and_single_precision_are_numbers_too():
    reference = posterior(KERNEL, X, Y, Z, Composite.full(3))
    lists = posterior(KERNEL, X.tolist(), Y.tolist(), Z.tolist(), Composite.full(3))
    singles = posterior(KERNEL, X.astype("f4"), Y.astype("i4"), Z.astype("f4"), Composite.full(3))
    for belief in (lists, singles):
        np.testing.assert_array_equal(belief.mean, reference.mean)


TIMES = pd.date_range("2020-01-01", periods=3)


@pytest.mark.parametrize(
    "times",
    [TIMES, TIMES.tz_localize("UTC"), TIMES.to_period("D"), TIMES - TIMES[0], pd.Series(TIMES).astype(object)],
    ids=["dates", "zone", "periods", "durations", "objects"],
)
def test_times_are_not_numbers(times):
    table = pd.DataFrame({"t": np.asarray(times) if times.dtype == object else times, "x": Y})
    for points, y, name in ((table, Y, "X"), (table[["t"]], Y, "X"), (X, table["t"], "y")):
        with pytest.raises(ValueError, match=f"{name} must be an array of real numbers: .*Give times as numbers"):
            CompositeGPRegressor(KERNEL, learning=None).fit(points, y)
    model = CompositeGPRegressor(KERNEL, learning=None).fit(table[["x"]].rename(columns={"x": "t"}), Y)
    with pytest.raises(ValueError, match="X must be an array of real numbers"):
        model.predict(table[["t"]])


def test_a_missing_value_of_pandas_in_columns_of_objects_is_named():
    table = pd.DataFrame({"a": [pd.NA, 1.0, 2.0]}, dtype=object)
    with pytest.raises(ValueError, match="X must be an array of real numbers: .*missing values as NaN"):
        CompositeGPRegressor(KERNEL, learning=None).fit(table, Y)


def test_labels_of_several_kinds():
    mixed = CompositeGPRegressor(KERNEL, learning=None).fit(X, Y, groups=["a", None, 3])
    assert [list(part) for part in mixed.segments_] == [[0], [1], [2]]


@pytest.mark.parametrize("function", [nearest, committee, posterior])
def test_columns_in_another_order_are_refused(function):
    table = pd.DataFrame(X, columns=["a", "b"])
    further = {
        "nearest": {},
        "committee": {"segments": [[0, 1], [2]]},
        "posterior": {"composite": Composite.full(3)},
    }
    options = further[function.__name__]
    function(KERNEL, table, Y, table[["a", "b"]], **options)
    with pytest.raises(ValueError, match=r"Z has the columns \['b', 'a'\], but X has \['a', 'b'\]"):
        function(KERNEL, table, Y, table[["b", "a"]], **options)


class TestAMeanWithManyCoefficients:
    @pytest.mark.parametrize("learning", [None, "composite_likelihood"])
    def test_more_than_observations(self, learning, rng):
        points = rng.normal(size=(10, 12))
        model = CompositeGPRegressor(RBF(5.0) + WhiteKernel(0.1), mean="linear", learning=learning)
        with pytest.raises(ValueError, match="13 unknown coefficients, and there are only 10 observations"):
            model.fit(points, points[:, 0])
        model.set_params(mean=Basis("linear", np.zeros((13, 1)), np.eye(13)), learning=None).fit(
            points, points[:, 0]
        )

    @pytest.mark.filterwarnings("ignore:Hyper-parameter")
    def test_nearly_as_many(self, rng):
        points = rng.normal(size=(60, 30))
        model = CompositeGPRegressor(RBF(5.0) + WhiteKernel(0.1), mean="linear")
        with pytest.warns(
            ConvergenceWarning, match="31 unknown coefficients for 60 observations.*too small, by some 30 %"
        ):
            model.fit(points, points[:, 0] + rng.normal(size=60))


def test_a_box_with_too_many_points():
    with pytest.raises(ValueError, match=r"size=8 points in each of 10 columns are 1,073,741,824 in all"):
        F.box(np.zeros(10), np.ones(10))
    points, _ = F.box(np.zeros(10), [1.0] * 2 + [0.0] * 8)
    assert points.shape == (64, 10)


def test_a_column_that_is_not_there_by_name():
    with pytest.raises(ValueError, match="'a' is not among the columns of X, which has no names"):
        F.derivative(X, "a")


class TestShortForms:
    def test_parameters_of_a_method_in_its_short_form(self):
        model = CompositeGPRegressor().set_params(prediction__n_neighbors=128, learning__tolerance=0.05)
        assert (model.prediction.n_neighbors, model.learning.tolerance) == (128, 0.05)
        assert CompositeGPRegressor().prediction == "nearest"  # the short form's own object is as it was
        assert Nearest().n_neighbors == "auto"
        model.set_params(prediction="composite", prediction__group_size=7)
        assert type(model.prediction).__name__ == "CompositeSum"

    def test_one_that_is_unknown(self):
        with pytest.raises(ValueError, match="prediction must be an object such as"):
            CompositeGPRegressor().set_params(prediction="best", prediction__n_neighbors=128)
        with pytest.raises(ValueError, match="Invalid parameter 'size'"):
            CompositeGPRegressor().set_params(prediction__size=128)
