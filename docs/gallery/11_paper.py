"""
The paper in one page
=====================

Liu, Zachariah and Ngai split a series into segments, treat each by an exact GP, and add up what the segments say about the test points.
The result is as cheap as the segments are short, and close to the exact GP; its claimed error is another matter.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from compositegp import Composite, posterior, prior, segment

rng = np.random.default_rng(1)
kernel = ConstantKernel(1.0) * RBF(20.0) + WhiteKernel(0.1)
X = np.arange(1_000.0)[:, None]
Z = X[480:520] + 0.5
draw = rng.multivariate_normal(np.zeros(1_040), kernel(np.concatenate([X, Z])), method="cholesky")
y, outcomes = draw[:1_000], draw[1_000:]

exact = posterior(kernel, X, y, Z, Composite.full(len(X)))
figure, axes = plt.subplots(figsize=(8, 3.5), layout="constrained")
axes.plot(Z[:, 0], outcomes, ".", color="black", label="new observations")
axes.plot(Z[:, 0], exact.mean, color="black", label="exact GP")
for size in (250, 50):
    belief = posterior(kernel, X, y, Z, Composite.marginal(segment(X, size, "sequential")))
    (line,) = axes.plot(Z[:, 0], belief.mean, "--", label=f"segments of {size}")
    spread = 2 * belief.standard_deviation
    axes.fill_between(Z[:, 0], belief.mean - spread, belief.mean + spread, color=line.get_color(), alpha=0.15)
axes.set(xlabel="t", ylabel="f")
axes.legend(ncols=4, fontsize="small")
plt.show()

# %%
# The segments may come one at a time, in any order: the belief is the same.

belief = prior(kernel, Z)
parts = segment(X, 250, "sequential")
for part in parts[::-1]:
    belief = belief.update(X[part], y[part])
at_once = posterior(kernel, X, y, Z, Composite.marginal(parts))
print(np.allclose(belief.mean, at_once.mean), np.allclose(belief.covariance, at_once.covariance))
