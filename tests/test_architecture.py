"""Layers point one way, and nothing heavy is imported unasked."""

import ast
import subprocess
import sys
from pathlib import Path

import compositegp

PACKAGE = Path(compositegp.__file__).parent
LAYERS = [
    {"arrays", "devices", "threads", "messages", "validation", "linalg", "kernels", "means", "encoding", "archive"},
    {"composite"},
    {"posteriors", "learning", "analysis", "simulate"},
    {"committee"},
    {"estimators"},
    {"forecasting", "datasets", "reproduction", "distributed"},
    {"cli", "__main__"},
]


def layer_of(module):
    name = module.split(".")[1]
    (found,) = [level for level, names in enumerate(LAYERS) if name in names]
    return found


def test_lower_layers_never_import_higher_ones():
    for path in PACKAGE.rglob("*.py"):
        relative = path.relative_to(PACKAGE)
        if relative.name == "__init__.py" and len(relative.parts) == 1:
            continue
        own = layer_of("compositegp." + relative.with_suffix("").parts[0])
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("compositegp."):
                assert layer_of(node.module) <= own, f"{relative} imports {node.module}"


def test_public_names_exist():
    assert all(hasattr(compositegp, name) for name in compositegp.__all__)
    assert compositegp.__all__ == sorted(compositegp.__all__)


def test_optional_packages_are_not_imported():
    heavy = "{'torch', 'matplotlib', 'pandas', 'polars', 'dask'}"
    needed = (
        "import sys, joblib, sklearn.gaussian_process, sklearn.utils.validation"  # which may import some themselves
    )
    ours = "before = set(sys.modules); import compositegp; new = set(sys.modules) - before"
    code = f"{needed}; {ours}; print({heavy} & new or None)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "None\n"
    )


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

    from compositegp.threads import blas_threads_for

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

    from compositegp.threads import blas_threads_for

    def inside():
        with blas_threads_for(10):
            return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    assert inside() == {1}
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(inside).result() == {1}
    assert inside() == {1}
