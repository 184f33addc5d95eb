"""The pictures of docs/predictive.md: validation and the number of neighbors, on a simulated field.

    python benchmarks/predictive_figures.py

The field is a draw of a Gaussian process on a grid. Its noise grows from left to right, and the kernel does not know
that. The pictures are written to docs/figures, and what they show is printed.
"""

from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from timing import header, no_options

from compositegp import CompositeGPRegressor
from compositegp.plotting import plot_neighbor_curve, plot_validation
from compositegp.simulate import stationary_field

FOLDER = Path(__file__).parent.parent / "docs" / "figures"
SIDE = 55
DOTS_PER_INCH = 110


def changing_noise() -> tuple[np.ndarray, np.ndarray]:
    """Points of a grid, shape (n, 2), and a field whose noise has a standard deviation from 0.05 to 1."""
    values = stationary_field(ConstantKernel(1.0) * Matern(8.0, nu=1.5), (SIDE, SIDE), random_state=0)[0].ravel()
    axis = np.arange(float(SIDE))
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    size = np.geomspace(0.05, 1.0, SIDE)[points[:, 0].astype(int)]
    return points, values + size * np.random.default_rng(1).normal(size=len(points))


def main() -> None:
    """Fit once, draw both pictures and print what they show."""
    no_options(__doc__)
    print(header("matplotlib") + "\n")
    X, y = changing_noise()
    kernel = ConstantKernel(1.0) * Matern([8.0, 8.0], nu=1.5) + WhiteKernel(0.2)
    model = CompositeGPRegressor(kernel).fit(X, y)
    report = model.validate()
    print(f"{len(X)} observations, {model.neighbor_curve_.smallest()} neighbors chosen\n")
    print(model.calibration_, report, sep="\n\n")
    checked = plot_validation(report)
    checked.suptitle(f"a simulated field of {len(X):,} points, whose noise grows from left to right", fontsize=10)
    checked.savefig(FOLDER / "validation.png", dpi=DOTS_PER_INCH)
    drawn = plot_neighbor_curve(model.neighbor_curve_)
    (axes,) = drawn.axes
    counts = model.neighbor_curve_.n_neighbors
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.minorticks_off()
    axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    drawn.savefig(FOLDER / "neighbor_curve.png", dpi=DOTS_PER_INCH)


if __name__ == "__main__":
    main()
