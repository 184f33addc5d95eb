"""From a belief about inducing variables to one about test points: FITC and PITC."""

from dataclasses import replace

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, psd_root
from compositegp.functionals import PointsLike, lift, matching_kernel, matching_mean
from compositegp.kernels import gram
from compositegp.means import MeanLike, MeanModel, as_mean
from compositegp.posteriors.belief import Belief, check_finite
from compositegp.validation import check_kernel, check_points


def project(belief: Belief, kernel: Kernel, Z: PointsLike, *, mean: MeanLike = None) -> Belief:
    """Belief about the latent values at `Z` from one about those at other points, by p(z | u).

    Parameters
    ----------
    belief : Belief
        About u, the latent values at the inducing points.
    kernel : scikit-learn kernel
    Z : array of shape (M, d), or functionals
    mean : as in `prior`
        The same that the belief began with.

    Returns
    -------
    Belief
        It takes no further segments: update the belief about u, and project that again.

    Examples
    --------
    >>> from compositegp import prior
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> kernel = RBF() + WhiteKernel(0.1)
    >>> about_u = prior(kernel, [[0.0], [1.0], [2.0]]).update([[0.1], [1.9]], [0.0, 1.0])
    >>> project(about_u, kernel, [[1.0], [1.5]]).mean.round(1)
    array([0.5, 0.8])
    """
    if not isinstance(belief, Belief) or belief.whitened is None:
        raise ValueError(
            f"belief must come from prior, an update or a posterior without inducing points; found {belief!r}."
        )
    known = belief.whitened
    kernel = matching_kernel(check_kernel(kernel), known.kernel)
    kernel, (Z, sites) = lift(kernel, Z=Z, points=known.latent.points)
    points = check_points(Z, "Z", sites.shape[1])
    belief = replace(belief, whitened=known._replace(latent=replace(known.latent, points=sites)))
    given = matching_mean(kernel, as_mean(mean))
    own = None if known.mean is None else matching_mean(kernel, known.mean)
    if own is not None and own.columns(points).shape == given.columns(points).shape:
        given = own  # its basis functions are in the units of the belief's coefficients
    return project_belief(belief, kernel, points, given)


def project_belief(belief: Belief, kernel: Kernel, Z: Floats, mean: MeanModel) -> Belief:
    """Belief about the latent values at `Z` by p(z | u), from values that have been checked: see `project`."""
    assert belief.whitened is not None
    latent, location, scale, *_ = belief.whitened
    # z = μ_z + loading · ξ_u + remainder, the remainder independent of u with covariance Σ_zz − Q_zz
    loading = latent.whiten(gram(kernel, Z, latent.points))
    conditional = gram(kernel, Z, Z) - loading @ loading.T
    check_finite(kernel, conditional)
    remainder = psd_root(conditional)
    coordinates = np.concatenate([loading, mean.columns(Z)], axis=1)
    if coordinates.shape[1] != len(location):
        raise ValueError("mean is not the one that belief began with. Pass the same mean to both.")
    return Belief(
        (mean.values(Z) + coordinates @ location).reshape(-1, *belief.outputs),
        np.concatenate([coordinates @ scale, remainder], axis=1),
    )
