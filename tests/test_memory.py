"""Memory stays bounded however many test points there are."""

import subprocess
import sys

import pytest

from compositegp import CompositeSum, Nearest

SCRIPT = """
import resource, sys, warnings
import numpy as np
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from compositegp import CompositeGPRegressor, CompositeSum, Nearest

n, m, limit, options = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), eval(sys.argv[4])
rng = np.random.default_rng(0)
X, Z = rng.uniform(size=(n, 2)), rng.uniform(size=(m, 2))
y = np.sin(20 * X[:, 0]) + 0.1 * rng.normal(size=n)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model = CompositeGPRegressor(RBF(0.01) + WhiteKernel(0.01), learning=None, **options).fit(X, y)
mean, std = model.predict(Z, return_std=True)
used = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**10
assert np.isfinite(mean).all() and np.isfinite(std).all()
print(f"{used:.0f} MB")
assert used < limit, f"{used:.0f} MB"
"""
PLAIN = {"segment_size": 128, "conditioning_size": 0, "prediction": CompositeSum(group_size=64)}


def run(n, m, limit, options):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(n), str(m), str(limit), repr(options)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "options", [{"prediction": Nearest(n_neighbors=16, group_size=16)}, PLAIN], ids=["nearest", "composite"]
)
def test_many_test_points_need_bounded_memory(options):
    run(5_000, 30_000, 200, options)  # the covariance of all the test points with the data would be 1,200 MB


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"prediction": Nearest(n_neighbors=64)}, PLAIN], ids=["nearest", "composite"])
def test_a_million_test_points_against_a_hundred_thousand_observations(options):
    run(100_000, 1_000_000, 2000, options)
