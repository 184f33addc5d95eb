"""
A cluster, and a GPU
====================

The terms of a composite are independent, so the work divides. ``n_jobs`` uses the cores of one machine; ``DistributedGPRegressor`` fits
data in the partitions of a Dask collection where they lie; ``device="cuda"`` computes on a GPU where PyTorch finds one.
"""

import dask.dataframe as dd
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import Matern, WhiteKernel

from compositegp import CompositeGPRegressor
from compositegp.distributed import DistributedGPRegressor

rng = np.random.default_rng(0)
table = pd.DataFrame(rng.uniform(0, 10, size=(4_000, 2)), columns=["east", "north"]).sort_values("east")
table["y"] = np.sin(table.east) * np.cos(table.north) + 0.1 * rng.normal(size=len(table))
kernel = 1.0 * Matern([1.0, 1.0], nu=1.5) + WhiteKernel(0.01)

partitions = dd.from_pandas(table, npartitions=4)  # in earnest: dd.read_parquet("measurements/")
there = DistributedGPRegressor(kernel, learning=None).fit(partitions, target="y")
here = CompositeGPRegressor(kernel, learning=None).fit(table[["east", "north"]], table.y)
new = pd.DataFrame({"east": np.linspace(0, 10, 100), "north": 5.0})
print(f"largest difference: {np.abs(there.predict(new) - here.predict(new)).max():.2e}")

# %%
mean, std = there.predict(new, return_std=True)
figure, axes = plt.subplots(figsize=(8, 3), layout="constrained")
axes.fill_between(new.east, mean - 2 * std, mean + 2 * std, alpha=0.25, label="± 2 standard errors of y")
axes.plot(new.east, mean, label="mean, from the partitions")
axes.plot(new.east, np.sin(new.east) * np.cos(5.0), "--", color="black", linewidth=1, label="truth")
axes.set(xlabel="east, at north = 5", ylabel="y", ylim=(-0.7, 0.85))
axes.legend(frameon=False, ncols=3, fontsize="small", loc="upper center")
plt.show()

# %%
# A GPU takes one more argument. Where there is none, it says so; nothing is computed elsewhere in silence.

try:
    on_gpu = CompositeGPRegressor(kernel, learning=None, device="cuda").fit(table[["east", "north"]], table.y)
    print(f"largest difference: {np.abs(on_gpu.predict(new) - here.predict(new)).max():.2e}")
except (ImportError, ValueError) as reason:
    print(reason)
