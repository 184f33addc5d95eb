"""Fisher information by the Slepian–Bangs formula."""

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.arrays import Floats
from compositegp.composite import Composite, Observations
from compositegp.learning.passes import total_score
from compositegp.learning.terms import Terms
from compositegp.validation import check_points


def fisher_information(
    kernel: Kernel,
    X: Any,
    composite: Any = None,
    *,
    mean: Any = None,
    noise_variance: Any = None,
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
        With unknown coefficients these are further parameters.
    noise_variance : None, number or array of shape (n,)
    n_jobs : int, optional
        Processes to use, as in joblib.

    Returns
    -------
    array of shape (p + q, p + q)
        First the free hyper-parameters, on the log scale of ``kernel.theta``, then the coefficients.
    """
    points = check_points(X, "X")
    data = Observations.checked(kernel, points, np.zeros(len(points)), mean=mean, noise_variance=noise_variance)
    terms = Terms(data, Composite.full(len(points)) if composite is None else composite, 0)
    if not len(data.kernel.theta):
        raise ValueError(f"kernel {kernel} has no free hyper-parameter: there is nothing to be informed about.")
    q = data.columns.shape[1] - 1
    everything = terms.take(np.arange(len(terms)), data.kernel)
    total = total_score(data, everything, np.zeros(q), probes=-1, n_jobs=n_jobs)
    p = len(total.fisher)
    information = np.zeros((p + q, p + q))
    information[:p, :p] = total.fisher
    information[p:, p:] = total.normal[:-1, :-1]
    return information
