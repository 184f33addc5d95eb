"""The latent that a composite informs about: z at the test points, or u at the inducing points."""

from dataclasses import dataclass

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrf
from sklearn.gaussian_process.kernels import Kernel

from compositegp.arrays import Floats
from compositegp.kernels import diagonal, gram
from compositegp.linalg import independence, solve_right
from compositegp.means import MeanModel

_SURELY_REGULAR = 1e-8  # smallest squared pivot, over the largest, with which a Cholesky factor is trusted


@dataclass(frozen=True, eq=False)
class Latent:
    """Latent values in whitened coordinates: z = mean + root · ξ + basis · β, ξ standard normal before any data.

    Attributes
    ----------
    points : array of shape (M, d)
    mean : array of shape (M,)
    root : array of shape (M, r)
        root · rootᵀ = Σ_zz. Where Σ_zz is singular in float64, r < M: the latent is its numerically
        independent part.
    unroot : array of shape (M, r) or None
        The pseudo-inverse of `root`, transposed; None where `root` is triangular and a solve does it.
    basis : array of shape (M, q)
        Basis functions of the mean; β are their coefficients.
    variance : float
        The largest prior variance of f.
    """

    points: Floats
    mean: Floats
    root: Floats
    unroot: Floats | None
    basis: Floats
    variance: float

    @classmethod
    def prior(cls, kernel: Kernel, points: Floats, mean: MeanModel, noise_variance: float = 0.0) -> "Latent":
        """Whiten the Gaussian process prior at some points.

        `noise_variance` is the least noise that the data have beside the kernel's own: the less noise, the
        more of the prior's small directions are lost to rounding and have to be left out.
        """
        K_zz = gram(kernel, points, points)
        if not np.isfinite(K_zz).all():
            raise LinAlgError(
                f"Kernel {kernel} gives a covariance that is not finite at the test points. Scale the inputs, or "
                "choose hyper-parameters of their size."
            )
        lower, failed = dpotrf(K_zz.T, lower=0, clean=1)
        pivots = np.diagonal(lower) ** 2
        latent_variance = diagonal(kernel, points, noise=False)
        largest = float(latent_variance.max())
        values, basis = mean.values(points), mean.columns(points)
        if not failed and pivots.min() > _SURELY_REGULAR * pivots.max():
            return cls(points, values, np.ascontiguousarray(lower.T), None, basis, largest)
        eigenvalues, vectors = np.linalg.eigh(K_zz)
        noise = float((diagonal(kernel, points) - latent_variance).min()) + noise_variance
        keep = eigenvalues > max(independence(len(points), noise, largest) * eigenvalues[-1], 0.0)
        scale = np.sqrt(eigenvalues[keep])
        return cls(points, values, vectors[:, keep] * scale, vectors[:, keep] / scale, basis, largest)

    def whiten(self, covariances: Floats) -> Floats:
        """Covariances with z, shape (..., M), as covariances with ξ, shape (..., r); may overwrite them."""
        if self.unroot is None:
            return solve_right(self.root, covariances)
        return np.asarray(covariances @ self.unroot)

    @property
    def coordinates(self) -> Floats:
        """Map from (ξ, β) to z, less the known mean: shape (M, r + q)."""
        return np.concatenate([self.root, self.basis], axis=1)
