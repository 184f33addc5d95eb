"""The paper's analysis: its bound, theorems and remarks, on examples that are small enough for dense algebra."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern, WhiteKernel

from compositegp.analysis import Report, compare
from compositegp.backend import Floats, Indices
from compositegp.composite import Composite, segment
from compositegp.kernels import gram
from compositegp.paper.claims import Claim, Experiment, table, write_csv
from compositegp.paper.remarks import remark_claims
from compositegp.posteriors import posterior

_LARGEST_ERROR = 3.5  # standard errors of a Monte-Carlo mean
_SETTING = (
    "Series of 24 noisy points in segments that follow each other (or take every second point: combs), and one to "
    "three test points between or ahead of them: small enough for dense algebra. "
    "Expectations are means over {draws:,} draws. `docs/theory.md` has the corrected formulas."
)
_COLUMNS = (
    "example",
    "I(z; y)",
    "Σ I(z; y_k)",
    "gain of the CGP",
    "variance: GP",
    "claimed by the CGP",
    "its error",
)


class Example(NamedTuple):
    """Observed points in segments, and test points."""

    name: str
    kernel: Kernel
    X: Floats
    Z: Floats
    n_segments: int
    scheme: str = "sequential"

    @property
    def segments(self) -> list[Indices]:
        """The observations of each segment."""
        return segment(self.X, len(self.X) // self.n_segments, self.scheme)

    @property
    def composite(self) -> Composite:
        """The segments as terms."""
        return Composite.marginal(self.segments)

    def compare(self) -> Report:
        """The composite beside the exact GP."""
        return compare(self.kernel, self.X, self.Z, self.composite)


_INSIDE = np.linspace(0, 4, 24)[:, None]
_AHEAD = np.arange(24.0)[:, None]
EXAMPLES = (
    Example("between, 4 segments", RBF(1.0) + WhiteKernel(0.1), _INSIDE, np.array([[0.9], [2.0], [3.1]]), 4),
    Example("ahead, 4 segments", Matern(30.0, nu=1.5) + WhiteKernel(0.5), _AHEAD, np.array([[24.0], [25.0]]), 4),
    Example("between, 2 segments", RBF(1.0) + WhiteKernel(0.01), _INSIDE, np.array([[2.1]]), 2),
    Example("ahead, 2 combs", RBF(2.0) + WhiteKernel(1e-4), _AHEAD, np.array([[24.0], [25.0]]), 2, "interleaved"),
)


def run(
    out: Path, *, draws: int = 40_000, seed: int = 0, report: Callable[[int, int], None] = lambda a, b: None
) -> Experiment:
    """Check the statements of Section 5.

    Parameters
    ----------
    out : Path
        Folder for tables.
    draws : int
        Of the data, for expectations.
    seed : int
    report : callable
        Called with the number of steps done, and the number of all.

    Returns
    -------
    Experiment
    """
    rng = np.random.default_rng(seed)
    reports = {example.name: example.compare() for example in EXAMPLES}
    rows = [
        (
            name,
            found.information_exact,
            found.information_sum,
            found.information_composite,
            float(found.exact_variance.mean()),
            float(found.claimed_variance.mean()),
            float(found.actual_mse.mean()),
        )
        for name, found in reports.items()
    ]
    write_csv(out / "analysis.csv", _COLUMNS, rows)
    experiment = Experiment("analysis", "Section 5: performance analysis", _SETTING.format(draws=draws))
    experiment.claims = [
        *_bound(EXAMPLES[2], reports[EXAMPLES[2].name]),
        _mean_squared_error(EXAMPLES[0], reports[EXAMPLES[0].name], draws, rng),
        _theorem_2(EXAMPLES[2], reports[EXAMPLES[2].name]),
        _mean_gain_of_the_gp(EXAMPLES[1], reports[EXAMPLES[1].name], draws, rng),
        _theorem_3(EXAMPLES[1], reports[EXAMPLES[1].name], draws, rng),
        *remark_claims(reports),
    ]
    experiment.tables = [table(_COLUMNS, rows)]
    report(1, 1)
    return experiment


def printed_bound(example: Example, found: Report) -> float:
    """The bound of Section 5.1 as printed: σ_z² exp(−2 I(z; y)) / (2πe)."""
    prior = float(gram(example.kernel, example.Z, example.Z)[0, 0])
    return prior * float(np.exp(-2 * found.information_exact)) / (2 * np.pi * np.e)


def printed_excess(example: Example, *, corrected: bool = False) -> float:
    """Theorem 2's excess error for K = 2, with its block A as printed or with the term that it lacks."""
    S, S_z = gram(example.kernel, example.X), gram(example.kernel, example.Z, example.X)[0]
    prior = float(gram(example.kernel, example.Z, example.Z)[0, 0])
    half = len(S) // 2
    inverse = np.linalg.inv(S[:half, :half])
    full = np.linalg.inv(S)
    if not corrected:
        full[:half, :half] -= inverse  # the printed A is Σ₁₁⁻¹ Σ₁₂ Σ₂|₁⁻¹ Σ₂₁ Σ₁₁⁻¹
    tilde = np.outer(S_z[half:], S_z[:half]) / prior
    ratio = (prior - S_z[:half] @ inverse @ S_z[:half]) / prior
    primed = np.zeros_like(S)
    primed[:half, :half] = inverse
    primed[half:, half:] = ratio * np.linalg.inv(S[half:, half:] - tilde @ inverse @ tilde.T)
    primed[half:, :half] = -primed[half:, half:] @ tilde @ inverse
    alpha = (full - primed).T @ S_z
    return float(alpha @ S @ alpha)


