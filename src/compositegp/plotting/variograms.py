"""The learned model as a variogram, over the empirical variogram of the data."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from compositegp.analysis import (
    Direction,
    directions_of,
    empirical_variogram,
    model_variogram,
    summarize_variogram,
    value_with_error,
)
from compositegp.backend import Floats
from compositegp.estimators import CompositeGPRegressor
from compositegp.kernels import EARTH_RADIUS
from compositegp.plotting import style
from compositegp.plotting.style import BLUE, GRAY, GREEN, ORANGE, interactive_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLORS = (BLUE, ORANGE, GREEN)
_SHOWN = 1.6  # of the practical range that is drawn
_HALF_ANGLE = np.tan(np.radians(22.5))  # pairs count for a direction within this angle of it
_SMALLEST_DOT, _LARGEST_DOT = 8.0, 60.0


def variogram(
    model: CompositeGPRegressor,
    X: Any,
    y: Any,
    *,
    sphere: bool = False,
    has_time: bool = False,
    time_unit: str = "h",
    unit: str = "",
    axes: "Axes | None" = None,
) -> "Axes":
    """Draw the variogram of a fitted model over the empirical variogram of a sample of the data.

    Parameters
    ----------
    model : CompositeGPRegressor
        Fitted to points (x, y, time where there is one, covariates).
    X, y : arrays of shape (n, d) and (n,)
        The data. A linear drift in the covariates is taken out by least squares.
    sphere : bool
        Whether x and y are longitude and latitude; distances are then chords in kilometers.
    has_time : bool
        Whether the third column is time.
    time_unit : str
        Of time; may be empty.
    unit : str
        Of the target.
    axes : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from compositegp.plotting import style
    >>> from sklearn.gaussian_process.kernels import Matern, WhiteKernel
    >>> X = np.random.default_rng(0).uniform(0, 9, size=(200, 2))
    >>> kernel = 1.0 * Matern(2.0, nu=0.5) + WhiteKernel(0.1)
    >>> model = CompositeGPRegressor(kernel, learning=None).fit(X, np.sin(X[:, 0]))
    >>> variogram(model, X, np.sin(X[:, 0]), axes=style.figure(size=(6, 4))[1]).get_ylabel()
    'semivariance'
    """
    axes = interactive_axes(axes)
    points, kernel = np.asarray(X, dtype=np.float64), model.kernel_
    residuals = _residuals(points, np.asarray(y, dtype=np.float64), model, 3 if has_time else 2)
    latitude = float(points[:, 1].mean())
    directions = directions_of(
        kernel, points.shape[1], sphere=sphere, has_time=has_time, latitude=latitude, time_unit=time_unit
    )
    result = model.learning_result_
    summary = summarize_variogram(kernel, directions, None if result is None else result.theta_covariance)
    for direction, color in zip(directions, _COLORS, strict=False):
        reach, error = summary.ranges[direction.name]
        longest = min(_SHOWN * reach, _extent(points, direction, sphere))
        apart = _distances(direction, sphere, has_time)
        found = empirical_variogram(kernel, points, residuals, apart, longest)
        sizes = np.clip(_LARGEST_DOT * found.counts / max(found.counts.max(initial=1), 1), _SMALLEST_DOT, None)
        axes.scatter(found.lags, found.semivariances, s=sizes, color=color, alpha=0.55, lw=0)
        lags = np.linspace(longest / 500, longest, 400)
        label = f"{direction.name}: range {value_with_error(reach, error)} {direction.unit}".strip()
        axes.plot(lags, model_variogram(kernel, direction, lags), color=color, lw=1.8, label=label)
        if reach <= longest:
            axes.axvline(reach, color=color, lw=0.8, ls=":")
    axes.axhline(
        summary.nugget[0], color=GRAY, lw=0.9, ls="--", label=f"nugget {value_with_error(*summary.nugget)}"
    )
    axes.axhline(summary.sill[0], color=GRAY, lw=0.9, label=f"sill {value_with_error(*summary.sill)}")
    units = {direction.unit for direction in directions if direction.unit}
    scale = "log" if model.target_transform == "log" else style.literal(unit)
    axes.set(
        xlabel=f"distance ({', '.join(sorted(units))})" if units else "distance",
        ylabel=f"semivariance ({scale}²)" if scale else "semivariance",
        title="Variogram: the model (lines) and the data (dots)",
    )
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=True, framealpha=0.9, edgecolor="none", fontsize=9, loc="lower right")
    return axes


def draw_variogram(model: CompositeGPRegressor, X: Any, y: Any, **options: Any) -> bytes:
    r"""Draw the picture of `variogram` for a file.

    Parameters
    ----------
    model : CompositeGPRegressor
        Fitted to points (x, y, time where there is one, covariates).
    X, y : arrays of shape (n, d) and (n,)
        The data.
    **options
        `sphere`, `has_time`, `time_unit` and `unit`, as in `variogram`.

    Returns
    -------
    bytes
        Content of a PNG file.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import Matern, WhiteKernel
    >>> X = np.random.default_rng(0).uniform(0, 9, size=(200, 2))
    >>> kernel = 1.0 * Matern(2.0, nu=0.5) + WhiteKernel(0.1)
    >>> model = CompositeGPRegressor(kernel, learning=None).fit(X, np.sin(X[:, 0]))
    >>> draw_variogram(model, X, np.sin(X[:, 0]), unit="m")[:4]
    b'\x89PNG'
    """
    figure, axes = style.figure(size=(7.2, 4.2))
    variogram(model, X, y, axes=axes, **options)
    return style.png(figure, dpi=110)


def _residuals(X: Floats, y: Floats, model: CompositeGPRegressor, n_places: int) -> Floats:
    values = np.log(y) if model.target_transform == "log" else y
    drift = np.column_stack([np.ones(len(X)), X[:, n_places:]])
    return np.asarray(values - drift @ np.linalg.lstsq(drift, values, rcond=None)[0])


def _distances(direction: Direction, sphere: bool, has_time: bool) -> Callable[[Floats, Floats], Floats]:
    """Distances of pairs along a direction; NaN for pairs of another one."""

    def of_pairs(A: Floats, B: Floats) -> Floats:
        difference = B - A
        if direction.name == "time":
            together = np.abs(difference[:, :2]).max(axis=1) == 0
            return np.where(together, np.abs(difference[:, 2]), np.nan)
        if sphere:
            found = _chords(A, B)
            if direction.name != "any direction":
                found = np.where(_is_toward(_steps(*direction.place(np.arange(2.0))), _steps(A, B)), found, np.nan)
        else:
            unit, steps = direction.place(np.ones(1))[0, :2], difference[:, :2]
            found = np.where(_is_toward(unit, steps), np.hypot(*steps.T), np.nan)
        return np.where(difference[:, 2] == 0, found, np.nan) if has_time else found

    return of_pairs


def _steps(A: Floats, B: Floats) -> Floats:
    """Steps to the east and to the north from longitudes and latitudes to others, in degrees: shape (..., 2)."""
    east = ((B[..., 0] - A[..., 0] + 180.0) % 360.0 - 180.0) * np.cos(np.radians(0.5 * (A[..., 1] + B[..., 1])))
    return np.stack([east, B[..., 1] - A[..., 1]], axis=-1)


def _is_toward(way: Floats, steps: Floats) -> Any:
    """Whether steps (m, 2) lie along a way (2,)."""
    along = np.abs(steps @ way)
    across = np.abs(steps[:, 0] * way[1] - steps[:, 1] * way[0])
    return across <= _HALF_ANGLE * along


def _chords(A: Floats, B: Floats) -> Floats:
    (lon, lat), (lon2, lat2) = np.radians(A[:, :2]).T, np.radians(B[:, :2]).T
    half = np.sin((lat - lat2) / 2) ** 2 + np.cos(lat) * np.cos(lat2) * np.sin((lon - lon2) / 2) ** 2
    return np.asarray(2 * EARTH_RADIUS * np.sqrt(half))


def _extent(X: Floats, direction: Direction, sphere: bool) -> float:
    """Half of how far the data reach in a direction."""
    if direction.name == "time":
        return 0.5 * float(np.ptp(X[:, 2]))
    if sphere:
        middle = np.broadcast_to(X[:1], X.shape)
        return float(np.nanmax(_chords(X, middle))) * 0.5
    return 0.5 * float(np.ptp(X[:, :2] @ direction.place(np.ones(1))[0, :2]))
