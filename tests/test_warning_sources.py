"""Warnings name the user's line of code, whatever stands between it and this library."""

import inspect
import warnings
from threading import Thread

import numpy as np
import pytest
from sklearn.ensemble import BaggingRegressor
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from compositegp import CompositeGPRegressor, learn, segment

BOUND = 1.0 * RBF() + WhiteKernel(noise_level_bounds=(0.5, 2.0))  # ends on its lower bound


@pytest.fixture
def data(rng):
    X = rng.uniform(size=(80, 1))
    return X, np.sin(9 * X[:, 0])


def through_learn(X, y):
    learn(BOUND, X, y, segment(X, 40))


def through_fit(X, y):
    CompositeGPRegressor(BOUND).fit(X, y)


def through_fit_with_missing_targets(X, y):
    CompositeGPRegressor(Matern() + WhiteKernel(), learning=None).fit(X, np.where(X[:, 0] < 0.1, np.nan, y))


def through_fit_of_a_column(X, y):
    CompositeGPRegressor(Matern() + WhiteKernel(), learning=None).fit(X, y[:, None])


def through_partial_fit(X, y):
    CompositeGPRegressor(1.0 * RBF() + WhiteKernel()).partial_fit(X[:3], np.zeros(3))


def through_predict(X, y):
    model = CompositeGPRegressor(RBF(5.0), learning=None, prediction="rbcm", segment_size=40)
    model.fit(X, y).predict(X)


def through_a_pipeline(X, y):
    make_pipeline(StandardScaler(), CompositeGPRegressor(BOUND)).fit(X, y)


def through_a_nested_pipeline(X, y):
    make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), CompositeGPRegressor(BOUND))).fit(X, y)


def through_cross_validation(X, y):
    cross_val_score(CompositeGPRegressor(BOUND), X, y, cv=2)


def through_a_grid_search(X, y):
    GridSearchCV(CompositeGPRegressor(BOUND), {"segment_size": [40, 80]}, cv=2).fit(X, y)


def through_bagging(X, y):
    BaggingRegressor(CompositeGPRegressor(BOUND), n_estimators=2).fit(X, y)


CALLS = [value for name, value in list(globals().items()) if name.startswith("through_")]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_a_warning_names_the_users_line(data, call):
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        call(*data)
    assert record
    lines, start = inspect.getsourcelines(call)
    for warning in record:
        assert warning.filename == __file__
        assert start < warning.lineno < start + len(lines)


def test_two_models_on_two_lines_are_two_warnings(data):
    """Python's default filter shows a text once for each line: not once for all models."""
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("default")
        CompositeGPRegressor(BOUND).fit(*data)
        CompositeGPRegressor(BOUND).fit(*data)
    assert len({warning.lineno for warning in record}) == 2


def test_a_warning_of_a_thread_without_a_users_line_names_who_called_the_library(data):
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        worker = Thread(target=CompositeGPRegressor(BOUND).fit, args=data)
        worker.start()
        worker.join()
    assert record
    assert not any("compositegp/" in warning.filename for warning in record)
