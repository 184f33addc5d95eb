"""Exact draws of stationary Gaussian fields on grids, by circulant embedding."""

from collections.abc import Sequence

import numpy as np
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import check_random_state

from compositegp.backend import Floats, RandomState
from compositegp.kernels import gram, is_warped, noise_variance
from compositegp.validation import check_count, check_kernel

__all__ = ["stationary_field"]

_MOST_POINTS = 2**26  # largest number of points of a torus: 1 GiB of complex numbers
_ROUNDING = 1e-10  # a negative eigenvalue smaller than this part of the largest is a rounding error


def stationary_field(
    kernel: Kernel,
    shape: int | Sequence[int],
    *,
    spacing: float | Sequence[float] = 1.0,
    n_draws: int = 1,
    random_state: RandomState = None,
) -> Floats:
    """Draw a stationary Gaussian process with zero mean on a regular grid of one or two dimensions.

    The covariance of the grid is embedded in that of a torus, which the FFT diagonalizes (Dietrich and Newsam 1997).
    The torus is enlarged until it has no negative eigenvalue, so that draws have exactly the kernel's covariance.

    Parameters
    ----------
    kernel : scikit-learn kernel
        Stationary, and even in each column: the sign of a lag does not matter. A WhiteKernel part is noise.
    shape : int or (int, int)
        Number of points along each axis.
    spacing : float or (float, float)
        Distance between them.
    n_draws : int
    random_state : int, RandomState or None

    Returns
    -------
    array of shape (n_draws, ...), with the shape of the grid last

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import Matern
    >>> stationary_field(Matern(5.0), (64, 32), n_draws=3, random_state=0).shape
    (3, 64, 32)
    """
    sizes = [check_count(size, "shape") for size in np.atleast_1d(shape).tolist()]
    if len(sizes) not in (1, 2):
        raise ValueError(f"shape must have one or two numbers; found {shape!r}.")
    if not check_kernel(kernel).is_stationary():
        raise ValueError(f"kernel {kernel} is not stationary: its fields have no circulant covariance.")
    if is_warped(kernel):
        raise ValueError(f"kernel {kernel} is not even in each column: its fields have no circulant covariance.")
    steps = np.broadcast_to(np.asarray(spacing, dtype=np.float64), len(sizes))
    if not (steps > 0).all():
        raise ValueError(f"spacing must be positive; found {spacing!r}.")
    count = check_count(n_draws, "n_draws")
    roots = _embedding(kernel, sizes, steps)
    generator = check_random_state(random_state)
    # The real and the imaginary part of one transform are two independent draws.
    fields = []
    axes = tuple(range(len(sizes)))
    inside = tuple(slice(0, size) for size in sizes)
    for _ in range(-(-count // 2)):
        normal = generator.standard_normal((2, *roots.shape))
        found = np.fft.fftn(roots * (normal[0] + 1j * normal[1]), axes=axes)[inside]
        fields += [found.real, found.imag]
    noise = float(noise_variance(kernel, np.zeros((1, len(sizes))))[0])
    drawn = np.stack(fields[:count])
    if noise > 0:
        drawn = drawn + np.sqrt(noise) * generator.standard_normal(drawn.shape)
    return np.ascontiguousarray(drawn)


def _embedding(kernel: Kernel, sizes: list[int], steps: Floats) -> Floats:
    """Roots of the eigenvalues, over the number of points, of the smallest torus without negative eigenvalues."""
    period = [2 * max(size - 1, 1) for size in sizes]
    while np.prod(period) <= _MOST_POINTS:
        lags = [step * np.minimum(np.arange(m), m - np.arange(m)) for step, m in zip(steps, period, strict=True)]
        points = np.stack(np.meshgrid(*lags, indexing="ij"), axis=-1).reshape(-1, len(sizes))
        covariance = gram(kernel, points, np.zeros((1, len(sizes))))[:, 0].reshape(period)
        eigenvalues = np.fft.fftn(covariance).real
        if eigenvalues.min() >= -_ROUNDING * eigenvalues.max():
            return np.asarray(np.sqrt(np.maximum(eigenvalues, 0.0) / eigenvalues.size))
        period = [2 * m for m in period]
    raise ValueError(
        f"kernel {kernel} has no non-negative circulant embedding of up to {_MOST_POINTS} points on a grid of {sizes}: "
        "its length scales are too long for the grid. Shorten them, or draw with a Cholesky factor."
    )
