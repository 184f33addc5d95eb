"""Results do not depend on workers that die, and a model does not depend on its cluster."""

import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern, WhiteKernel

from compositegp import CompositeLikelihood

pytest.importorskip("distributed")
import dask
import dask.dataframe as dd

from compositegp.distributed import DistributedGPRegressor

KNOWN = 1.2 * Matern([0.8, 1.1], nu=1.5) + WhiteKernel(0.05)
FEW_PASSES = Matern([0.8, 1.1], "fixed", nu=1.5) + WhiteKernel(0.05)  # only the noise is learned


def kill_one_worker_while(client, work):
    """Run `work` in a thread, kill a worker process once tasks are running on it, and return the result."""
    result = []
    thread = threading.Thread(target=lambda: result.append(work()))
    thread.start()
    victim = None
    while thread.is_alive() and victim is None:
        busy = [address for address, tasks in client.processing().items() if tasks]
        if busy:
            info = client.scheduler_info()["workers"].get(busy[0])
            victim = None if info is None else client.run(os.getpid, workers=[busy[0]])[busy[0]]
        time.sleep(0.01)
    killed = thread.is_alive() and victim is not None
    if killed:
        os.kill(victim, signal.SIGKILL)
    thread.join(timeout=120)
    assert not thread.is_alive()
    return result[0], killed


def slow(part):
    time.sleep(0.05)
    return part


def test_a_model_outlives_its_cluster(table, client):
    X = table[["a", "b"]].to_numpy()[:5]
    model = DistributedGPRegressor(KNOWN, learning=None).fit(dd.from_pandas(table, npartitions=3), target="y")
    expected, stored = model.predict(X), pickle.dumps(model)
    client.restart()
    with dask.config.set(scheduler="synchronous"):
        np.testing.assert_allclose(pickle.loads(stored).predict(X), expected, rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_a_worker_that_dies_changes_nothing(table, client):
    frame = dd.from_pandas(table, npartitions=6).map_partitions(slow, meta=table)
    Z = table[["a", "b"]].to_numpy()[:40] + 0.02
    options = {
        "segment_size": 50,
        "prediction": "composite",
        "persist": False,  # every pass reads the partitions again
        "learning": CompositeLikelihood(tolerance=0.5, start="kernel"),
    }

    def work():
        model = DistributedGPRegressor(FEW_PASSES, **options).fit(frame, target="y")
        return model.kernel_.theta, *model.predict(Z, return_std=True)

    undisturbed = work()
    found, killed = kill_one_worker_while(client, work)
    assert killed, "the work was over before the worker died"
    for theirs, ours in zip(undisturbed, found, strict=True):
        np.testing.assert_array_equal(ours, theirs)
