"""The predictor that a composite makes: its mean is linear in the data, and the coefficients do not depend on them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import Kernel

from compositegp.analysis.information_gain import (
    gain_by_covariance,
    gain_by_precision,
    information_of_blocks,
    pointwise_information,
)
from compositegp.backend import (
    Floats,
    Indices,
    SingularMatrixError,
    blas_threads_for,
    cholesky_of_complement,
    invert_lower,
    on_processor,
    psd_root,
    solve_lower,
)
from compositegp.composite import (
    Composite,
    FactoredStack,
    Latent,
    Observations,
    batches,
    factor_stacks,
    loadings,
    resolvable,
    too_much_evidence,
)
from compositegp.functionals import PointsLike, lift
from compositegp.kernels import diagonal, gram, in_length_scales
from compositegp.validation import check_kernel, check_points


@dataclass(frozen=True, eq=False)
class LinearPredictor:
    """A composite's belief before the data are seen: the variance that it will claim, and the weights of the data.

    Attributes
    ----------
    coefficients : array of shape (M, N)
        w: the mean is μ_z + w (y − μ).
    root : array of shape (M, r)
        root · rootᵀ is the covariance that the belief claims.
    information : float
        What the belief claims to have learned about the latent, in nats: ½ (ln det Σ_zz − ln det Σ̃_z), the expected
        divergence from the prior under the composite's own marginal.
    segment_information : array of shape (blocks,)
        What each segment has about the latent, Σ w I(z; y_S) over the terms of its block, in the order of the segments.
    pointwise_sum : array of shape (M,)
        Σ w I(z; y_S) over all the terms, about each latent value alone.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> from compositegp.analysis import predictor
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> data = Observations.checked(RBF() + WhiteKernel(0.1), X, np.zeros(20), mean=None, noise_variance=None)
    >>> found = predictor(data, np.array([[0.5], [2.0]]), Composite.full(20), None)
    >>> found.coefficients.shape, found.claimed_variance.round(2)
    ((2, 20), array([0.01, 0.52]))
    """

    coefficients: Floats
    root: Floats
    information: float
    segment_information: Floats
    pointwise_sum: Floats

    @property
    def claimed_variance(self) -> Floats:
        """Variances that the belief claims, shape (M,)."""
        return np.asarray(np.einsum("mr,mr->m", self.root, self.root))


@on_processor("analysis")
def predictor(data: Observations, Z: Floats, composite: Composite, inducing: Floats | None) -> LinearPredictor:
    """Coefficients and claims of a composite, with the latent at `Z` or at inducing points.

    Parameters
    ----------
    data : Observations
        Their targets do not matter.
    Z : array of shape (M, d)
    composite : Composite
    inducing : array of shape (m, d) or None

    Returns
    -------
    LinearPredictor

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> data, Z = without_data(RBF() + WhiteKernel(0.5), [[0.0], [1.0]], [[0.0]], None)
    >>> predictor(data, Z, Composite.full(2), None).coefficients.round(3)
    array([[0.602, 0.161]])
    """
    kernel = data.kernel
    with blas_threads_for(max(composite.largest_block, len(Z))):
        latent = Latent.prior(kernel, Z if inducing is None else inducing, data.mean)
        r = latent.root.shape[1]
        precision, shifts = np.eye(r), np.zeros((r, len(data.X)))
        informations: list[Floats] = []
        pointwise = np.zeros(len(Z))
        prior_variance = diagonal(kernel, Z, noise=False)
        for factored in factor_stacks(data, composite):
            n = factored.innovations.shape[1]
            for blocks in batches(len(factored.stack), n * max(n, len(latent.points))):
                part = factored[blocks]
                found = _block_shifts(kernel, latent, part)
                precision += found.precision
                informations.append(found.information)
                for indices, shift in zip(part.stack.indices, found.shifts, strict=True):
                    shifts[:, indices] += shift
                pointwise += pointwise_information(kernel, part, Z, prior_variance)
        lower = np.ascontiguousarray(np.linalg.cholesky(precision), dtype=np.float64)
        scale = solve_lower(lower, np.eye(r)).T
        locations = scale @ (scale.T @ shifts)
        if inducing is None:
            loading, remainder = latent.root, np.empty((len(Z), 0))
        else:
            loading = latent.whiten(gram(kernel, Z, latent.points))
            remainder = psd_root(gram(kernel, Z, Z) - loading @ loading.T)
        root = np.concatenate([loading @ scale, remainder], axis=1)
        if inducing is None:
            information = gain_by_precision(lower)
        else:
            information = gain_by_covariance(Latent.prior(kernel, Z, data.mean), root)
        order = np.argsort(np.concatenate([stack.segment_numbers for stack in composite.stacks]))
        return LinearPredictor(
            loading @ locations, root, information, np.concatenate(informations)[order], pointwise
        )


@dataclass(frozen=True, eq=False)
class _BlockShifts:
    precision: Floats  # (r, r), summed over the blocks
    shifts: Floats  # (blocks, r, n): a unit of each datum adds this to the shift
    information: Floats  # (blocks,)


def _block_shifts(kernel: Kernel, latent: Latent, part: FactoredStack) -> _BlockShifts:
    """Natural parameters of blocks as functions of the data: η = shifts · (y − μ)."""
    for W, limit in resolvable(latent, loadings(kernel, latent, part)):
        try:
            lower, tempering = cholesky_of_complement(W @ W.transpose(0, 2, 1), limit)
        except SingularMatrixError:
            continue
        weights = part.stack.row_weights
        U = solve_lower(lower, np.sqrt(1 - tempering) * W)
        V = solve_lower(lower, np.sqrt(1 - tempering) * invert_lower(part.lower.copy()))
        weighted = U * weights[..., None]
        information = information_of_blocks(weights, lower)
        precision = np.einsum("bnr,bns->rs", weighted, U, optimize=True)
        return _BlockShifts(precision, weighted.transpose(0, 2, 1) @ V, information)
    raise too_much_evidence(kernel, f"One of the segments {', '.join(map(str, part.stack.segment_numbers))}")


def without_data(
    kernel: Kernel, X: PointsLike, Z: PointsLike, noise_variance: ArrayLike | None
) -> tuple[Observations, Floats]:
    """Checked points and test points of a problem; the targets are zero, since nothing depends on them.

    Parameters
    ----------
    kernel : scikit-learn kernel
    X : array of shape (n, d)
    Z : array of shape (M, d)
    noise_variance : None, number or array of shape (n,)

    Returns
    -------
    Observations, array of shape (M, d)

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> data, tests = without_data(RBF(), [[0.0], [1.0]], [[0.5]], None)
    >>> data.X.shape, data.targets, tests
    ((2, 1), array([0., 0.]), array([[0.5]]))
    """
    kernel, (X, Z) = lift(check_kernel(kernel), X=X, Z=Z)
    points = check_points(X, "X")
    data = Observations.checked(kernel, points, np.zeros(len(points)), mean=None, noise_variance=noise_variance)
    return data, check_points(Z, "Z", points.shape[1])


def neighborhood(data: Observations, Z: Floats, count: int) -> Indices:
    """The `count` observations nearest to any of the test points, or all of them if there are fewer.

    Parameters
    ----------
    data : Observations
        Distances are in the length scales of its kernel.
    Z : array of shape (M, d)
    count : int

    Returns
    -------
    int array, ascending

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> data, tests = without_data(RBF(), np.arange(10.0)[:, None], [[6.0]], None)
    >>> neighborhood(data, tests, 3)
    array([5, 6, 7])
    """
    if len(data.X) <= count:
        return np.arange(len(data.X))
    distances, _ = KDTree(in_length_scales(data.kernel, Z)).query(in_length_scales(data.kernel, data.X))
    return np.sort(np.argpartition(distances, count)[:count])
