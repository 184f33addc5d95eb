"""
Which error bars to trust
=========================

Data that are rough in one half and smooth in the other. A Gaussian process with one kernel claims the same error in both; calibration
learns how large errors are where. ``validate`` shows what they are worth, near the data and in gaps, from the training data alone.
"""

import matplotlib.pyplot as plt
import numpy as np

from compositegp import CompositeGPRegressor, Nearest
from compositegp.plotting import plot_validation

rng = np.random.default_rng(0)
X = rng.uniform(0, 10, size=(3_000, 2))
rough = X[:, 0] > 5
y = np.sin(X[:, 1]) + np.where(rough, np.sin(7 * X[:, 0]) * np.sin(6 * X[:, 1]), 0.0)
y += np.where(rough, 0.3, 0.03) * rng.normal(size=len(X))

model = CompositeGPRegressor(random_state=0).fit(X, y)
gaussian = CompositeGPRegressor(model.kernel_, mean="constant", learning=None, prediction=Nearest(calibration=None))
gaussian.fit(X, y)
line = np.column_stack([np.linspace(0, 10, 200), np.full(200, 5.0)])
figure, axes = plt.subplots(figsize=(8, 3), layout="constrained")
axes.plot(line[:, 0], gaussian.predict(line, return_std=True)[1], "--", label="Gaussian")
axes.plot(line[:, 0], model.predict(line, return_std=True)[1], label="calibrated")
axes.set(xlabel="first column, where the second is 5", ylabel="standard error", yscale="log")
axes.legend()
plt.show()

# %%
print(model.calibration_)

# %%
# Training points, predicted without themselves and without their nearest neighbors:

report = model.validate()
print(report)
plot_validation(report)
plt.show()
