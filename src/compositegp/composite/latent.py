"""The latent values that terms give evidence about: z at the test points, or u at the inducing points."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrf
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Array, Floats, like, solve_right
from compositegp.kernels import gram
from compositegp.means import MeanModel

_SURELY_REGULAR = 1e-8  # squared pivots above this part of the variances: a Cholesky factor is trusted
_SURELY_INDEFINITE = 1e-6  # a negative eigenvalue beyond this part of the largest is more than a rounding error


@dataclass(frozen=True, eq=False)
class Latent:
    """Latent values in whitened coordinates: z = mean + root · ξ + basis · β, with ξ standard normal before any data.

    Attributes
    ----------
    points : array of shape (M, d)
    mean : array of shape (M, 1) or (M, t)
    root : array of shape (M, r)
        root · rootᵀ = Σ_zz. If Σ_zz is singular in double precision, r < M: only the numerically independent part is
        kept.
    unroot : array of shape (M, r) or None
        The pseudo-inverse of `root`, transposed; None if `root` is triangular and a solve does the same.
    strengths : array of shape (r,)
        Prior variance of z along each coordinate of ξ, divided by the largest; ones if `root` is triangular.
    basis : array of shape (M, q)
        Basis functions of the mean; β are their coefficients.
    variance : float
        The largest prior variance of f.
    """

    points: Floats
    mean: Floats
    root: Floats
    unroot: Floats | None
    strengths: Floats
    basis: Floats
    variance: float

    @classmethod
    def prior(cls, kernel: Kernel, points: Floats, mean: MeanModel) -> "Latent":
        """Whiten the Gaussian process prior at some points."""
        points = points.copy()
        K_zz = gram(kernel, points, points)
        if not np.isfinite(K_zz).all():
            raise LinAlgError(
                f"Kernel {kernel} gives a covariance that is not finite at the test points. Scale the inputs, or "
                "choose hyper-parameters of their size."
            )
        variances = np.diagonal(K_zz).copy()
        roots = _roots(K_zz, kernel)
        return cls(points, mean.values(points), *roots, mean.columns(points), float(variances.max()))

    def alongside(self, A: Array) -> "Latent":
        """The same latent, with its arrays on the device of `A`."""
        if isinstance(A, np.ndarray):
            return self
        unroot = None if self.unroot is None else like(self.unroot, A)
        return replace(self, points=like(self.points, A), root=like(self.root, A), unroot=unroot)

    def whiten(self, covariances: Array) -> Array:
        """Covariances with z, shape (..., M), as covariances with ξ, shape (..., r); may overwrite them."""
        if self.unroot is None:
            return solve_right(self.root, covariances)
        return covariances @ self.unroot

    @cached_property
    def inverse_norm(self) -> float:
        """Frobenius norm of the map from z to ξ."""
        return float(np.linalg.norm(self.whiten(np.eye(len(self.points)))))

    @property
    def coordinates(self) -> Floats:
        """Map from (ξ, β) to z minus its known mean: shape (M, r + q)."""
        return np.concatenate([self.root, self.basis], axis=1)


def _roots(K_zz: Floats, kernel: Kernel) -> tuple[Floats, Floats | None, Floats]:
    """Root, pseudo-inverse and strengths of a prior covariance, as `Latent` has them."""
    lower, failed = dpotrf(K_zz.T, lower=0, clean=1)
    variances = np.diagonal(K_zz)
    if not failed and (np.diagonal(lower) ** 2 > _SURELY_REGULAR * variances).all():
        return np.ascontiguousarray(lower.T), None, np.ones(len(K_zz))
    # Scale by the standard deviations, so that points of small variance keep their digits.
    units = np.sqrt(np.maximum(variances, 0.0))
    inverse_units = np.divide(1.0, units, out=np.zeros_like(units), where=units > 0)
    eigenvalues, vectors = np.linalg.eigh(inverse_units[:, None] * K_zz * inverse_units)
    if eigenvalues[0] < -_SURELY_INDEFINITE * eigenvalues[-1]:
        raise LinAlgError(
            f"Kernel {kernel} is not positive definite at the test points. Check that it is a covariance (a periodic "
            "kernel is one on a single column only: see OnColumns)."
        )
    keep = eigenvalues > len(K_zz) * np.finfo(np.float64).eps * eigenvalues[-1]
    scale = np.sqrt(eigenvalues[keep])
    root, unroot = units[:, None] * vectors[:, keep] * scale, inverse_units[:, None] * vectors[:, keep] / scale
    return root, unroot, eigenvalues[keep] / eigenvalues[-1]
