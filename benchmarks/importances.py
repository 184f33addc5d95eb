"""Order of the columns by average slopes, and by scikit-learn's permutation importance, on elevators.

    python benchmarks/importances.py

The model is Matérn 3/2 with a length scale for each column. Permutation importance is computed on the test part, each
column shuffled twice.
"""

import time

import numpy as np
from data import uci
from scipy.stats import spearmanr
from sklearn.gaussian_process.kernels import Matern, WhiteKernel
from sklearn.inspection import permutation_importance
from timing import header, no_options

from compositegp import CompositeGPRegressor, Nearest


def main() -> None:
    """Print both orders and how well they agree."""
    no_options(__doc__)
    print(header() + "\n")
    split = uci("elevators")
    if split is None:
        return
    kernel = 1.0 * Matern(np.ones(split.X.shape[1]), nu=1.5) + WhiteKernel(0.1)
    model = CompositeGPRegressor(kernel, prediction=Nearest(128)).fit(split.X, split.y)
    start = time.process_time()
    ours = model.importances()
    seconds = time.process_time() - start
    print(ours)
    start = time.process_time()
    scored = permutation_importance(
        model, split.X_test, split.y_test, scoring="neg_root_mean_squared_error", n_repeats=2, random_state=0
    )
    print(f"\n{'column':>7s} {'slopes':>8s} {'permuted':>9s}")
    for column in np.argsort(-scored.importances_mean):
        print(f"{column:7d} {ours.effects[column]:8.4f} {scored.importances_mean[column]:9.4f}")
    rank = spearmanr(ours.effects, scored.importances_mean).statistic
    print(f"rank correlation {rank:.3f}; CPU seconds {seconds:.0f} and {time.process_time() - start:.0f}")


if __name__ == "__main__":
    main()
