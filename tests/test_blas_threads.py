"""BLAS is held to one thread for small matrices, and gets its threads back."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from threadpoolctl import threadpool_info

from compositegp import Composite, posterior, segment
from compositegp.backend import blas_threads_for

pytestmark = pytest.mark.usefixtures("two_blas_threads")


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_blas_threads_come_back_after_a_posterior(rng):
    X = rng.normal(size=(30, 2))
    posterior(RBF() + WhiteKernel(0.1), X, np.zeros(30), X, Composite.marginal(segment(X, 10)))
    assert blas_threads() == {2}


def test_blas_threads_come_back_from_concurrent_calls():
    def hold(seconds):
        with blas_threads_for(10), blas_threads_for(10):
            time.sleep(seconds)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(hold, [0.02, 0.1, 0.05, 0.01, 0.08, 0.03, 0.06, 0.04]))
    assert blas_threads() == {2}


def test_blas_is_held_to_one_thread_whichever_thread_asks():
    def inside():
        with blas_threads_for(10):
            return blas_threads()

    assert inside() == {1}
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(inside).result() == {1}
    assert inside() == {1}


def test_large_matrices_keep_all_the_threads():
    with blas_threads_for(10_000):
        assert blas_threads() == {2}
