"""The adapter for sktime: sktime's own tests, and the forecasts of the forecaster itself."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sktime", reason="no sktime: pip install 'compositegp[sktime]'")

from sktime.utils.estimator_checks import check_estimator

from compositegp.forecasting import CompositeGPForecaster
from compositegp.forecasting.sktime import SktimeForecaster

# sktime 1.2 announces for each of its forecasters that a default of theirs will change.
pytestmark = pytest.mark.filterwarnings("ignore:.*remember_data:FutureWarning")


def monthly(n=72):
    rng = np.random.default_rng(0)
    months = np.arange(n)
    values = 10 + 3 * np.sin(2 * np.pi * months / 12) + 0.3 * rng.normal(size=n)
    return pd.Series(values, index=pd.period_range("2018-01", periods=n, freq="M"), name="sales")


@pytest.mark.slow  # 200 small fits
@pytest.mark.filterwarnings("ignore")  # sktime warns about itself
def test_it_passes_all_the_tests_of_sktime():
    one = SktimeForecaster(**SktimeForecaster.get_test_params()[-1])
    results = check_estimator(one, verbose=False)
    assert len(results) > 100
    assert {name: result for name, result in results.items() if result != "PASSED"} == {}


@pytest.mark.filterwarnings("ignore")  # sktime warns about itself
def test_it_passes_some_tests_of_sktime():
    some = ["test_doctest_examples", "test_get_test_params_coverage", "test__y_remember_data", "test_clone"]
    results = check_estimator(SktimeForecaster, tests_to_run=some, verbose=False)
    assert len(results) >= 4
    assert {name: result for name, result in results.items() if result != "PASSED"} == {}


def test_parameters_are_those_of_the_forecaster():
    ours, theirs = CompositeGPForecaster().get_params(), SktimeForecaster().get_params()
    assert {name: value for name, value in ours.items() if name in theirs} == theirs


def test_forecasts_are_those_of_the_forecaster():
    y = monthly()
    adapted = SktimeForecaster(None, search=False, horizon=6).fit(y, fh=[1, 3, 6])
    plain = CompositeGPForecaster(None, search=False, horizon=6).fit(y.set_axis(y.index.to_timestamp()))
    expected = plain.predict(6, [0.1, 0.9]).iloc[[0, 2, 5]]
    found = adapted.predict()
    assert found.name == "sales"
    assert list(map(str, found.index)) == ["2024-01", "2024-03", "2024-06"]
    np.testing.assert_allclose(found, expected["mean"])
    quantiles = adapted.predict_quantiles(alpha=[0.1, 0.9])
    np.testing.assert_allclose(quantiles, expected[["q0.1", "q0.9"]])
    np.testing.assert_allclose(adapted.predict_var().to_numpy()[:, 0], expected["std"] ** 2)
    with pytest.raises(NotImplementedError, match="sample"):
        adapted.predict_var(cov=True)


def test_updates_are_those_of_the_forecaster():
    y = monthly()
    adapted = SktimeForecaster(None, search=False, horizon=6).fit(y[:66])
    adapted.update(y[66:])
    plain = CompositeGPForecaster(None, search=False, horizon=6)
    times = y.set_axis(y.index.to_timestamp())
    plain.fit(times[:66]).update(times[66:])
    np.testing.assert_allclose(adapted.predict([1, 2]), plain.predict(2)["mean"])


def test_columns_and_whole_numbers(rng):
    heat = rng.normal(size=130)
    y = pd.Series(5 + 2 * heat[:120] + 0.1 * rng.normal(size=120), index=np.arange(7, 127))
    X = pd.DataFrame({"heat": heat}, index=np.arange(7, 137))
    adapted = SktimeForecaster(None, search=False).fit(y, X[:120], fh=[2, 9])
    found = adapted.predict(X=X[120:])
    assert list(found.index) == [128, 135]
    np.testing.assert_allclose(found, 5 + 2 * heat[[121, 128]], rtol=0, atol=0.6)
