"""BLAS is held to one thread for small matrices, and gets its threads back."""

import compositegp


def test_blas_threads_come_back(rng):
    import numpy as np
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    from threadpoolctl import threadpool_info

    before = [pool["num_threads"] for pool in threadpool_info()]
    X = rng.normal(size=(30, 2))
    compositegp.posterior(
        RBF() + WhiteKernel(0.1), X, np.zeros(30), X, compositegp.Composite.marginal(compositegp.segment(X, 10))
    )
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_blas_threads_come_back_from_concurrent_calls():
    import time
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import threadpool_info

    from compositegp.backend import blas_threads_for

    def hold(seconds):
        with blas_threads_for(10), blas_threads_for(10):
            time.sleep(seconds)

    before = [pool["num_threads"] for pool in threadpool_info()]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(hold, [0.02, 0.1, 0.05, 0.01, 0.08, 0.03, 0.06, 0.04]))
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_blas_is_held_to_one_thread_whichever_thread_asks():
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import threadpool_info

    from compositegp.backend import blas_threads_for

    def inside():
        with blas_threads_for(10):
            return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    assert inside() == {1}
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(inside).result() == {1}
    assert inside() == {1}
