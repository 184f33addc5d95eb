"""The paper's recursion: one segment in, the belief out, the data dropped."""

import contextlib
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import (
    Floats,
    SingularMatrixError,
    add_to_diagonal,
    blas_threads_for,
    cholesky,
    cholesky_of_complement,
    solve_lower,
    solve_lower_vectors,
    use_device,
)
from compositegp.composite import (
    Composite,
    Evidence,
    Latent,
    Observations,
    collect_evidence,
    factor_stacks,
    loadings,
    resolvable,
    too_much_evidence,
)
from compositegp.means import MeanModel, as_mean
from compositegp.posteriors.belief import Belief, Whitened, condition
from compositegp.validation import check_points


@use_device(None)
def update(
    belief: Belief,
    kernel: Kernel,
    Z: Any,
    X_k: Any,
    y_k: Any,
    *,
    mean: Any = None,
    noise_variance: Any = None,
) -> Belief:
    """Update the belief about the latent values at `Z` with one segment of data.

    Segments in any order, one call each, give the belief of ``posterior`` with ``Composite.marginal``; a
    single segment with all the data gives the exact Gaussian process. The belief passed in is left as it
    was.

    Parameters
    ----------
    belief : Belief
        From `prior`, `update` or `posterior` (without inducing points), at the same `Z`.
    kernel : scikit-learn kernel
    Z : array of shape (M, d)
    X_k : array of shape (n, d)
    y_k : array of shape (n,)
    mean : as in `prior`
        The same that the belief began with. Unknown coefficients are learned as the segments come: they are part of
        the latent, so that segments which share a pattern through the mean do not count it twice.
    noise_variance : None, number or array of shape (n,)
        Noise variances of the points, beside the kernel's own.

    Returns
    -------
    Belief
    """
    if not isinstance(belief, Belief) or belief.whitened is None:
        raise ValueError(
            "belief must come from prior(kernel, Z), or from an update or posterior with neither inducing points nor "
            f"an Estimated mean; found {belief!r}."
        )
    latent, location, scale, natural = belief.whitened
    points = check_points(Z, "Z", latent.points.shape[1])
    if not np.array_equal(points, latent.points):
        raise ValueError("Z are not the points that belief is about. Pass the same Z to prior and to update.")
    model = as_mean(mean)
    same = np.array_equal(model.values(points), latent.mean) and np.array_equal(model.columns(points), latent.basis)
    if not same:
        raise ValueError("mean is not the one that belief began with. Pass the same mean to prior and to update.")
    data = Observations.checked(
        kernel,
        X_k,
        y_k,
        mean=model,
        noise_variance=noise_variance,
        n_columns=points.shape[1],
        names=("X_k", "y_k"),
    )
    with blas_threads_for(max(len(data.X), len(points))):
        (factored,) = factor_stacks(data, Composite.full(len(data.X)))
        if natural is not None:
            return condition(latent, natural.plus(collect_evidence(data.kernel, latent, factored)))
        if not len(location):
            return belief
        W_all = loadings(data.kernel, latent, factored)[0]
        for W, limit in resolvable(latent, W_all):
            with contextlib.suppress(SingularMatrixError):
                moments = _update(location, scale, W, factored.innovations[0, :, 0], limit)
                return Belief.of(Whitened(latent, *moments))
    raise too_much_evidence(data.kernel, f"The segment of {len(data.X)} point(s)")


def _update(location: Floats, scale: Floats, W: Floats, innovations: Floats, limit: float) -> tuple[Floats, Floats]:
    """Liu et al. (2018), Section 4.2, in whitened coordinates.

    With y_k − μ_k = C (W ξ + e) the paper's H_k is C W root⁻¹, and its G_k is C G Cᵀ.
    """
    inner = W @ W.T
    _, tempering = cholesky_of_complement(inner, limit)
    W, innovations = np.sqrt(1 - tempering) * W, np.sqrt(1 - tempering) * innovations
    HS = W @ scale
    G = HS @ HS.T - (1 - tempering) * inner  # Σ_{y_k | z} = C (I − W Wᵀ) Cᵀ
    add_to_diagonal(G, 1.0)
    lower, jitter = cholesky(G)
    if jitter.any():
        raise SingularMatrixError(0)
    gain = solve_lower(lower, HS.copy())
    location = location + scale @ (gain.T @ solve_lower_vectors(lower, innovations - W @ location))
    # Σ̃_{z|y_1:k} = Σ̃ − Σ̃ Hᵀ G⁻¹ H Σ̃, by its root
    remaining, _ = cholesky_of_complement(gain.T @ gain)
    return location, scale @ remaining


def rebase(belief: Belief, kernel: Kernel) -> Belief:
    """The belief that the same evidence gives under another prior: for hyper-parameters that become better known.

    What the segments so far say about z, each under the hyper-parameters of its time, is kept; p(z) is exchanged.

    Parameters
    ----------
    belief : Belief
        From `prior`, `update` or `rebase`.
    kernel : scikit-learn kernel

    Returns
    -------
    Belief
    """
    if belief.whitened is None:
        raise ValueError(f"belief must come from prior, update or posterior; found {belief!r}.")
    old, location, scale, natural = belief.whitened
    new = Latent.prior(kernel, old.points, MeanModel(lambda _: old.mean, lambda _: old.basis, None))
    r_old, r_new, q = old.root.shape[1], new.root.shape[1], old.basis.shape[1]
    if natural is None:
        root = solve_lower(*_as_lower(scale))
        precision = root.T @ root  # I + Σ Λ
        matrix = np.zeros((r_old + 1, r_old + 1))
        matrix[:-1, :-1] = precision - np.eye(r_old)
        matrix[:-1, -1] = matrix[-1, :-1] = precision @ location
    else:
        matrix = natural.matrix
    change = np.eye(r_old + q + 1, r_new + q + 1)
    change[:r_old, :r_new] = old.whiten(new.root.T.copy()).T
    change[r_old:, :r_new], change[:r_old, r_new:] = 0.0, 0.0
    change[r_old:, r_new:] = np.eye(q + 1)
    return condition(new, Evidence(change.T @ matrix @ change))


def _as_lower(scale: Floats) -> tuple[Floats, Floats]:
    """A triangular root of scale · scaleᵀ, and the identity to solve for."""
    upper: Any = np.linalg.qr(scale.T, mode="r")
    return np.ascontiguousarray(upper.T), np.eye(len(scale))
