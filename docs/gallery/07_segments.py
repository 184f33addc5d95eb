"""
Choosing segments
=================

Larger segments, or segments given their neighbors, are more accurate and take longer. ``choose_segmentation`` computes both for many
plans, and returns the cheapest one that is accurate enough.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import Matern, WhiteKernel

from compositegp.design import choose_segmentation
from compositegp.plotting import plot_trade_off

rng = np.random.default_rng(0)
kernel = 1.0 * Matern([1.0, 1.0], nu=1.5) + WhiteKernel(0.05)
X = rng.uniform(0, 20, size=(4_000, 2))
Z = rng.uniform(0, 20, size=(40, 2))
design = choose_segmentation(kernel, X, Z, tolerance=0.05)
print(design)

# %%
figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
plot_trade_off(design, axes=axes)
plt.show()
