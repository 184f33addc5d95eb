"""From a belief about inducing variables to one about test points: FITC and PITC."""

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import psd_root
from compositegp.kernels import gram
from compositegp.means import as_mean
from compositegp.posteriors.belief import Belief
from compositegp.validation import check_kernel, check_points


def project(belief: Belief, kernel: Kernel, Z: Any, *, mean: Any = None) -> Belief:
    """Belief about the latent values at `Z` from one about those at other points, by p(z | u).

    Parameters
    ----------
    belief : Belief
        About u, the latent values at the inducing points.
    kernel : scikit-learn kernel
    Z : array of shape (M, d)
    mean : as in `prior`
        The same that the belief began with.

    Returns
    -------
    Belief
        It takes no further segments: update the belief about u, and project that again.
    """
    if not isinstance(belief, Belief) or belief.whitened is None:
        raise ValueError(
            f"belief must come from prior, update or posterior without inducing points; found {belief!r}."
        )
    latent, location, scale, _ = belief.whitened
    points = check_points(Z, "Z", latent.points.shape[1])
    model = as_mean(mean)
    # z = μ_z + loading · ξ_u + remainder, the remainder independent of u with covariance Σ_zz − Q_zz
    loading = latent.whiten(gram(check_kernel(kernel), points, latent.points))
    remainder = psd_root(gram(kernel, points, points) - loading @ loading.T)
    coordinates = np.concatenate([loading, model.columns(points)], axis=1)
    if coordinates.shape[1] != len(location):
        raise ValueError("mean is not the one that belief began with. Pass the same mean to both.")
    return Belief(
        model.values(points) + coordinates @ location,
        np.concatenate([coordinates @ scale, remainder], axis=1),
    )
