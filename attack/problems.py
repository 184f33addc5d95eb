"""Random regression problems, and the exact Gaussian process for them by dense algebra from the textbook."""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Kernel,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

Random = np.random.Generator


class Problem(NamedTuple):
    """Data, test points and a kernel.

    Attributes
    ----------
    kernel : scikit-learn kernel
    X, y : arrays of shape (n, d) and (n,)
    Z : array of shape (m, d)
    noise_variance : array of shape (n,) or None
    """

    kernel: Kernel
    X: Any
    y: Any
    Z: Any
    noise_variance: Any = None


def tame(rng: Random, n: int | None = None) -> Problem:
    """A problem of ordinary size, which an exact Gaussian process solves to many digits."""
    n = int(rng.integers(2, 120)) if n is None else n
    d = int(rng.integers(1, 5))
    X = rng.uniform(-3, 3, size=(n, d))
    variance, noise = 10.0 ** rng.uniform(-2, 2), 10.0 ** rng.uniform(-3, 0)
    kernel = variance * _stationary(rng, d, 10.0 ** rng.uniform(-0.5, 1)) + WhiteKernel(noise * variance)
    y = np.sqrt(variance) * (np.sin(X).sum(axis=1) + np.sqrt(noise) * rng.normal(size=n))
    own = None if rng.random() < 0.7 else variance * noise * rng.uniform(0, 2, size=n)
    return Problem(kernel, X, y, rng.uniform(-4, 4, size=(int(rng.integers(1, 20)), d)), own)


def wild(rng: Random) -> Problem:
    """A problem with anything in it: large and small numbers, duplicates, constant columns, odd kernels."""
    n, d = int(2 ** rng.uniform(0, 8)), int(rng.integers(1, 9))
    X = rng.normal(size=(n, d))
    match int(rng.integers(8)):
        case 0:
            X = X.round(0)  # duplicates
        case 1:
            X[:, int(rng.integers(d))] = 3.0
        case 2:
            X[:, -1] = X[:, 0]
        case 3:
            X = X * 10.0 ** rng.uniform(-100, 100)
        case 4:
            X = X + 10.0 ** rng.uniform(0, 10)
        case _:
            pass
    y = np.sin(X[:, 0] / (np.ptp(X[:, 0]) or 1.0)) + 10.0 ** rng.uniform(-4, 1) * rng.normal(size=n)
    if rng.random() < 0.2:
        y = y * 10.0 ** rng.uniform(-150, 150)
    kernel = _random_kernel(rng, d)
    if rng.random() < 0.8:
        kernel = kernel + WhiteKernel(10.0 ** rng.uniform(-8, 4))
    span = X[rng.integers(n, size=5)] + rng.normal(size=(5, d)) * X.std(axis=0)
    return Problem(kernel, X, y, span)


def _stationary(rng: Random, d: int, length: float) -> Kernel:
    lengths: Any = length if rng.random() < 0.5 else length * rng.uniform(0.5, 2, size=d)
    match int(rng.integers(4)):
        case 0:
            return RBF(lengths)
        case 1:
            return RationalQuadratic(length, 10.0 ** rng.uniform(-1, 1))
        case _:
            return Matern(lengths, nu=float(rng.choice([0.5, 1.5, 2.5])))


def _random_kernel(rng: Random, d: int) -> Kernel:
    length = 10.0 ** rng.uniform(-3, 3)
    match int(rng.integers(7)):
        case 0:
            kernel: Kernel = DotProduct(10.0 ** rng.uniform(-2, 2))
        case 1:
            kernel = ExpSineSquared(length, 10.0 ** rng.uniform(-1, 1)) if d == 1 else Matern(length, nu=0.7)
        case 2:
            kernel = _stationary(rng, d, length) * _stationary(rng, d, length)
        case 3:
            kernel = _stationary(rng, d, length) + 0.3 * _stationary(rng, d, 10 * length)
        case 4:
            kernel = Matern(length, nu=float(rng.choice([0.7, 3.5, np.inf])))
        case _:
            kernel = _stationary(rng, d, length)
    return ConstantKernel(10.0 ** rng.uniform(-6, 6)) * kernel


class Answer(NamedTuple):
    """What the exact Gaussian process says about new observations.

    Attributes
    ----------
    mean, variance : arrays of shape (m,)
    condition : float
        Of the covariance of the data: how many digits are lost.
    """

    mean: Any
    variance: Any
    condition: float


def exact(problem: Problem) -> Answer:
    """Rasmussen and Williams (2006), Algorithm 2.1, with the noise of new observations added."""
    covariance = problem.kernel(problem.X)
    if problem.noise_variance is not None:
        covariance = covariance + np.diag(problem.noise_variance)
    factor = cho_factor(covariance, lower=True)
    across = problem.kernel(problem.X, problem.Z)
    prior = problem.kernel.diag(problem.Z)
    mean = across.T @ cho_solve(factor, problem.y)
    variance = prior - (across * cho_solve(factor, across)).sum(axis=0)
    return Answer(mean, variance, float(np.linalg.cond(covariance)))
