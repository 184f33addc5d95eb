"""Joint draws of a field at any number of points: group after group, each given the data and what was drawn nearby."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.spatial import KDTree

from compositegp.backend import Floats, Indices, add_to_diagonal, blas_threads_for, on_processor, psd_root
from compositegp.composite import EarlierPoints, Observations
from compositegp.kernels import diagonal, gram, in_length_scales
from compositegp.means import Estimated
from compositegp.posteriors.close_groups import close_groups

_GROUP = 64  # points that are drawn at once, at most
_OBSERVED = 256  # nearest observations that a group is conditioned on
_DRAWN = 192  # nearest points drawn before that a group is conditioned on
_CANDIDATES = 2  # nearest observations of the center of a group that are looked at, for each one wanted
_JITTER = 1e-9  # of the field's variance, added where it is known without noise


class FieldDraws(NamedTuple):
    """Draws of the latent field, and what is believed about each point from the data alone.

    Attributes
    ----------
    mean, variance : arrays of shape (M,)
    draws : array of shape (M, n)
    """

    mean: Floats
    variance: Floats
    draws: Floats


@on_processor("sample_field")
def draw_field(data: Observations, Z: Floats, n_samples: int, seed: int) -> FieldDraws:
    """Draw the latent field at test points jointly, given the data.

    The points are taken in groups that are close together, in a random order. A group is drawn from the Gaussian
    process given the nearest observations and the nearest points that were drawn before: a Vecchia approximation, which
    is exact where these are all. The result depends on the points and the seed alone. The coefficients of an estimated
    mean are drawn too.

    Parameters
    ----------
    data : Observations
        With one output.
    Z : array of shape (M, d)
    n_samples : int
    seed : int
    """
    if data.n_outputs != 1:
        raise ValueError(f"a field is drawn of one output; found {data.n_outputs}.")
    places, tests = in_length_scales(data.kernel, data.X), in_length_scales(data.kernel, Z)
    tree = KDTree(places)
    count = min(_OBSERVED, len(places))
    groups = close_groups(tests, _GROUP, lambda centers: tree.query(centers, k=[count])[0][:, 0])
    order = np.random.default_rng([seed, 0]).permutation(len(groups))
    groups = [groups[number] for number in order]
    earlier = EarlierPoints(tests, groups, _DRAWN).of(np.arange(len(groups)), None)
    known, errors = _mean_of(data)
    shifts = np.random.default_rng([seed, 1]).standard_normal((errors.shape[1], n_samples))
    betas = known[:, None] + errors @ shifts
    found = FieldDraws(np.empty(len(Z)), np.empty(len(Z)), np.empty((len(Z), n_samples)))
    with blas_threads_for(0):
        for number, (own, drawn) in enumerate(zip(groups, earlier, strict=True)):
            near = _nearest(tree, places, tests[own])
            normals = np.random.default_rng([seed, 2, number]).standard_normal((len(own), n_samples))
            _draw_group(data, Z, own, drawn, near, betas, known, errors, normals, found)
    return found


def _mean_of(data: Observations) -> tuple[Floats, Floats]:
    """Coefficients (q,) of an estimated mean and a root (q, q) of their covariance; empty where it has none."""
    estimate = data.mean.coefficients
    if not isinstance(estimate, Estimated):
        return np.zeros(0), np.zeros((0, 0))
    return np.ravel(estimate.coefficients).astype(np.float64), psd_root(
        np.asarray(estimate.covariance, dtype=float)
    )


def _nearest(tree: KDTree, places: Floats, own: Floats) -> Indices:
    """The observations nearest to any point of a group."""
    count = min(len(places), _CANDIDATES * _OBSERVED)
    near = tree.query(own.mean(axis=0), k=np.arange(1, count + 1))[1]
    if count <= _OBSERVED:
        return np.asarray(near)
    distances = KDTree(own).query(places[near])[0]
    return np.asarray(near[np.argsort(distances, kind="stable")[:_OBSERVED]])


def _draw_group(
    data: Observations,
    Z: Floats,
    own: Indices,
    drawn: Indices,
    near: Indices,
    betas: Floats,
    known: Floats,
    errors: Floats,
    normals: Floats,
    found: FieldDraws,
) -> None:
    """Draw the points `own`, given the observations `near` and the points `drawn`, and keep them in `found`."""
    kernel, q = data.kernel, len(known)
    some = data.take(near)
    X, points = np.concatenate([some.X, Z[drawn]]), Z[own]
    K = gram(kernel, X, X)
    jitter = _JITTER * float(diagonal(kernel, points, noise=False).max())
    noise = np.full(len(X), jitter)
    noise[: len(near)] += some.noise
    add_to_diagonal(K, noise)
    lower = np.linalg.cholesky(K)
    functions = some.basis
    columns = data.mean.columns(Z[np.concatenate([drawn, own])])
    fixed = data.mean.values(Z[np.concatenate([drawn, own])])[:, 0]
    there, here = columns[: len(drawn)], columns[len(drawn) :]
    # What is known less the mean, for each draw of the coefficients.
    residuals = np.concatenate(
        [
            some.columns[:, q:] - functions @ betas,
            found.draws[drawn] - fixed[: len(drawn), None] - there @ betas,
        ]
    )
    cross = gram(kernel, X, points)
    weights = cho_solve((lower, True), cross, check_finite=False)
    covariance = gram(kernel, points, points) - cross.T @ weights
    add_to_diagonal(covariance, np.full(len(own), jitter))
    root = psd_root(covariance)
    level = fixed[len(drawn) :]
    found.draws[own] = level[:, None] + here @ betas + weights.T @ residuals + root @ normals[: root.shape[1]]
    # From the data alone: the leading rows of the factor are theirs.
    first = lower[: len(near), : len(near)]
    V = solve_triangular(first, np.column_stack([cross[: len(near)], some.columns]), lower=True)
    V, explained = V[:, : len(own)], V[:, len(own) :]
    sensitivity = here - V.T @ explained[:, :q]
    found.mean[own] = level + V.T @ explained[:, q] + sensitivity @ known
    left = np.maximum(diagonal(kernel, points, noise=False) - (V * V).sum(axis=0), jitter)
    found.variance[own] = left + ((sensitivity @ errors) ** 2).sum(axis=1)
