"""Kernels: squared distances of many small point sets, in one vectorised pass or in a loop over the sets.

    python benchmarks/kernels.py

The pair count where the two cross is `_SMALL` in compositegp/kernels/distances.py.
"""

import numpy as np
from timing import best, header, no_options

from compositegp.kernels import distances


def main() -> None:
    no_options(__doc__)
    print(header())
    rng = np.random.default_rng(0)
    for n in (8, 16, 24, 32, 48, 64, 128):
        X, Y = rng.normal(size=(2, 2**16 // n**2, n, 3))
        seconds = {}
        for name, threshold in (("vectorised", n * n), ("loop", 0)):
            distances._SMALL = threshold
            seconds[name] = best(lambda X=X, Y=Y: distances.squared_distances(X, Y), 7)
        times = ", ".join(f"{name} {1e6 * value:5.0f} µs" for name, value in seconds.items())
        print(f"  {len(X):5d} sets of {n:3d} points: {times}")


if __name__ == "__main__":
    main()
