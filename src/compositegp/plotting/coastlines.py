"""Coastlines for maps of longitude and latitude, from the files of Natural Earth that cartopy keeps."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from compositegp.backend import Floats

_SCALES = (("10m", 15.0), ("50m", 50.0), ("110m", np.inf))  # and up to how many degrees across they are drawn


def coastlines(x: tuple[float, float], y: tuple[float, float]) -> list[Floats]:
    """Coastlines in a box of longitude and latitude; none where cartopy or its files are not installed.

    Nothing is downloaded: ``python -m cartopy.feature.download physical`` fetches the files. Of the scales that are
    there the one is taken that suits the size of the box, else the next best.

    Parameters
    ----------
    x, y : (float, float)
        Ends of the box, in degrees; longitudes may be from −180 to 180 or from 0 to 360.

    Returns
    -------
    list of arrays of shape (n, 2)
        Lines of longitudes, on the box's side of the globe, and latitudes.
    """
    if importlib.util.find_spec("cartopy") is None:
        return []
    path = _file(max(x[1] - x[0], y[1] - y[0]))
    if path is None:
        return []
    from cartopy.io.shapereader import BasicReader

    found = []
    for shape in BasicReader(str(path)).geometries():
        for line in getattr(shape, "geoms", [shape]):
            points = np.asarray(line.coords, dtype=np.float64)[:, :2]
            for turn in (-360.0, 0.0, 360.0):
                moved = points + np.array([turn, 0.0])
                if _overlap(moved[:, 0], x) and _overlap(moved[:, 1], y):
                    found.append(moved)
    return found


def _overlap(values: Floats, ends: tuple[float, float]) -> bool:
    return bool(values.min() <= ends[1] and values.max() >= ends[0])


def _file(degrees: float) -> Path | None:
    """The file of the scale that suits a box of this size, or of the next best scale that is there."""
    suited = next(number for number, (_, most) in enumerate(_SCALES) if degrees <= most)
    order = sorted(range(len(_SCALES)), key=lambda number: (abs(number - suited), number))
    paths = (_path(_SCALES[number][0]) for number in order)
    return next((path for path in paths if path is not None), None)


def _path(scale: str) -> Path | None:
    from cartopy import config

    for folder in ("pre_existing_data_dir", "data_dir"):
        base: Any = config[folder]
        path = Path(base) / "shapefiles" / "natural_earth" / "physical" / f"ne_{scale}_coastline.shp"
        if base and path.exists():
            return path
    return None
