"""
A first fit
===========

Fit noisy values, predict between and beyond them, and draw the error bars.
"""

import matplotlib.pyplot as plt
import numpy as np

from compositegp import CompositeGPRegressor

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 10, size=(200, 1)), axis=0)
X = X[(X[:, 0] < 4) | (X[:, 0] > 5.5)]  # a gap
y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=len(X))

model = CompositeGPRegressor().fit(X, y)
print(model.kernel_)

# %%
# ``predict_distribution`` predicts once and answers every question. The band is about new observations; it is wider in the gap and
# beyond the data.

Z = np.linspace(-1, 12, 300)[:, None]
found = model.predict_distribution(Z)
lower, upper = found.interval(0.95)

figure, axes = plt.subplots(figsize=(8, 3.5), layout="constrained")
axes.fill_between(Z[:, 0], lower, upper, alpha=0.25, label="95 % of new observations")
axes.plot(Z[:, 0], found.mean, label="mean")
axes.plot(X[:, 0], y, ".", color="black", markersize=4, label="observations")
axes.plot(Z[:, 0], np.sin(Z[:, 0]), "--", color="gray", label="truth")
axes.set(xlabel="x", ylabel="y")
axes.legend(ncols=4, fontsize="small", loc="lower left")
plt.show()
