"""Maps whose range may differ in any direction, beside maps whose range may differ along the axes only.

    python benchmarks/map_directions.py

The satellite image under its own gaps, mirrored and laid over observed cells, so that its held-out part is not looked
at; and simulated fields of 64 × 64 cells, some with a direction, some without, under the same gaps. Both kinds of map
are learned by `learn_raster` from what is observed, and scored on what is hidden.
"""

import math
from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import xarray as xr
from data import satellite
from maps import MIRRORED, MIRRORS, image_of, scored
from sklearn.gaussian_process.kernels import Kernel, Matern, WhiteKernel
from timing import header, no_options

from compositegp import RotatedMatern
from compositegp.spatial import families, learn_raster

SIDE = 64
FIELDS: dict[str, Kernel] = {
    "alike in all directions, Matérn 1/2": Matern(12.0, nu=0.5),
    "alike in all directions, Matérn 3/2": Matern(8.0, nu=1.5),
    "alike in all directions, 3/2 + 1/2": Matern(6.0, nu=1.5) + 2.0 * Matern(40.0, nu=0.5),
    "twice as long along x, Matérn 1/2": Matern([16.0, 8.0], nu=0.5),
    "twice as long toward 40°, Matérn 1/2": RotatedMatern.at_angle(40.0, 2.0, 12.0, nu=0.5),
    "three times as long toward 120°, Matérn 3/2": RotatedMatern.at_angle(120.0, 3.0, 8.0),
}


def fields() -> Iterator[tuple[str, xr.DataArray, np.ndarray]]:
    """Names, images, and which of their cells are hidden."""
    split = satellite()
    if split is None:
        raise SystemExit("no data: set COMPOSITEGP_DATA to the folder that has the satellite image")
    image = image_of(split)
    missing = image.isnull().to_numpy()
    for name, mirror in MIRRORS.items():
        yield f"the image, {name}", image, missing[mirror] & ~missing
    rows, columns = (np.linspace(0, size - 1, SIDE).astype(int) for size in missing.shape)
    axis = np.arange(float(SIDE))
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)[:, ::-1]
    for number, (name, kernel) in enumerate(FIELDS.items()):
        rng = np.random.default_rng(number)
        root = np.linalg.cholesky((kernel + WhiteKernel(0.02))(points))
        values = (root @ rng.standard_normal(len(points))).reshape(SIDE, SIDE)
        hidden = np.roll(missing[np.ix_(rows, columns)], 9 * number, axis=1)
        yield name, xr.DataArray(values, coords={"y": axis, "x": axis}, dims=("y", "x"), name="f"), hidden


def learned(image: xr.DataArray, hidden: np.ndarray, directions: bool) -> tuple[dict[str, float], str]:
    """Scores on the hidden cells, and the angle and the ratio that were learned."""
    with patch.object(families, "_MANY", families._MANY if directions else math.inf):
        regressor = learn_raster(image.where(~hidden)).regressor
    cells = np.argwhere(hidden)
    cells = cells[np.sort(np.random.default_rng(0).permutation(len(cells))[:MIRRORED])]
    y_axis, x_axis = (image[name].to_numpy() for name in image.dims)
    found = regressor.predict_distribution(np.column_stack([x_axis[cells[:, 1]], y_axis[cells[:, 0]]]))
    turned = [part for part in regressor.kernel_.get_params().values() if isinstance(part, RotatedMatern)]
    told = ", ".join(f"{part.angle:.0f}°, {part.ratio:.1f}" for part in turned)
    return scored(found, image.to_numpy()[tuple(cells.T)]), told


def main() -> None:
    no_options(__doc__)
    print(header("xarray") + "\n")
    print(
        "| field | RMSE along the axes | in any direction | | CRPS along the axes | in any direction | | angle, ratio |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, image, hidden in fields():
        (axes, _), (any_direction, told) = learned(image, hidden, False), learned(image, hidden, True)
        cells = []
        for score in ("RMSE", "CRPS"):
            before, after = axes[score], any_direction[score]
            cells += [f"{before:.3f}", f"{after:.3f}", f"{100 * (after / before - 1):+.1f} %"]
        print(f"| {name} | {' | '.join(cells)} | {told} |", flush=True)


if __name__ == "__main__":
    main()
