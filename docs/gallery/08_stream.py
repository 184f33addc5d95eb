"""
A stream that survives a kill
=============================

Data come in segments, for ever, and the belief about fixed test points is kept up to date in constant memory. The model is saved after
every segment; a save that is interrupted leaves the old file whole, so that a new process goes on where the old one was killed.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import Matern, WhiteKernel

from compositegp import CompositeGPRegressor, CompositeSum

rng = np.random.default_rng(0)
Z = np.linspace(0, 10, 50)[:, None]
file = Path(tempfile.mkdtemp()) / "stream.cgp"


def segment_of_the_stream(number):
    """What arrives: 40 noisy values somewhere."""
    X = rng.uniform(0, 10, size=(40, 1))
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=40)


kernel = 1.0 * Matern(2.0, nu=1.5) + WhiteKernel(0.09)
model = CompositeGPRegressor(kernel, learning=None, prediction=CompositeSum(watch=Z))
errors = []
for number in range(20):
    if number == 10:  # the process is killed here, and another one begins
        del model
        model = CompositeGPRegressor.load(file)
    model.partial_fit(*segment_of_the_stream(number))
    model.save(file)
    errors.append(model.predict(Z, return_std=True, latent=True)[1].mean())
print(f"{file.stat().st_size / 1024:.0f} kB, however long the stream")

# %%
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.plot(np.arange(1, 21), errors, "o-")
axes.axvline(10.5, color="gray", linestyle="--")
axes.text(10.7, max(errors), "killed, read again", va="top")
axes.set(xlabel="segments", ylabel="mean standard error", yscale="log")
plt.show()
