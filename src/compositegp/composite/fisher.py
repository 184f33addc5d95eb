"""Fisher information by the Slepian–Bangs formula."""

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, IndexSets
from compositegp.composite.observations import Observations
from compositegp.composite.sum_over_terms import total_score
from compositegp.composite.terms import Composite
from compositegp.functionals import PointsLike, lift
from compositegp.means import MeanLike, as_mean
from compositegp.validation import check_kernel, check_points


def fisher_information(
    kernel: Kernel,
    X: PointsLike,
    composite: Composite | IndexSets | None = None,
    *,
    mean: MeanLike = None,
    noise_variance: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Floats:
    """Fisher information about the hyper-parameters, and about the coefficients of the mean, in data at `X`.

    [J]_ij = (∂μ/∂θ_i)ᵀ Σ⁻¹ (∂μ/∂θ_j) + ½ tr(Σ⁻¹ ∂Σ/∂θ_i Σ⁻¹ ∂Σ/∂θ_j), computed exactly. No data are needed.

    Parameters
    ----------
    kernel : scikit-learn kernel
    X : array of shape (n, d)
    composite : Composite or list of int arrays, optional
        The information is the weighted sum over its terms; all of `X` as one term if left out.
    mean : as in `posterior`
        Unknown coefficients are further parameters.
    noise_variance : None, number or array of shape (n,)
    n_jobs : int, optional
        Processes to use, as in joblib.

    Returns
    -------
    array of shape (p + q, p + q)
        First the free hyper-parameters, on the log scale of ``kernel.theta``, then the coefficients.

    Examples
    --------
    The standard error of the log of a noise variance, from 50 observations of noise, is √(2 / 50):

    >>> from sklearn.gaussian_process.kernels import WhiteKernel
    >>> information = fisher_information(WhiteKernel(0.3), np.arange(50.0)[:, None])
    >>> float(1 / np.sqrt(information[0, 0]))
    0.2
    """
    kernel, (rows,) = lift(check_kernel(kernel), X=X)
    points = check_points(rows, "X")
    # The mean as it is: the information is about the coefficients of the functions that were given.
    given = as_mean(mean)
    data = Observations.checked(kernel, points, np.zeros(len(points)), mean=given, noise_variance=noise_variance)
    terms = _terms(composite, len(points))
    if not len(data.kernel.theta):
        raise ValueError(f"kernel {kernel} has no free hyper-parameter: there is no information to compute.")
    q = data.basis.shape[1]
    total = total_score(data, terms, np.zeros((q, 1)), probes=-1, n_jobs=n_jobs)
    p = len(total.fisher)
    information = np.zeros((p + q, p + q))
    information[:p, :p] = total.fisher
    information[p:, p:] = total.normal.information
    return information


def _terms(composite: Composite | IndexSets | None, n_samples: int) -> Composite:
    if composite is None:
        return Composite.full(n_samples)
    terms: Composite = composite if isinstance(composite, Composite) else Composite.marginal(composite)
    if terms.n_points > n_samples:
        raise ValueError(f"composite names point {terms.n_points - 1}, but X has only {n_samples} point(s).")
    return terms
