"""The estimator with joblib's Dask backend."""

import joblib
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from compositegp import CompositeGPRegressor, Nearest

pytest.importorskip("distributed")

KERNEL = ConstantKernel() * Matern([1.0, 1.0], nu=1.5) + WhiteKernel()
TRUTH = 1.2 * Matern([0.8, 1.1], nu=1.5) + WhiteKernel(0.05)


@pytest.mark.usefixtures("two_blas_threads")
def test_the_estimator_runs_on_a_dask_cluster_with_the_same_bits(client, rng):
    X = rng.uniform(0, 12, size=(900, 2))
    y = np.linalg.cholesky(TRUTH(X)) @ rng.normal(size=900)
    Z = rng.uniform(0, 6, size=(200, 2))

    def work(**options):
        model = CompositeGPRegressor(KERNEL, segment_size=100, prediction=Nearest(n_neighbors=64), **options).fit(
            X, y
        )
        return model.kernel_.theta, *model.predict(Z, return_std=True)

    expected = work()
    with joblib.parallel_config(backend="dask"):
        found = work(n_jobs=-1)
    for theirs, ours in zip(expected, found, strict=True):
        np.testing.assert_array_equal(ours, theirs)
