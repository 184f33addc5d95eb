"""The regressor keeps scikit-learn's contract."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from compositegp import CompositeGPRegressor, CompositeLikelihood, CompositeSum, Inducing, Nearest
from compositegp.prediction import Committee

KERNEL = ConstantKernel(1.0) * Matern(1.0, nu=1.5) + WhiteKernel(0.1)


FIXED = CompositeGPRegressor(ConstantKernel(1.0) * Matern(1.0, nu=1.5) + WhiteKernel(0.1), learning=None)


def expected_failures(estimator):
    expected = {}
    if estimator.prediction == "composite":
        expected["check_methods_subset_invariance"] = "predictions in groups depend on each other"
    if estimator.get_params() != FIXED.get_params():
        expected["check_sample_weight_equivalence_on_dense_data"] = (
            "a weight divides the noise; the likelihood of repeated rows, which hyper-parameters are learned from, and "
            "the number of neighbors, segments and inducing points are not those of weighted ones"
        )
    return expected


@pytest.fixture
def data(rng):
    X = rng.uniform(0, 5, size=(300, 2))
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=300)


@pytest.mark.filterwarnings("ignore")  # what learning says of toy data, and checks that do not apply
@parametrize_with_checks(
    [
        CompositeGPRegressor(),
        CompositeGPRegressor(KERNEL, segment_size=8, conditioning_size=0, prediction="composite"),
        CompositeGPRegressor(
            learning=None, segment_size=8, conditioning_size=4, prediction=Nearest(6, group_size=1)
        ),
        CompositeGPRegressor(learning="fisher_average", segment_size=50, prediction="rbcm"),
        CompositeGPRegressor(learning=None, prediction=Inducing(50, "fitc")),
        FIXED,
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_pipeline_grid_search_and_cross_validation(data):
    X, y = data
    model = CompositeGPRegressor(KERNEL, learning=None, prediction=Nearest(n_neighbors=50))
    assert cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=3).min() > 0.9
    search = GridSearchCV(
        model, {"kernel__k2__noise_level": [0.01, 0.1], "prediction__n_neighbors": [2, 64]}, cv=3
    ).fit(X, y)
    assert search.best_params_["prediction__n_neighbors"] == 64
    assert search.best_score_ > 0.9


def test_clone_copies_parameters_and_no_state(data):
    model = CompositeGPRegressor(KERNEL, segment_size=77, prediction=CompositeSum(watch=[[0.0, 1.0]])).fit(*data)
    copy = clone(model)
    assert copy.get_params()["segment_size"] == 77
    with pytest.raises(NotFittedError):
        copy.kernel_  # noqa: B018


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_and_their_column_names(data, frame):
    X, y = data
    table = frame({"east": X[:, 0], "north": X[:, 1]})
    target = (pd.Series if frame is pd.DataFrame else pl.Series)(y)
    model = CompositeGPRegressor(KERNEL, learning=None).fit(table, target)
    assert list(model.feature_names_in_) == ["east", "north"]
    expected = CompositeGPRegressor(KERNEL, learning=None).fit(X, y).predict(X[:5])
    np.testing.assert_allclose(model.predict(table[:5]), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(
            table.rename(columns={"east": "west"}) if frame is pd.DataFrame else table.rename({"east": "w"})
        )
    with pytest.warns(UserWarning, match="valid feature names"):
        model.predict(X[:5])


def test_set_output_of_a_pipeline_hands_on_frames(data):
    X, y = data
    table = pd.DataFrame(X, columns=["a", "b"])
    pipeline = make_pipeline(StandardScaler(), CompositeGPRegressor(KERNEL, learning=None)).set_output(
        transform="pandas"
    )
    pipeline.fit(table, y)
    assert list(pipeline[-1].feature_names_in_) == ["a", "b"]
    assert pipeline.predict(table).shape == (300,)


def test_single_precision_comes_in_and_double_is_worked_with(data):
    X, y = data
    small = CompositeGPRegressor(KERNEL, learning=None).fit(X.astype(np.float32), y.astype(np.float32))
    mean, std = small.predict(X[:7].astype(np.float32), return_std=True)
    assert mean.dtype == std.dtype == np.float64
    np.testing.assert_allclose(
        mean, CompositeGPRegressor(KERNEL, learning=None).fit(X, y).predict(X[:7]), rtol=1e-4
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kernel", "rbf"),
        ("segment_size", 0),
        ("segmentation", "tiles"),
        ("conditioning_size", -1),
        ("learning", "adam"),
        ("prediction", "exact"),
        ("target_transform", "sqrt"),
        ("n_jobs", 0.5),
    ],
)
def test_bad_parameters_are_named(data, name, value):
    with pytest.raises(ValueError, match=f"{name} must be"):
        CompositeGPRegressor(**{name: value}).fit(*data)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"learning": CompositeLikelihood(0)}, "tolerance must be"),
        ({"prediction": Nearest(2.5)}, "n_neighbors must be"),
        ({"prediction": Nearest(group_size=0)}, "group_size must be"),
        ({"prediction": Nearest(local_mean="yes")}, "local_mean must be"),
        ({"prediction": CompositeSum(group_size=-1)}, "group_size must be"),
        ({"prediction": Inducing(0)}, "points must be"),
        ({"prediction": Inducing(rule="sor")}, "rule must be"),
        ({"prediction": Committee("vote")}, "rule must be"),
        ({"segmentation": 3}, "segmentation must be"),
        ({"learning": CompositeLikelihood(verbose="loud")}, "verbose must be"),
    ],
)
def test_bad_parameters_of_methods_are_named(data, parameters, message):
    with pytest.raises(ValueError, match=message):
        CompositeGPRegressor(**parameters).fit(*data)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, X: m.predict(X, variance="true"), "variance must be one of"),
        (lambda m, X: m.predict(X, return_cov=True, variance="honest"), "each point alone"),
        (lambda m, X: m.predict(X, noise_variance=-1), "noise_variance has a negative value"),
        (lambda m, X: m.predict_quantiles(X, 1.5), "q must be"),
        (lambda m, X: m.predict_interval(X, 95), "level must be"),
        (lambda m, X: m.sample_y(X, 0), "n must be"),
        (lambda m, X: m.predict(X[:, :1]), "features"),
        (lambda m, X: m.predict(X * np.nan), "NaN"),
    ],
)
def test_bad_arguments_are_named(data, call, message):
    model = CompositeGPRegressor(KERNEL, learning=None).fit(*data)
    with pytest.raises(ValueError, match=message):
        call(model, data[0])


def test_labels_have_to_fit_the_data(data):
    with pytest.raises(ValueError, match="one label for each"):
        CompositeGPRegressor(KERNEL, learning=None).fit(*data, groups=[0, 1, 2])


@pytest.mark.parametrize("prediction", [Nearest(40), CompositeSum(), Committee("rbcm"), Inducing(30)], ids=repr)
def test_a_pickle_predicts_the_same_and_holds_no_factors(data, prediction):
    X, y = data
    model = CompositeGPRegressor(KERNEL, learning=None, prediction=prediction).fit(X, y)
    expected = model.predict(X[:20], return_std=True)
    stored = pickle.dumps(model)
    assert len(stored) < 30_000  # the data, no factors
    np.testing.assert_array_equal(pickle.loads(stored).predict(X[:20], return_std=True), expected)


def test_parameters_of_prediction_may_change_after_fit(data):
    X, y = data
    model = CompositeGPRegressor(KERNEL, learning=None, prediction=Nearest(n_neighbors=40)).fit(X, y)
    few = model.predict(X)
    many = model.set_params(prediction=Nearest(n_neighbors=200)).predict(X)
    assert np.abs(few - many).max() > 1e-6
    np.testing.assert_array_equal(model.set_params(prediction=Nearest(n_neighbors=40)).predict(X), few)


@pytest.mark.usefixtures("two_blas_threads")
def test_results_do_not_depend_on_jobs(data):
    X, y = (values[:160] for values in data)
    for options in (
        {"prediction": Nearest(n_neighbors=40)},
        {"conditioning_size": 16, "prediction": CompositeSum(group_size=8)},
    ):
        models = [
            CompositeGPRegressor(
                KERNEL, segment_size=32, n_jobs=jobs, learning=CompositeLikelihood(tolerance=None), **options
            ).fit(X, y)
            for jobs in (1, 2)
        ]
        one, two = (model.predict(X, return_std=True) for model in models)
        np.testing.assert_array_equal(one, two)


def test_learning_without_a_kernel_is_silent_about_columns_that_do_not_matter(rng):
    X = rng.normal(size=(400, 3))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=400)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = CompositeGPRegressor().fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.theta_standard_errors_[1] < 0.5 < model.theta_standard_errors_[2]  # of the length scales


def test_user_kernels_on_a_bound_give_a_warning(rng):
    X = rng.uniform(size=(200, 1))
    with pytest.warns(Warning, match="noise_level ended on its lower bound"):
        CompositeGPRegressor(1.0 * RBF() + WhiteKernel(noise_level_bounds=(0.5, 2.0))).fit(X, np.sin(9 * X[:, 0]))


def test_labels_of_segments_travel_through_a_pipeline(data):
    X, y = data
    labels = np.arange(300) % 3
    with sklearn.config_context(enable_metadata_routing=True):
        model = CompositeGPRegressor(KERNEL, learning=None, prediction="composite").set_fit_request(groups=True)
        pipeline = make_pipeline(StandardScaler(), model).fit(X, y, groups=labels)
    segments = pipeline[-1].segments_
    assert len(segments) == 3
    np.testing.assert_array_equal(segments[1], np.flatnonzero(labels == 1))
