"""Which neighbors: the nearest, or as many of which some are farther away. Expected log scores, under known kernels.

    python benchmarks/neighbors.py

Places at random in the plane, and points that are predicted without their 0, 64 and 512 nearest observations. What is
printed is the expected loss of log score against some thousand observations, in thousandths of a nat: ½ mean log(v/v₀)
of the variances of new observations. A share of 1/4 up to 8 is `Neighbors.spread`, the default in one or two columns.
"""

import numpy as np
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern, WhiteKernel
from timing import header, no_options

from compositegp.posteriors import Neighbors

N = 20_000
SIDE = 100.0
POINTS = 16
SKIPS = (0, 64, 512)
KERNELS: dict[str, Kernel] = {
    "Matérn 1/2, range 10": Matern(10.0, nu=0.5),
    "Matérn 3/2, range 5": Matern(5.0, nu=1.5),
    "Matérn 3/2, range 20": Matern(20.0, nu=1.5),
    "RBF, range 5": RBF(5.0),
    "Matérn 3/2, range 2, a tenth, + 1/2, range 50": 0.1 * Matern(2.0, nu=1.5) + Matern(50.0, nu=0.5),
}
NOISES = (0.001, 0.1, 1.0)
SIZE = 256
KINDS = {
    "nearest 128": (128, 0, 1),
    "nearest 256": (256, 0, 1),
    "nearest 512": (512, 0, 1),
    "256, 1/4 up to 8": (192, 64, 8),
    "256, 1/4 up to 16": (192, 64, 16),
    "256, 1/2 up to 8": (128, 128, 8),
    "256, 1/2 up to 16": (128, 128, 16),
}


def ranks(near: int, far: int, reach: int) -> np.ndarray:
    """Ranks of the nearest, and of others, as many in each octave up to `reach` times their number."""
    if not far:
        return np.arange(near)
    order = np.arange(far)
    spaced = (near * (reach * (near + far) / near) ** ((order + 0.5) / far)).astype(int)
    return np.concatenate([np.arange(near), np.maximum.accumulate(spaced - order) + order])


def variance(kernel: Kernel, X: np.ndarray, z: np.ndarray) -> float:
    """Variance of a new observation at z given those at X."""
    k = kernel(X, z[None])[:, 0]
    return float(kernel.diag(z[None])[0] - k @ np.linalg.solve(kernel(X), k))


def main() -> None:
    no_options(__doc__)
    assert np.array_equal(ranks(*KINDS["256, 1/4 up to 8"]), Neighbors.spread(SIZE).ranks(N))
    rng = np.random.default_rng(0)
    X = rng.uniform(0, SIDE, size=(N, 2))
    tests = rng.uniform(0.25 * SIDE, 0.75 * SIDE, size=(POINTS, 2))
    order = KDTree(X).query(tests, k=12_000)[1]
    print(header() + "\n")
    print("| kernel | noise | " + " | ".join(f"{name}" for name in KINDS) + " |")
    print("|---" * (len(KINDS) + 2) + "|")
    for name, signal in KERNELS.items():
        for noise in NOISES:
            kernel = signal + WhiteKernel(noise)
            cells = np.zeros((len(KINDS), len(SKIPS)))
            for column, skip in enumerate(SKIPS):
                for z, near in zip(tests, order[:, skip:], strict=True):
                    whole = np.concatenate([near[:1500], near[1500::8][:700]])
                    least = variance(kernel, X[whole], z)
                    for row, kind in enumerate(KINDS.values()):
                        cells[row, column] += (
                            500 / POINTS * np.log(variance(kernel, X[near[ranks(*kind)]], z) / least)
                        )
            text = [", ".join(f"{max(value, 0):.2f}" for value in row) for row in cells]
            print(f"| {name} | {noise:g} | " + " | ".join(text) + " |", flush=True)


if __name__ == "__main__":
    main()
