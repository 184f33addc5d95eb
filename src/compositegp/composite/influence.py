"""Which blocks can matter to a latent: an upper bound on the effect of a distant block."""

from collections.abc import Callable

import numpy as np

from compositegp.backend import Floats, psd_root
from compositegp.composite.factors import batches
from compositegp.composite.latent import Latent
from compositegp.composite.observations import Observations
from compositegp.composite.terms import Composite, Stack
from compositegp.functionals import plain_points
from compositegp.kernels import Boxes, covariance_bounds
from compositegp.means import Estimated, check_coefficients


class Influence:
    """Bounds on how far each block of a composite can move the belief about a latent.

    A block's loadings W = C⁻¹ Σ_kz L⁻ᵀ have ‖W‖ ≤ ‖Σ_kz‖ ‖L⁻¹‖ / σ, where σ² is the smallest noise variance. Σ_kz is
    bounded by the largest covariance between the bounding boxes of the block and the latent. With ‖W‖ = ε < 1 its
    evidence is at most ‖Λ‖ ≤ ε² / (1 − ε²) and ‖η‖ ≤ ε ‖C⁻¹(y − μ)‖ / (1 − ε²), where ‖C⁻¹(y − μ)‖ ≤ ‖y − μ‖ / σ. The
    precision is at least one. To first order in ε, the mean of any z therefore changes by no more than this in units of
    its prior standard deviation, and its variance by no more than this in units of its prior variance.

    Parameters
    ----------
    data : Observations
    composite : Composite
    """

    def __init__(self, data: Observations, composite: Composite) -> None:
        self._kernel = data.kernel
        self._noise = _least_noise(data)
        residuals, points = _residuals(data), plain_points(data.kernel, data.X)
        boxes, sizes = [], []
        for stack in composite.stacks:
            for blocks in batches(len(stack), stack.indices.shape[1] * data.X.shape[1]):
                boxes.append(Boxes.around(points[stack.indices[blocks]]))
                sizes.append(np.linalg.norm(residuals[stack.indices[blocks]], axis=(1, 2)))
        self._boxes = Boxes(*(np.concatenate(parts) for parts in zip(*boxes, strict=True)))
        self._sizes = np.concatenate(sizes)
        self._counts = _for_each_block(composite, lambda stack: np.full(len(stack), stack.indices.shape[1]))
        self._weights = _for_each_block(composite, lambda stack: np.abs(stack.weights).max(axis=1))

    def bounds(self, latent: Latent) -> Floats:
        """Bounds for all the blocks, in prior standard deviations of the latent; infinite if there is no bound."""
        if self._noise <= 0:
            return np.full(len(self._sizes), np.inf)
        own = Boxes.around(plain_points(self._kernel, latent.points)[None])
        largest = covariance_bounds(self._kernel, self._boxes, own)
        loading = largest * np.sqrt(self._counts * len(latent.points) / self._noise) * latent.inverse_norm
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            moved = self._weights * loading * (loading + self._sizes / np.sqrt(self._noise)) / (1 - loading**2)
        return np.where(loading < 0.5, moved, np.inf)


def _for_each_block(composite: Composite, values: Callable[[Stack], Floats]) -> Floats:
    return np.concatenate([values(stack) for stack in composite.stacks])


def _least_noise(data: Observations) -> float:
    """The smallest noise variance of an observation: a lower bound on the eigenvalues of their covariance."""
    return max(float(data.noise.min()), 0.0)


def _residuals(data: Observations) -> Floats:
    """Data minus their mean, followed by a root of the covariance from the error of the coefficients: (n, 1 + q)."""
    estimate = data.mean.coefficients
    if not isinstance(estimate, Estimated):
        return data.columns
    coefficients = check_coefficients(estimate.coefficients, data.basis.shape[1])
    error = data.basis @ psd_root(np.asarray(estimate.covariance, dtype=np.float64))
    return np.concatenate([data.residuals - data.basis @ coefficients, error], axis=1)
