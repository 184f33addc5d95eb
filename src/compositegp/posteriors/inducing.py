"""From a belief about inducing variables to one about test points: FITC and PITC."""

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.kernels import gram
from compositegp.linalg import psd_root
from compositegp.means import as_mean, evaluate_mean
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
    mean : None, number or callable
        Prior mean, the same that the belief began with.

    Returns
    -------
    Belief
        It takes no further segments: update the belief about u, and project that again.
    """
    if not isinstance(belief, Belief) or belief.whitened is None:
        raise ValueError(
            f"belief must come from prior, update or posterior without inducing points; found {belief!r}."
        )
    latent, location, scale = belief.whitened
    points = check_points(Z, "Z", latent.points.shape[1])
    # z = μ_z + loading · ξ_u + remainder, the remainder independent of u with covariance Σ_zz − Q_zz
    loading = latent.whiten(gram(check_kernel(kernel), points, latent.points))
    remainder = psd_root(gram(kernel, points, points) - loading @ loading.T)
    return Belief(
        evaluate_mean(as_mean(mean), points) + loading @ location,
        np.concatenate([loading @ scale, remainder], axis=1),
    )
