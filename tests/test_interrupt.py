"""A real SIGINT while processes learn: as by Ctrl-C on a terminal, and as by `kill -INT`."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc"),
]

LONG = 600  # seconds that a worker would go on for, if nobody ended it
SOON = 30  # seconds in which an interrupted program ends, on a slow machine

# Two segments of 400 points are two tasks. After the first step each of them waits in its worker, and says so.
SCRIPT = f"""
import os, sys, time
from pathlib import Path
import numpy as np
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from compositegp import CompositeLikelihood, learn, segment
from compositegp.learning import FisherAverage

flag, program = Path(sys.argv[1]), os.getpid()

class Waiting(RBF):
    def __call__(self, X, Y=None, eval_gradient=False):
        if os.getpid() != program and flag.exists():
            os.write(1, b"working\\n")
            time.sleep({LONG})
        return super().__call__(X, Y, eval_gradient)

rng = np.random.default_rng(0)
X = rng.uniform(0, 9, size=(800, 1))
y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=800)

def learned(method, n_jobs=2, **options):
    kernel = 1.0 * Waiting() + WhiteKernel()
    return learn(kernel, X, y, segment(X, 400), learning=method(None), conditioning_size=0, n_jobs=n_jobs, **options)

def wait(progress):
    flag.touch()
"""
RETURNS = """
found = learned(FisherAverage, callback=wait, on_interrupt="return")
flag.unlink()
print("returned", found.converged, len(found.history), flush=True)
two, one = (learned(CompositeLikelihood, n_jobs) for n_jobs in (2, 1))
print("again", two.converged, (two.theta == one.theta).all())
"""
RAISES = """
learned(CompositeLikelihood, callback=wait)
print("not interrupted")
"""


def group_of(leader):
    """Processes of a group that are alive; those that only wait to be asked for their exit code are not."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, group = stat.read_text().rpartition(")")[2].split()[:3]
        except OSError:  # it has just ended
            continue
        if int(group) == leader and state not in "ZX":
            found.append(int(stat.parent.name))
    return found


@pytest.mark.parametrize(
    ("commands", "send"),
    [pytest.param(RAISES, os.killpg, id="on a terminal"), pytest.param(RETURNS, os.kill, id="by kill")],
)
def test_sigint_ends_learning_and_its_processes(tmp_path, commands, send):
    """A terminal sends it to the program and its workers, `kill` to the program alone."""
    program = subprocess.Popen(
        [sys.executable, "-c", SCRIPT + commands, tmp_path / "flag"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    watchdog = threading.Timer(LONG / 3, os.killpg, (program.pid, signal.SIGKILL))
    watchdog.start()
    try:
        assert [program.stdout.readline() for _ in range(2)] == ["working\n"] * 2  # in both workers
        assert len(group_of(program.pid)) >= 3
        time.sleep(0.5)  # joblib itself can be left in disorder while it still hands tasks out
        send(program.pid, signal.SIGINT)
        sent = time.monotonic()
        if commands is RETURNS:
            assert program.stdout.readline() == "returned False 2\n"
            assert time.monotonic() - sent < SOON
            out, err = program.communicate(timeout=LONG / 3)
            assert (program.returncode, out) == (0, "again True True\n")
            assert "Learning was interrupted; this is the best so far." in err
        else:
            out, err = program.communicate(timeout=SOON)
            assert (program.returncode, out) == (-signal.SIGINT, "")
            assert err.splitlines()[-1] == "KeyboardInterrupt"
        deadline = time.monotonic() + SOON
        while (left := group_of(program.pid)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert left == []
    finally:
        watchdog.cancel()
        for process in group_of(program.pid):
            os.kill(process, signal.SIGKILL)
        program.communicate()
