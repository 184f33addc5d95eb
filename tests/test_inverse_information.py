"""Error covariances where information is plenty, missing, shared, or too little for a number."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compositegp.backend import invert_information, pseudo_invert_information


@given(st.integers(1, 5), st.integers(0, 1000), st.floats(-120, 120))
def test_units_do_not_matter(p, seed, power):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(p, p + 3))
    units = 10.0 ** np.linspace(0, power, p)
    expected = np.linalg.inv(root @ root.T)
    found = invert_information(units[:, None] * (root @ root.T) * units)
    np.testing.assert_allclose(
        units[:, None] * found * units, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max()
    )


@pytest.mark.parametrize("little", [0.0, 5e-324, 1e-323, 1e-310, 1e-305])
def test_less_than_a_variance_can_hold_is_none(little):
    information = np.diag([18.4, little, 0.5])
    information[0, 1] = information[1, 0] = -min(little, 2e-323)
    np.testing.assert_allclose(np.diagonal(invert_information(information)), [1 / 18.4, np.inf, 2.0])
    np.testing.assert_allclose(np.diagonal(pseudo_invert_information(information)), [1 / 18.4, 0.0, 2.0])


def test_parameters_that_are_not_distinguished():
    found = invert_information(np.array([[2.0, 2.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 4.0]]))
    np.testing.assert_allclose(found, [[np.inf, 0, 0], [0, np.inf, 0], [0, 0, 0.25]])
