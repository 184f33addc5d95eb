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
figure, axes = plt.subplots(figsize=(9, 3.6), layout="constrained")
axes.plot(X[:, 0], y, ".", color="silver", markersize=3, label="observations")
band = (exact.mean - 2 * exact.standard_deviation, exact.mean + 2 * exact.standard_deviation)
axes.fill_between(Z[:, 0], *band, color="C0", alpha=0.25, linewidth=0, label="exact: ± 2 standard errors")
axes.plot(Z[:, 0], exact.mean, color="C0", linewidth=2, label="exact: mean")
axes.plot(Z[:, 0], mine.mean, "--", color="C1", linewidth=1, label="own terms: mean")
ends = np.stack([mine.mean - 2 * mine.standard_deviation, mine.mean + 2 * mine.standard_deviation], axis=1)
axes.plot(Z[:, 0], ends, ":", color="C1", linewidth=1, label=["own terms: ± 2 standard errors", None])
axes.set(xlabel="hour", ylabel="f")
figure.legend(frameon=False, fontsize="small", ncols=5, loc="outside upper center")
plt.show()
