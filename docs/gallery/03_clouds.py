"""
Fill the clouds in an image
===========================

A simulated temperature on a grid of 1 km with missing patches: predict them, with the error of every cell. From the command line:
``compositegp fill temperature.nc --variable lst --out filled.nc --picture filled.png``.
"""

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from compositegp.simulate import stationary_field
from compositegp.spatial import fill

rng = np.random.default_rng(0)
kernel = ConstantKernel(4.0) * Matern(12.0, nu=0.5) + WhiteKernel(0.01)
truth = 20.0 + stationary_field(kernel, (60, 80), random_state=0)[0]
rows, columns = np.mgrid[:60, :80]
clouds = np.zeros_like(truth, dtype=bool)
for row, column, radius in zip(rng.uniform(0, 60, 12), rng.uniform(0, 80, 12), rng.uniform(3, 9, 12), strict=True):
    clouds |= (rows - row) ** 2 + (columns - column) ** 2 < radius**2
seen = xr.DataArray(
    np.where(clouds, np.nan, truth),
    dims=("y", "x"),
    coords={"y": np.arange(60.0), "x": np.arange(80.0)},
    name="lst",
)
filled = fill(seen)
print(filled)

# %%
# What was observed stays. The standard error grows toward the middle of a cloud.

figure, axes = plt.subplots(1, 3, figsize=(10, 3), layout="constrained", sharey=True)
ends = {"vmin": truth.min(), "vmax": truth.max()}
for panel, values, title in zip(axes[:2], (seen, filled["mean"]), ("seen", "filled"), strict=True):
    picture = panel.imshow(values, origin="lower", **ends)
    panel.set(title=title, xlabel="x, km")
figure.colorbar(picture, ax=axes[:2], label="temperature, °C")
figure.colorbar(axes[2].imshow(filled["std"], origin="lower", cmap="magma"), ax=axes[2], label="standard error, °C")
axes[0].set_ylabel("y, km")
axes[2].set(title="error", xlabel="x, km")
plt.show()

# %%
# Here the truth is known, so that the error bars can be checked in the clouds:

errors = (filled["mean"].values - truth)[clouds] / filled["std"].values[clouds]
print(f"within two standard errors: {np.mean(np.abs(errors) < 2):.3f}")
