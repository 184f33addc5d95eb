"""
Your own terms, your own kernel
===============================

A method is a choice of terms: index sets with weights. Here they are the hours of the day, each given the hour before it. And any kernel
of scikit-learn's language works, one's own included.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import Kernel, NormalizedKernelMixin, StationaryKernelMixin, WhiteKernel

from compositegp import Composite, posterior


class Triangle(StationaryKernelMixin, NormalizedKernelMixin, Kernel):
    """Correlation falls in a straight line to zero at `reach`: valid in one column."""

    def __init__(self, reach=1.0):
        self.reach = reach

    def __call__(self, X, Y=None, eval_gradient=False):
        Y = X if Y is None else Y
        return np.maximum(1.0 - np.abs(X - Y.T) / self.reach, 0.0)


rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 24, size=(600, 1)), axis=0)
y = np.sin(X[:, 0] / 2) + 0.3 * rng.normal(size=600)
Z = np.linspace(0, 24, 200)[:, None]
kernel = Triangle(4.0) + WhiteKernel(0.09)

hours = [np.flatnonzero((X[:, 0] >= hour) & (X[:, 0] < hour + 1)) for hour in range(24)]
terms = []
for hour in range(24):
    if hour:  # p(hour | hour before) = p(both) / p(hour before)
        terms += [(np.concatenate([hours[hour - 1], hours[hour]]), 1.0), (hours[hour - 1], -1.0)]
    else:
        terms += [(hours[0], 1.0)]
mine = posterior(kernel, X, y, Z, Composite(terms))
exact = posterior(kernel, X, y, Z, Composite.full(len(X)))
print(f"largest difference of means: {np.abs(mine.mean - exact.mean).max():.3f}")

# %%
figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
axes.plot(X[:, 0], y, ".", color="lightgray", markersize=4)
for belief, name, style in ((exact, "exact", "-"), (mine, "own terms", "--")):
    axes.plot(Z[:, 0], belief.mean, style, label=name)
    axes.plot(Z[:, 0], belief.mean + 2 * belief.standard_deviation, style, color="gray", linewidth=0.8)
    axes.plot(Z[:, 0], belief.mean - 2 * belief.standard_deviation, style, color="gray", linewidth=0.8)
axes.set(xlabel="hour", ylabel="f, ± 2 standard errors")
axes.legend()
plt.show()
