"""Pictures of maps: what was observed, the mean, and the standard error, side by side."""

from typing import Any, NamedTuple

import numpy as np

from compositegp.backend import Floats
from compositegp.plotting import style
from compositegp.plotting.coastlines import coastlines

_MOST_CELLS = 1200  # cells along a side that are drawn; of more every second, third, … is taken
_TAILS = (0.5, 99.5)  # percentiles where the colors of the mean end
_COLORS, _ERROR_COLORS = "viridis", "magma"
_MISSING = "#e4e4e4"
_MOST_STATIONS = 5000  # above this the stations are drawn as points without an edge
_FEW_STATIONS = 500  # above this they are drawn faintly on the standard error
_FIRST_WIDTH = 5.2  # inches of a panel
_SLIVER = 5.0  # height over width, or the reverse, up to which x and y are taken to have the same unit
_SHAPE = 0.75  # height over width of a map where they are not


class MapPicture(NamedTuple):
    """What a picture of a map shows.

    Attributes
    ----------
    mean, std : arrays of shape (ny, nx)
        NaN is not drawn.
    x, y : arrays of shape (nx,) and (ny,), or both (ny, nx)
    observed : array of shape (ny, nx), or (n, 3) with columns x, y, value
        A raster with gaps, or stations.
    title : str
        Name of what is mapped.
    unit : str
    labels : (str, str)
        Of the axes.
    sphere : bool
        Whether x and y are longitude and latitude.

    Examples
    --------
    >>> x, y = np.arange(4.0), np.arange(3.0)
    >>> mean = np.add.outer(y, x)
    >>> stations = np.array([[0.2, 1.1, 1.3], [2.9, 0.4, 3.2]])
    >>> picture = MapPicture(mean, np.full(mean.shape, 0.1), x, y, stations, "height", "m")
    >>> picture.mean.shape, picture.unit
    ((3, 4), 'm')
    """

    mean: Floats
    std: Floats
    x: Floats
    y: Floats
    observed: Floats | None
    title: str
    unit: str = ""
    labels: tuple[str, str] = ("x", "y")
    sphere: bool = False


def draw_map(picture: MapPicture, *, dpi: int = 110) -> bytes:
    r"""Draw a map: a raster with gaps beside its filling, or stations on their map, and the standard error.

    Parameters
    ----------
    picture : MapPicture
    dpi : int

    Returns
    -------
    bytes
        Content of a PNG file.

    Examples
    --------
    >>> x, y = np.arange(4.0), np.arange(3.0)
    >>> values = np.add.outer(y, x)
    >>> draw_map(MapPicture(values, 0 * values, x, y, None, "height", "m"))[:4]
    b'\x89PNG'
    """
    raster = picture.observed is not None and picture.observed.shape == picture.mean.shape
    panels = 3 if raster else 2
    shape = _aspect(picture)
    width = _FIRST_WIDTH if panels == 2 else 0.85 * _FIRST_WIDTH
    height = float(np.clip(width * shape * 0.86 + 0.9, 2.6, 9.0))
    across = shape <= 1.6 or panels == 2
    size = (panels * width, height) if across else (panels * width * 0.75, height)
    figure, axes = style.figure(1, panels, size=size, sharex=True, sharey=True, squeeze=False)
    axes = axes[0]
    ends = _ends(picture)
    name = style.literal(f"{picture.title} ({picture.unit})" if picture.unit else picture.title)
    first = 0
    if raster:
        _panel(figure, axes[0], picture, picture.observed, "observed", name, _COLORS, ends)
        first = 1
    stations = None if raster else picture.observed
    with_stations = "" if stations is None else ", with the stations"
    _panel(figure, axes[first], picture, picture.mean, f"mean{with_stations}", name, _COLORS, ends)
    if stations is not None:
        _stations(axes[first], stations, ends)
    error = style.literal(f"standard error ({picture.unit})" if picture.unit else "standard error")
    top = np.nanpercentile(picture.std, _TAILS[1]) if np.isfinite(picture.std).any() else 1.0
    error_ends = (0.0, float(top) or 1.0)
    _panel(
        figure,
        axes[-1],
        picture,
        picture.std,
        f"standard error{with_stations}",
        error,
        _ERROR_COLORS,
        error_ends,
    )
    if stations is not None:
        alpha = 0.7 if len(stations) <= _FEW_STATIONS else 0.25
        axes[-1].scatter(stations[:, 0], stations[:, 1], s=2, color="#7fd4ff", alpha=alpha, lw=0)
    across_label, up_label = (
        style.literal(f"{label} (°)" if picture.sphere else label) for label in picture.labels
    )
    axes[0].set_ylabel(up_label)
    for one in axes:
        one.set_xlabel(across_label)
    return style.png(figure, dpi=dpi)


