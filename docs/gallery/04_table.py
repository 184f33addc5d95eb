"""
A table with error bars
=======================

Predict a column of a table from the others: eight columns, of which four matter. Compare with gradient boosting, and look at what the
error bars are worth.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

from compositegp import CompositeGPRegressor

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(5_000, 8))
truth = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * np.abs(X[:, 3])
y = truth + 0.1 * rng.normal(size=len(X))
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=0)

model = CompositeGPRegressor(random_state=0).fit(X_train, y_train)
found = model.predict_distribution(X_test)
boosted = HistGradientBoostingRegressor(random_state=0).fit(X_train, y_train).predict(X_test)
print(f"RMSE: compositegp {np.sqrt(np.mean((found.mean - y_test) ** 2)):.3f}")
print(f"RMSE: gradient boosting {np.sqrt(np.mean((boosted - y_test) ** 2)):.3f}")
for level in (0.5, 0.8, 0.95, 0.99):
    print(f"inside the {100 * level:.0f} % interval: {found.coverage(y_test, level):.3f}")

# %%
# Which columns matter: the average absolute slope of f along each, for one standard deviation of the column, with its error.

importances = model.importances()
print(importances)
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.bar([f"x{column}" for column in range(8)], importances.effects, yerr=2 * importances.standard_errors)
axes.set(ylabel="change of f")
plt.show()