def mean_divergence(example: Example, draws: int, rng: np.random.Generator) -> tuple[float, float]:
    """The mean of D(p_CGP(z given y), p(z)) over draws of p(y_1:K), and its standard error."""
    kernel, X, Z = example.kernel, example.X, example.Z
    K_zz, K_xz = gram(kernel, Z, Z), gram(kernel, X, Z)
    covariance = K_xz @ np.linalg.solve(K_zz, K_xz.T)  # the segments are tied by z alone
    for part in example.segments:
        covariance[np.ix_(part, part)] = gram(kernel, X[part])
    belief = posterior(kernel, X, np.eye(len(X)), Z, example.composite)  # weights: the means of unit vectors
    means = rng.multivariate_normal(np.zeros(len(X)), covariance, size=draws) @ belief.mean.T
    fixed = np.trace(np.linalg.solve(K_zz, belief.covariance)) - len(Z)
    fixed += np.linalg.slogdet(K_zz)[1] - np.linalg.slogdet(belief.covariance)[1]
    divergences = 0.5 * (fixed + np.einsum("im,mi->i", means, np.linalg.solve(K_zz, means.T)))
    return float(divergences.mean()), float(divergences.std() / np.sqrt(draws))


def _bound(example: Example, found: Report) -> list[Claim]:
    share = printed_bound(example, found) / float(found.exact_variance[0])
    return [
        Claim(
            "the mean squared error is at least σ_z² exp(−2 I(z; y)) / (2πe)",
            "the bound is not above the GP's error, which is the least of all",
            f"the bound is {share:.4f} times it",
            share <= 1,
            f"it is {share:.4f} times the GP's posterior variance, and no predictor has a smaller error than that",
        ),
        Claim(
            "the bound equals the GP's posterior variance",
            "the same to 1e-6",
            f"the bound is {share:.4f} times the variance",
            abs(share - 1) < 1e-6,
            f"without the factor 1/(2πe) it is {share * 2 * np.pi * np.e:.4f} times the variance",
        ),
    ]


def _mean_squared_error(example: Example, found: Report, draws: int, rng: np.random.Generator) -> Claim:
    kernel, X, Z = example.kernel, example.X, example.Z
    points = np.concatenate([X, Z])
    covariance = gram(kernel, points)
    covariance[len(X) :, len(X) :] = gram(kernel, Z, Z)  # the test values have no noise
    drawn = rng.multivariate_normal(np.zeros(len(points)), covariance, size=draws)
    weights = posterior(kernel, X, np.eye(len(X)), Z, example.composite).mean
    squares = ((drawn[:, len(X) :] - drawn[:, : len(X)] @ weights.T) ** 2).mean(axis=1)
    expected = float((found.exact_variance + found.excess_mse).mean())
    off = abs(float(squares.mean()) - expected) / (float(squares.std()) / np.sqrt(draws))
    return Claim(
        "the CGP's error is the GP's variance plus the mean squared difference of their means",
        f"measured and computed are within {_LARGEST_ERROR} standard errors",
        f"{squares.mean():.5f} measured, {expected:.5f} computed: {off:.1f} standard errors",
        bool(off < _LARGEST_ERROR),
        f"{off:.1f} standard errors are no chance: the mean over draws is another number",
    )


def _theorem_2(example: Example, found: Report) -> Claim:
    excess = float(found.excess_mse[0])
    printed, corrected = (printed_excess(example, corrected=each) / excess for each in (False, True))
    return Claim(
        "Theorem 2: the excess error of K = 2, with the printed blocks",
        "the same as from the weights of both predictors, to 1e-6",
        f"{printed:.3g} times it",
        abs(printed - 1) < 1e-6,
        f"block A lacks Σ₁₁⁻¹; with it {corrected:.6f} times",
    )


def _mean_gain_of_the_gp(example: Example, found: Report, draws: int, rng: np.random.Generator) -> Claim:
    mean, error = mean_divergence(example._replace(n_segments=1), draws, rng)
    off = abs(found.information_exact - mean) / error
    return Claim(
        "the mean information gain of the GP is I(z; y)",
        f"the mean divergence of its posterior from the prior, over draws, is within {_LARGEST_ERROR} standard errors",
        f"{mean:.3f} ± {error:.3f} nats, and I(z; y) is {found.information_exact:.3f}: {off:.1f} standard errors",
        bool(off < _LARGEST_ERROR),
        f"{off:.1f} standard errors are no chance: the mean over draws is another number",
    )


def _theorem_3(example: Example, found: Report, draws: int, rng: np.random.Generator) -> Claim:
    mean, error = mean_divergence(example, draws, rng)
    off, right = (abs(value - mean) / error for value in (found.information_sum, found.information_composite))
    return Claim(
        "Theorem 3: the mean information gain of the CGP is Σ I(z; y_k)",
        f"the mean divergence over draws is within {_LARGEST_ERROR} standard errors of it",
        f"{mean:.3f} ± {error:.3f} nats, and Σ I is {found.information_sum:.3f}",
        bool(off < _LARGEST_ERROR),
        f"the proof drops a total correlation; ½ ln det Σ_zz / det Σ̃_z is {found.information_composite:.3f}, "
        f"{right:.1f} standard errors away",
    )
