"""The kernel that the data choose: candidates compared by composite likelihood over the same terms."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, WhiteKernel
from sklearn.utils import check_random_state

from compositegp.backend import Indices, blas_threads_for
from compositegp.composite import Observations
from compositegp.kernels import with_finite_bounds
from compositegp.learning.fisher_average import FisherAverage
from compositegp.learning.hyperparameters import SCALE_SEGMENTS, problem_of, solve
from compositegp.learning.kernel_comparison import KernelComparison
from compositegp.learning.kernel_race import compare_kernels
from compositegp.learning.method import LearningMethod
from compositegp.learning.problem import Reporter
from compositegp.learning.result import LearningResult
from compositegp.learning.segment_reader import LocalSegments, SegmentSource
from compositegp.learning.starting_values import DEFAULT_BOUNDS, data_scale
from compositegp.means import ordinary_least_squares
from compositegp.progress import ProgressBar
from compositegp.validation import check_kernel

AUTO = "auto"
"""The value of an estimator's `kernel` that asks for a comparison of `kernel_family`."""

_LARGEST_AMPLITUDE = 1e3  # times the target's variance
_FEWEST_OBSERVATIONS = 50  # with fewer the default kernel is taken
_POINTS_A_PARAMETER = 20  # sums of the family are compared where there are at least as many observations


def kernel_family(n_columns: int, variance: float | None = None) -> dict[str, Kernel]:
    """The kernels that are compared where a user gives none.

    Matérn kernels of several smoothness, RBF, and two sums, each with an amplitude, one length scale for each column,
    and noise. The dictionary is a new one at every call: add to it, or take from it, and give it to an estimator.

    Parameters
    ----------
    n_columns : int
    variance : float, optional
        Variance of the target. Amplitudes are then bounded by 1,000 times that: smooth kernels with larger ones have
        covariances that are singular in double precision.

    Returns
    -------
    dict of str to scikit-learn kernel
        The first one is learned first, and the others begin where it ends.

    Examples
    --------
    >>> list(kernel_family(2))
    ['Matern 3/2', 'Matern 1/2', 'Matern 5/2', 'RBF', 'Matern 1/2 + RBF', 'Matern 3/2 + 1/2']
    >>> kernel_family(1)["RBF"]
    1**2 * RBF(length_scale=1) + WhiteKernel(noise_level=1)
    """
    length_scale: Any = np.ones(n_columns) if n_columns > 1 else 1.0
    bounds = DEFAULT_BOUNDS if variance is None else (DEFAULT_BOUNDS[0] * variance, _LARGEST_AMPLITUDE * variance)

    def amplitude() -> Kernel:
        return ConstantKernel(1.0 if variance is None else variance, bounds)

    def matern(nu: float) -> Kernel:
        return amplitude() * Matern(length_scale, nu=nu)

    def rbf() -> Kernel:
        return amplitude() * RBF(length_scale)

    return {
        "Matern 3/2": matern(1.5) + WhiteKernel(1.0),
        "Matern 1/2": matern(0.5) + WhiteKernel(1.0),
        "Matern 5/2": matern(2.5) + WhiteKernel(1.0),
        "RBF": rbf() + WhiteKernel(1.0),
        "Matern 1/2 + RBF": matern(0.5) + rbf() + WhiteKernel(1.0),
        "Matern 3/2 + 1/2": matern(1.5) + matern(0.5) + WhiteKernel(1.0),
    }


def is_automatic(kernel: Any) -> bool:
    """Whether a user leaves the kernel to the data: None, or "auto"."""
    return kernel is None or (isinstance(kernel, str) and kernel == AUTO)


def check_kernel_choice(kernel: Any) -> None:
    """Check an estimator's `kernel`: a kernel, None, "auto", or some kernels; a ValueError says what is wrong."""
    if is_automatic(kernel):
        return
    if isinstance(kernel, str):
        raise ValueError(
            f'kernel must be a kernel object, a list or dict of them, None or "auto"; found {kernel!r}.'
        )
    if not isinstance(kernel, list | tuple | Mapping):
        check_kernel(kernel)
        return
    if not kernel:
        raise ValueError(f"kernel is an empty {type(kernel).__name__}. Give the kernels to be compared, or None.")
    for name, one in _named(kernel).items():
        if not isinstance(name, str):
            raise ValueError(f"kernel has the key {name!r}. Give names, as text, for the kernels to be compared.")
        if not len(check_kernel(one).theta):
            raise ValueError(f"kernel {one}, one of those to be compared, has no free hyper-parameter.")


def single_kernel(kernel: Any) -> Kernel | None:
    """The kernel that a user gives, or the first of several; None where it is left to the data."""
    if is_automatic(kernel):
        return None
    several = isinstance(kernel, list | tuple | Mapping)
    return with_finite_bounds(next(iter(_named(kernel).values())) if several else kernel)


