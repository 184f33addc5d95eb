"""Where learning begins: at the scale of the data, or where the user's kernel is, whichever is more likely."""

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel, Sum, WhiteKernel

from compositegp.backend import Booleans, Floats, Indices, spread_rows
from compositegp.kernels import DataScale, typical_values, with_finite_bounds
from compositegp.validation import LARGEST_TARGET

DEFAULT_BOUNDS = (1e-5, 1e5)
"""scikit-learn's bounds on a hyper-parameter."""
_SHORTER = (1.0, 1 / 4, 1 / 16, 1 / 64)  # length scales to try, as parts of the data's
SAMPLE = 2**17
"""Points, at most, by which the spread of columns is found."""
_HARDLY_VARIES = 1e-3  # spread of a column in segments, over its whole spread, under which it is constant there


def data_scale(X: Floats, residuals: Floats, segments: list[Indices]) -> DataScale:
    """Typical sizes within segments.

    Parameters
    ----------
    X : array of shape (n, d)
    residuals : array of shape (n,), or (n, t) for t outputs
        The target minus its mean function.
    segments : list of int arrays

    Returns
    -------
    DataScale

    Raises
    ------
    ValueError
        If the target does not vary at all.

    Examples
    --------
    >>> data_scale(np.array([[0.0], [2.0]]), np.array([-1.0, 1.0]), [np.arange(2)])
    DataScale(spreads=array([1.]), variance=1.0)
    """
    spreads = np.sqrt(np.mean([X[part].var(axis=0) for part in segments], axis=0))
    variance = float(np.mean([residuals[part].var(axis=0) for part in segments]))
    overall = float(residuals.var(axis=0).mean())
    size = np.abs(residuals).max()
    if 0 < size < 1 / LARGEST_TARGET:
        raise ValueError(
            f"y differs from its mean by {size:.3g} at most, and variances of that size are beyond double precision. "
            "Multiply y by a constant."
        )
    if overall <= (1e-14 * size) ** 2:
        raise ValueError(
            f"y is constant (all values are {residuals.ravel()[0]:g} after subtraction of the mean): there is no "
            "covariance to learn. Check the target column."
        )
    whole = X[spread_rows(len(X), SAMPLE)].std(axis=0)
    varies = spreads > _HARDLY_VARIES * whole
    return DataScale(np.where(varies, spreads, np.where(whole > 0, whole, 1.0)), variance or overall)


def starting_kernel(kernel: Kernel, scale: DataScale) -> Kernel:
    """Copy of a kernel at the data's scale: all its free hyper-parameters that have a scale, whatever their values.

    Bounds that are scikit-learn's default, 1e-5 to 1e5, become relative to that scale. Other bounds are kept, and the
    start is clipped into them. Fixed hyper-parameters stay.

    Parameters
    ----------
    kernel : scikit-learn kernel
    scale : DataScale

    Returns
    -------
    scikit-learn kernel

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> scale = DataScale(np.array([3.0]), 2.0)
    >>> starting_kernel(5.0 * RBF(1.0) + WhiteKernel(1.0, "fixed"), scale)
    1.41**2 * RBF(length_scale=3) + WhiteKernel(noise_level=1)
    """
    started = with_finite_bounds(clone(kernel))
    known, changed = started.get_params(), {}
    for name, value in typical_values(started, scale).items():
        bounds = known[f"{name}_bounds"]
        if isinstance(bounds, str):  # "fixed"
            continue
        limits = np.asarray(bounds, dtype=np.float64).reshape(-1, 2)
        if (limits == DEFAULT_BOUNDS).all():
            limits = np.reshape(value, (-1, 1)) * limits
            changed[f"{name}_bounds"] = tuple(limits[0]) if len(limits) == 1 else limits
        value = np.clip(value, *limits.T)
        changed[name] = value.item() if value.size == 1 else value
    return started.set_params(**changed)


def starting_points(kernel: Kernel, scale: DataScale) -> list[Floats]:
    """Values of ``kernel.theta`` to begin from, of which the learner takes the most likely.

    They are the values of `starting_kernel`, the same with shorter length scales, in a sum also with shorter length
    scales in one of its parts, and the kernel's own values, all within the bounds of `starting_kernel`. A field may
    vary on many scales below the size of a segment, and its likelihood have a maximum for each. The parts of a sum are
    there for different scales: from the same one they might never part.

    Parameters
    ----------
    kernel : scikit-learn kernel
    scale : DataScale

    Returns
    -------
    list of arrays of shape (p,), no two alike

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> [f"{np.exp(theta[0]):.3g}" for theta in starting_points(RBF(5.0), DataScale(np.array([8.0]), 2.0))]
    ['8', '5', '2', '0.5', '0.125']
    """
    bounds = starting_kernel(kernel, scale).bounds
    whole, *finer = (
        starting_kernel(kernel, scale._replace(spreads=part * scale.spreads)).theta for part in _SHORTER
    )
    points = [whole, *finer, kernel.theta]
    signals = [name for name, part in parts_of_sum(kernel).items() if not isinstance(part, WhiteKernel)]
    for name in signals if len(signals) > 1 else ():
        points += [np.where(_of_part(kernel, name), one, whole) for one in finer]
    return list(np.unique(np.clip(points, *bounds.T), axis=0)[::-1])


def parts_of_sum(kernel: Kernel, name: str = "") -> dict[str, Kernel]:
    """The parts of a sum, by their names in ``kernel.get_params()``; a kernel that is no sum has the name ''."""
    if not isinstance(kernel, Sum):
        return {name: kernel}
    before = f"{name}__" if name else ""
    return parts_of_sum(kernel.k1, f"{before}k1") | parts_of_sum(kernel.k2, f"{before}k2")


def _of_part(kernel: Kernel, name: str) -> Booleans:
    """Which numbers of θ belong to a part of a sum: a boolean array of shape (p,)."""
    free = [one for one in kernel.hyperparameters if not one.fixed]
    return np.repeat([one.name.startswith(f"{name}__") for one in free], [one.n_elements for one in free])
