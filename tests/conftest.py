import importlib.util
import os

if "PYTEST_XDIST_WORKER" in os.environ:  # before NumPy is imported, which reads them
    # Each worker has a core. Several BLAS threads each would wait for one another, for many times the work itself, and
    # n_jobs=-1 would start processes that have no core.
    for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT"):
        os.environ.setdefault(_name, "1")

import numpy as np
import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

from compositegp import use_device

settings.register_profile("suite", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("thorough", max_examples=500, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))


def pytest_terminal_summary(terminalreporter):
    """Groups of tests that are not skipped one by one, but are not there at all."""
    missing = []
    found = {parameter.id for parameter in back_ends()}
    if "torch" not in found:
        missing.append("every test that takes `device`, on PyTorch: it is not installed (make torch)")
    if "cuda" not in found:
        missing.append("every test that takes `device`, on a GPU: there is none, or PyTorch is not installed")
    if "not slow" in terminalreporter.config.option.markexpr:
        missing.append("statistical and large tests: make test-slow")
    terminalreporter.section("not collected here")
    for line in missing:
        terminalreporter.line(line)


@pytest.fixture
def rng():
    return np.random.default_rng(20180131)


@pytest.fixture
def two_blas_threads():
    """BLAS has two threads before the test, as in a program that has the machine to itself."""
    with threadpool_limits(2, user_api="blas"):
        yield


def back_ends():
    """Where the terms can be worked on here: by NumPy and, where it is installed, by PyTorch."""
    found = [pytest.param(None, id="numpy")]
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(1)  # of small matrices
        found.append(pytest.param("cpu", id="torch"))
        if torch.cuda.is_available():
            found.append(pytest.param("cuda", id="cuda"))
        else:  # Triton reads it when it is first imported: its programs then run on the processor
            os.environ["TRITON_INTERPRET"] = "1"
    return found


@pytest.fixture(params=back_ends())
def device(request):
    """Every test that takes this runs on each back end."""
    with use_device(request.param):
        yield request.param


@pytest.fixture(scope="module")
def cluster():
    """A Dask cluster of two worker processes."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as found:
        yield found


@pytest.fixture
def client(cluster):
    """A client of the cluster."""
    from distributed import Client

    with Client(cluster) as found:
        found.wait_for_workers(2)
        yield found


@pytest.fixture
def table(rng):
    """A data frame of 600 rows with a target `y`, sorted by the column `a`."""
    import pandas as pd

    X = rng.uniform(0, 6, size=(600, 2))
    y = np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=600)
    return pd.DataFrame({"a": X[:, 0], "y": y, "b": X[:, 1]}).sort_values("a", ignore_index=True)
