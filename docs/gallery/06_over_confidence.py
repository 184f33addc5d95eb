"""
Over-confidence, seen before it bites
=====================================

A composite adds up what its segments say. Where the segments share a pattern, it counts the pattern once for each of them, and claims
too small an error. ``analysis.compare`` computes claimed and actual error before any data are seen.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, WhiteKernel

from compositegp import Composite, analysis, conditioning_sets, segment
from compositegp.plotting import plot_confidence

kernel = 1.0 * RBF(2000.0) * ExpSineSquared(1.0, 24.0) + 0.3 * RBF(3.0) + WhiteKernel(0.5)
X = np.arange(400.0)[:, None]
Z = 400.0 + np.arange(1.0, 13.0)[:, None]
segments = segment(X, 100, "sequential")

plain = analysis.compare(kernel, X, Z, Composite.marginal(segments))
print(plain)

# %%
# Segments that are conditioned on the points before them count little twice:

given = conditioning_sets(X, segments, 100, kernel=kernel)
conditional = analysis.compare(kernel, X, Z, Composite.conditional(segments, given))
print(conditional)

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharex=True, sharey=True)
for panel, report, title in zip(
    axes, (plain, conditional), ("plain composite", "conditional composite"), strict=True
):
    plot_confidence(report, axes=panel)
    panel.set_title(title)
plt.show()
