"""
A large table with error bars
=============================

Predict a column of a table from the others: 60,000 rows and eight columns, of which four matter. An exact Gaussian process would need a
matrix of 27 GB. Compare with gradient boosting, and look at what the error bars are worth.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

from compositegp import CompositeGPRegressor

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(60_000, 8))
truth = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * np.abs(X[:, 3])
y = truth + 0.1 * rng.normal(size=len(X))
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=2_000, random_state=0)

model = CompositeGPRegressor(random_state=0).fit(X_train, y_train)
found = model.predict_distribution(X_test)
boosted = HistGradientBoostingRegressor(random_state=0).fit(X_train, y_train).predict(X_test)
print(f"RMSE: compositegp {np.sqrt(np.mean((found.mean - y_test) ** 2)):.4f}")
print(f"RMSE: gradient boosting {np.sqrt(np.mean((boosted - y_test) ** 2)):.4f}, and the noise alone 0.1")
for level in (0.5, 0.8, 0.95, 0.99):
    print(f"inside the {100 * level:.0f} % interval: {found.coverage(y_test, level):.3f}")

# %%
# Which columns matter: the average absolute slope of f along each, for one standard deviation of the column, with its error.

importances = model.importances()
print(importances)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.2), layout="constrained")
left.bar(
    [f"x{column}" for column in range(8)], importances.effects, yerr=2 * importances.standard_errors, capsize=3
)
left.set(title="which columns matter, ± 2 standard errors", xlabel="column", ylabel="change of f")
lower, upper = found.interval(0.95)
order = np.argsort(found.mean)[::40]
right.errorbar(
    found.mean[order],
    y_test[order],
    xerr=((found.mean - lower)[order], (upper - found.mean)[order]),
    fmt=".",
    elinewidth=0.8,
    label="50 of 2,000 test rows, 95 % intervals",
)
right.axline((0, 0), slope=1, color="gray", linewidth=1, label="predicted = observed")
right.set(title="new rows", xlabel="predicted y", ylabel="observed y")
right.legend(frameon=False, fontsize="small")
plt.show()