def _panel(
    figure: Any,
    axes: Any,
    picture: MapPicture,
    values: Any,
    title: str,
    label: str,
    colors: str,
    ends: tuple[float, float],
) -> None:
    from matplotlib import colormaps

    stride = max(1, -(-max(values.shape) // _MOST_CELLS))
    x = picture.x[..., ::stride] if picture.x.ndim == 1 else picture.x[::stride, ::stride]
    y = picture.y[::stride] if picture.y.ndim == 1 else picture.y[::stride, ::stride]
    colored = colormaps[colors].with_extremes(bad=_MISSING)
    shown = np.ma.masked_invalid(values[::stride, ::stride])
    options = {"cmap": colored, "vmin": ends[0], "vmax": ends[1], "rasterized": True}
    if _is_even(x) and _is_even(y):
        dx, dy = (float(one[-1] - one[0]) / (len(one) - 1) / 2 for one in (x, y))
        extent = (x[0] - dx, x[-1] + dx, y[0] - dy, y[-1] + dy)
        options.pop("rasterized")
        drawn = axes.imshow(shown, extent=extent, origin="lower", interpolation="nearest", aspect="auto", **options)
        axes.set_xlim(min(extent[:2]), max(extent[:2]))
        axes.set_ylim(min(extent[2:]), max(extent[2:]))
    else:
        axes.set_facecolor(_MISSING)
        drawn = axes.pcolormesh(x, y, shown, shading="nearest", **options)
    finite = shown.compressed()
    over, under = (
        (len(finite) > 0 and bool(finite.max() > ends[1])),
        (len(finite) > 0 and bool(finite.min() < ends[0])),
    )
    extend = {(False, False): "neither", (True, False): "max", (False, True): "min", (True, True): "both"}[
        over, under
    ]
    figure.colorbar(
        drawn, ax=axes, label=label, extend=extend, orientation="horizontal", shrink=0.9, aspect=35, pad=0.02
    )
    axes.set_title(title, fontsize=11)
    axes.set_aspect(_stretch(picture))
    if picture.sphere:
        _draw_coastlines(axes)


def _stations(axes: Any, observed: Floats, ends: tuple[float, float]) -> None:
    few = len(observed) <= _MOST_STATIONS
    axes.scatter(
        observed[:, 0],
        observed[:, 1],
        c=observed[:, 2],
        cmap=_COLORS,
        vmin=ends[0],
        vmax=ends[1],
        s=float(np.clip(6000 / len(observed), 2, 26)),
        edgecolors="white" if few else "none",
        linewidths=0.4 if few else 0.0,
    )


def _ends(picture: MapPicture) -> tuple[float, float]:
    values = [picture.mean[np.isfinite(picture.mean)]]
    if picture.observed is not None:
        seen = picture.observed if picture.observed.shape == picture.mean.shape else picture.observed[:, 2]
        values.append(seen[np.isfinite(seen)])
    together = np.concatenate(values)
    if not len(together):
        return 0.0, 1.0
    low, high = np.percentile(together, _TAILS)
    return (float(low), float(high)) if high > low else (float(low) - 0.5, float(low) + 0.5)


def _is_even(values: Floats) -> bool:
    """Whether coordinates are one axis with equal steps."""
    if values.ndim != 1 or len(values) < 2:
        return False
    steps = np.diff(values)
    return bool(np.allclose(steps, steps[0], rtol=1e-3, atol=0) and steps[0] != 0)


def _stretch(picture: MapPicture) -> float:
    """How much longer a unit of y is drawn than one of x."""
    if picture.sphere:
        return 1 / max(float(np.cos(np.deg2rad(np.mean(picture.y)))), 0.2)
    width, height = _extent(picture)
    # Where x and y differ so much, they hardly have the same unit, and a map to scale would be a sliver.
    return 1.0 if 1 / _SLIVER <= height / width <= _SLIVER else _SHAPE * width / height


def _extent(picture: MapPicture) -> tuple[float, float]:
    """Width and height of the map, in the units of x and y."""
    width, height = (float(np.ptp(one)) or 1.0 for one in (picture.x, picture.y))
    return width, height


def _aspect(picture: MapPicture) -> float:
    """Height over width of the map."""
    width, height = _extent(picture)
    return _stretch(picture) * height / width


def _draw_coastlines(axes: Any) -> None:
    from matplotlib.collections import LineCollection

    box: Any = sorted(axes.get_xlim()), sorted(axes.get_ylim())
    lines = coastlines(*box)
    if lines:
        axes.add_collection(LineCollection(lines, colors="black", linewidths=0.6), autolim=False)