def candidates_of(
    kernel: Any, data: Observations, method: LearningMethod, n: int | None = None
) -> dict[str, Kernel]:
    """The kernels to compare for an estimator's `kernel`; none where there is no choice.

    Parameters
    ----------
    kernel : None, "auto", scikit-learn kernel, or list or dict of kernels
        None and "auto" stand for `kernel_family`. There is no comparison with fewer than 50 observations, nor, for
        None, where learning is by `FisherAverage`: the default kernel is then taken. Sums need 20 observations for
        each hyper-parameter.
    data : Observations
        Or a sample of them.
    method : LearningMethod
    n : int, optional
        Number of all the observations, where `data` is a sample.

    Returns
    -------
    dict of str to scikit-learn kernel
    """
    n, n_columns = len(data.X) if n is None else n, data.X.shape[1]
    if isinstance(kernel, Kernel):
        return {}
    if not is_automatic(kernel):
        return {name: with_finite_bounds(clone(one)) for name, one in _named(kernel).items()}
    if n < _FEWEST_OBSERVATIONS or (kernel is None and isinstance(method, FisherAverage)):
        return {}
    family = kernel_family(n_columns, float(data.residuals.var(axis=0).mean()))
    simple = n_columns + 2
    return {
        name: one
        for name, one in family.items()
        if len(one.theta) <= simple or n >= _POINTS_A_PARAMETER * len(one.theta)
    }


def choose_kernel(
    candidates: Mapping[str, Kernel],
    data: Observations,
    source: LocalSegments,
    method: LearningMethod,
    *,
    random_state: Any = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
    select: Callable[[KernelComparison], KernelComparison] | None = None,
) -> tuple[LearningResult, KernelComparison]:
    """Compare kernels by their composite likelihood over the same terms, and learn with the best of them.

    The first candidate is learned roughly. A composite of 1,024 points is then fixed, with conditioning sets found in
    its length scales, and the likelihood of every candidate is maximized on it, from where the candidates before it
    ended; of a sum whose best part is 0.1 a point behind, two steps are tried. Candidates that are worse by more than
    three standard errors are left, and so are those that are not expected to gain 0.001 a point; at most four go on to
    3,072. Of 768 to 2,048 observations half are compared first, in segments of a quarter of the size, and then all.
    Those that are then worse by more than two standard errors are left, and two at most go on to twice as many blocks,
    until one is left, the difference no longer matters, or 8,192 points are read. A candidate with p hyper-parameters
    is penalized, in log likelihood, by p/2 for what they gain by chance on n points, and by n p/(2 N) for what their
    errors cost after learning from all of N. Of candidates that are as good as the best within one standard error the
    one with the fewest parameters is chosen. Learning goes on from there until a step promises less than half of what
    the errors of θ are expected to cost, tr(H⁻¹ J) / 2, or half of 0.001 a point.

    Parameters
    ----------
    candidates : dict of str to scikit-learn kernel
    data : Observations
        Its kernel does not matter.
    source : LocalSegments
        The terms.
    method : LearningMethod
        By which the chosen kernel is learned, from where the comparison left it.
    random_state, n_jobs, verbose
        As in `learn`.
    select : callable, optional
        Has the last word: given the comparison it returns one with the kernel that is chosen.

    Returns
    -------
    LearningResult
        Of the chosen kernel.
    KernelComparison
    """
    generator = check_random_state(random_state)
    order = generator.permutation(len(source))
    sample = [source.segments[number] for number in order[:SCALE_SEGMENTS]]
    seed = int(generator.randint(2**31))
    return choose_kernel_from(
        candidates,
        data,
        sample,
        source,
        order,
        method,
        seed=seed,
        n_jobs=n_jobs,
        verbose=verbose,
        select=select,
    )


def choose_kernel_from(
    candidates: Mapping[str, Kernel],
    data: Observations,
    sample: list[Indices],
    source: SegmentSource,
    order: Any,
    method: LearningMethod,
    *,
    seed: int,
    n_jobs: int | None,
    verbose: bool,
    select: Callable[[KernelComparison], KernelComparison] | None = None,
) -> tuple[LearningResult, KernelComparison]:
    """`choose_kernel` for terms whose data may be elsewhere; the scale of the data is that of a sample of segments."""
    options: Any = {"seed": seed, "n_jobs": n_jobs}
    with ProgressBar("comparing kernels", show=verbose) as bar:
        first = data.with_kernel(next(iter(candidates.values())))
        silent = Reporter(None, False, len(source))
        problem = problem_of(first, sample, source, order, start=method.start, reporter=silent, **options)
        coefficients = ordinary_least_squares(data.basis, data.residuals)
        scale = data_scale(data.X, data.residuals - data.basis @ coefficients, sample)
        started = scale if method.start == "data" else None
        with blas_threads_for(0):  # once, and not for every score
            comparison = compare_kernels(candidates, problem, started, method.prior_spread(compared=True), bar)
        if select is not None:
            comparison = select(comparison)
    winner = comparison.best
    problem = problem_of(
        data.with_kernel(winner.kernel),
        sample,
        source,
        order,
        start="kernel",
        prior_spread=method.prior_spread(compared=True),
        reporter=Reporter(None, verbose, len(source)),
        **options,
    )
    problem.coefficients, problem.warm = winner.mean_coefficients, True
    return solve(problem, method), comparison


def _named(kernels: Any) -> dict[str, Kernel]:
    """Kernels by their names; those of a list are named as they print, and numbered where two print alike."""
    if isinstance(kernels, Mapping):
        return dict(kernels)
    found: dict[str, Kernel] = {}
    for kernel in kernels:
        name, number = str(kernel), 2
        while name in found:
            name, number = f"{kernel} ({number})", number + 1
        found[name] = kernel
    return found
