"""Prediction by the exact Gaussian process given one block of observations, which has been factorized."""

import numpy as np

from compositegp.backend import Floats, blas_threads_for, fetch, like, psd_root, solve_lower
from compositegp.composite import FactoredStack, Observations, batches
from compositegp.kernels import diagonal, gram
from compositegp.posteriors.belief import Belief, Marginals, check_finite, empty_marginals
from compositegp.posteriors.block_coefficients import conditional_mean, kriging_weights, weighted_means


def exact_marginals(data: Observations, factored: FactoredStack, Z: Floats) -> Marginals:
    """Predict each latent value at `Z` by the exact Gaussian process given one block, which has been factorized.

    No algebra over the test points is needed, so that dense test points and data without noise are no difficulty.
    """
    result = empty_marginals(len(Z), data.outputs)
    n = factored.innovations.shape[1]
    with blas_threads_for(n):
        for part in batches(len(Z), n):
            points = Z[None, part]
            V = solve_lower(factored.lower, gram(data.kernel, factored.points, like(points, factored.points)))
            mean, sensitivity_root, _ = conditional_mean(data, factored.innovations, V, points)
            informed = fetch((V * V).sum(1))[0]
            variance = np.maximum(diagonal(data.kernel, Z[part], noise=False) - informed, 0.0)
            result.mean[part] = mean[0].reshape(-1, *data.outputs)
            result.variance[part] = variance + (sensitivity_root[0] ** 2).sum(axis=-1)
    check_finite(data.kernel, result.mean, result.variance)
    return result


def exact_means(data: Observations, factored: FactoredStack, Z: Floats) -> Floats:
    """Means alone at `Z` by the exact Gaussian process given one block: n operations a test point, and not n²."""
    result = np.empty((len(Z), data.n_outputs))
    n = factored.innovations.shape[1]
    with blas_threads_for(n):
        weights, coefficients = kriging_weights(data, factored.lower, factored.innovations)
        for part in batches(len(Z), n):
            result[part] = weighted_means(data, factored.points, weights, coefficients, Z[None, part])[0]
    check_finite(data.kernel, result, np.zeros(0))
    return result.reshape(-1, *data.outputs)


def exact_belief(data: Observations, factored: FactoredStack, Z: Floats) -> Belief:
    """Joint belief about the latent values at `Z` by the exact Gaussian process given one block."""
    with blas_threads_for(max(len(Z), factored.innovations.shape[1])):
        points = Z[None]
        V = solve_lower(factored.lower, gram(data.kernel, factored.points, like(points, factored.points)))
        mean, sensitivity_root, _ = conditional_mean(data, factored.innovations, V, points)
        covariance = gram(data.kernel, Z, Z) - fetch(V.mT @ V)[0]
        check_finite(data.kernel, mean, covariance)
        root = psd_root(covariance)
        root = np.concatenate([root, sensitivity_root[0]], axis=1)
    return Belief(mean[0].reshape(-1, *data.outputs), root)
