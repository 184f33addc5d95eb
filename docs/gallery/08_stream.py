"""
A stream that survives a kill
=============================

Data come in segments, for ever, and the belief about fixed test points is kept up to date in constant memory. The model is saved after
every segment; a save that is interrupted leaves nothing half-written. So a new process goes on where the old one was killed, and ends
with the belief of a process that nobody killed. Here the kills are real ones. (For time series, ``compositegp stream`` does all this.)
"""

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from compositegp import CompositeGPRegressor

# %%
# The program takes in one segment after the other. The number of a file is that of the segments in it, so that a segment is neither lost
# nor counted twice, wherever the kill comes.

program = """
import sys
from pathlib import Path
import numpy as np
from sklearn.gaussian_process.kernels import Matern, WhiteKernel
from compositegp import CompositeGPRegressor, CompositeSum

folder, Z = Path(sys.argv[1]), np.linspace(0, 10, 50)[:, None]
files = sorted(folder.glob("*.cgp"))
if files:
    model = CompositeGPRegressor.load(files[-1])
else:
    kernel = 1.0 * Matern(2.0, nu=1.5) + WhiteKernel(0.09)
    model = CompositeGPRegressor(kernel, learning=None, prediction=CompositeSum(watch=Z))
for number in range(int(files[-1].stem) if files else 0, 20):
    rng = np.random.default_rng(number)  # what arrives: 40 noisy values somewhere
    X = rng.uniform(0, 10, size=(40, 1))
    model.partial_fit(X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=40))
    model.save(folder / f"{number + 1:09d}.cgp")
    for file in sorted(folder.glob("*.cgp"))[:-1]:
        file.unlink()
    print(number + 1, model.predict(Z, return_std=True, latent=True)[1].mean(), flush=True)
"""


def run(folder, kill_after=None):
    """Run the program, and kill it a moment after it has reported so many segments. Return what it reported."""
    process = subprocess.Popen([sys.executable, "-c", program, folder], stdout=subprocess.PIPE, text=True)
    reported = []
    for line in process.stdout:
        reported.append([float(word) for word in line.split()])
        if reported[-1][0] == kill_after:
            time.sleep(0.003)  # so that it is in the middle of something
            process.send_signal(signal.SIGKILL)
            break
    rest = process.communicate()[0]
    reported += [[float(word) for word in line.split()] for line in rest.splitlines()]
    print(f"ended with {process.returncode} after segment {reported[-1][0]:.0f}")
    return reported


whole, broken = Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp())
undisturbed = run(whole)
pieces = [run(broken, kill_after=7), run(broken, kill_after=13), run(broken)]

# %%
# The promise: the last file of the killed stream has, bit for bit, the belief of the one that ran undisturbed.

Z = np.linspace(0, 10, 50)[:, None]
(file,), (other,) = whole.glob("*.cgp"), broken.glob("*.cgp")
expected, found = (CompositeGPRegressor.load(path).predict(Z, return_std=True) for path in (file, other))
assert np.array_equal(expected, found)
print(f"the same belief; {other.stat().st_size / 1024:.0f} kB, however long the stream")

figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.plot(*np.transpose(undisturbed), color="gray", linewidth=4, alpha=0.4, label="undisturbed")
for number, piece in enumerate(pieces):
    axes.plot(*np.transpose(piece), "o-", markersize=4, label=f"process {number + 1}")
    if number < 2:
        axes.axvline(
            piece[-1][0] + 0.5, color="black", linestyle="--", linewidth=0.8, label=None if number else "SIGKILL"
        )
axes.set(xlabel="segments", ylabel="mean standard error of f", yscale="log", xticks=range(0, 21, 5))
axes.legend(frameon=False)
plt.show()
