"""The paper's claims about its random field, each with the rule of its verdict."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from compositegp.paper.claims import OWN, Claim

SCHEMES = ("tiles", "sequential", "interleaved", "random")
_COUNTS = (4, 16)  # segments


def simulation_claim(seconds: float, draws: int, cholesky: float) -> Claim:
    """The verdict about circulant embedding: seconds of all draws, and those of a Cholesky factor of the grid."""
    return Claim(
        "the random field is efficiently simulated via circulant embedding",
        f"{draws} realizations take less time than the Cholesky factor of the grid's covariance, which one needs "
        "without it",
        f"{seconds:.2f} s against {cholesky:.2f} s",
        seconds < cholesky,
        f"one realization takes {seconds / draws:.4f} s: with so many, the factor, which is computed once, is cheaper",
        timed=True,
    )


def size_claim(observed: int, held: int, side: int) -> Claim:
    """The verdict about the numbers of observations and of test points."""
    return Claim(
        "the grid has 3,840 observations and 512 test points",
        "both numbers",
        f"{observed:,} and {held}",
        (observed, held) == (3840, 512),
        f"a grid of {side} × {side} has {side * side:,} points: what is not observed are {side * side - observed:,}",
    )


def variance_claims(variances: dict[str, float]) -> list[Claim]:
    """Verdicts about the variances that the CGP claims: means over the box, by the name of the method."""
    claims = []
    for name in SCHEMES:
        ratios = [variances[f"CGP, {count} {name}"] / variances["GP"] for count in _COUNTS]
        claims.append(
            Claim(
                "the CGP's variances are slightly higher than the GP's",
                "on average 1 to 1.5 times the GP's, for K = 4 and K = 16",
                f"{ratios[0]:.2f} times with K = 4, {ratios[1]:.2f} with 16",
                all(1 < ratio < 1.5 for ratio in ratios),
                _why_not(ratios),
                case=name,
            )
        )
    return claims


def _names(names: Iterable[str]) -> str:
    return ", ".join(names)


def _why_not(ratios: list[float]) -> str:
    """Which of the ratios, with 4 and with 16 segments, are outside of 1 to 1.5."""
    pairs = list(zip(_COUNTS, ratios, strict=True))
    low = " and ".join(f"K = {count}" for count, ratio in pairs if ratio <= 1)
    high = " and ".join(f"K = {count}" for count, ratio in pairs if ratio >= 1.5)
    reasons = []
    if low:
        reasons.append(f"not higher with {low}: segments that share information count it several times")
    if high:
        reasons.append(f"more than slightly higher with {high}")
    return "; ".join(reasons)


def field_claims(rows: list[Any]) -> list[Claim]:
    """Verdicts about rows (method, excess error, its standard error, closed form, variance, seconds): FITC is last."""
    found = {name: values for name, *values in rows}
    fitc = rows[-1][0]
    exact, exact_seconds = found["GP"][3], found["GP"][4]
    pairs = {name: (found[f"CGP, 4 {name}"], found[f"CGP, 16 {name}"]) for name in SCHEMES}
    worst = max(value for pair in pairs.values() for value, *_ in pair)
    ratios = [each[3] / exact for pair in pairs.values() for each in pair]
    unlike, sgp_ratio = max(abs(np.log(ratios))), found[fitc][3] / exact
    off = max(abs(value - expected) / error for _, value, error, expected, *_ in rows[1:])
    sixteens = [sixteen[0] for _, sixteen in pairs.values()]
    return [
        Claim(
            "the CGP is most similar to the GP",
            "means and variances of every CGP are nearer to the GP's than those of the SGP",
            f"means differ by {np.sqrt(worst):.1e} at most (root mean square), the SGP's by "
            f"{np.sqrt(found[fitc][0]):.1e}; variances are {min(ratios):.2f} to {max(ratios):.2f} times the GP's, the "
            f"SGP's {sgp_ratio:.0f} times",
            bool(worst < found[fitc][0] and unlike < abs(np.log(sgp_ratio))),
            "not with "
            + _names(
                name
                for name, pair in pairs.items()
                if any(
                    each[0] >= found[fitc][0] or abs(np.log(each[3] / exact)) >= abs(np.log(sgp_ratio))
                    for each in pair
                )
            )
            + ": there the SGP is nearer in mean or in variance",
        ),
        *variance_claims({name: values[3] for name, values in found.items()}),
        Claim(
            "the SGP's mean differs notably from the GP's",
            "by at least a tenth of the field's standard deviation (root mean square)",
            f"by {np.sqrt(found[fitc][0]):.2f} of it; a CGP by {np.sqrt(worst):.3f} at most",
            found[fitc][0] > 0.1**2,
            f"{fitc.split(', ')[1]} points are dense enough for this field",
        ),
        Claim(
            "the SGP's variances are significantly higher than the GP's",
            "at least twice the GP's, on average",
            f"{found[fitc][3] / exact:.0f} times",
            found[fitc][3] > 2 * exact,
            f"{fitc.split(', ')[1]} points are dense enough for this field",
        ),
        Claim(
            "from 4 to 16 segments the additional error increases",
            "for every way to make segments",
            ", ".join(f"{name} {four[0]:.1e} to {sixteen[0]:.1e}" for name, (four, sixteen) in pairs.items()),
            all(four[0] < sixteen[0] for four, sixteen in pairs.values()),
            "not with " + _names(name for name, (four, sixteen) in pairs.items() if not four[0] < sixteen[0]),
        ),
        Claim(
            "from 4 to 16 segments the computation time falls",
            "for every way to make segments; and with 4 it is below the GP's",
            ", ".join(f"{name} {four[4]:.2f} s to {sixteen[4]:.2f} s" for name, (four, sixteen) in pairs.items())
            + f"; the GP takes {exact_seconds:.2f} s",
            all(sixteen[4] < four[4] < exact_seconds for four, sixteen in pairs.values()),
            "not with "
            + _names(name for name, (four, sixteen) in pairs.items() if not sixteen[4] < four[4] < exact_seconds)
            + ": the matrices are so small that other costs count more",
            timed=True,
        ),
        Claim(
            "the SGP's additional error is notably higher",
            "at least ten times that of every CGP",
            f"{found[fitc][0]:.1e} against {worst:.1e} at most",
            found[fitc][0] > 10 * worst,
            "not beside "
            + _names(name for name, pair in pairs.items() if max(each[0] for each in pair) * 10 >= found[fitc][0]),
        ),
        Claim(
            f"{OWN}Theorem 2 for any K: excess errors have a closed form",
            "every measured error is within 3.5 of its standard errors of it",
            f"within {off:.1f}",
            off < 3.5,
            f"{off:.1f} standard errors are no chance: the measured error of a method is not its closed form",
        ),
        Claim(
            f"{OWN}the choice of segments matters",
            "the largest error with K = 16 is at least twice the smallest",
            ", ".join(f"{name} {sixteen[0]:.1e}" for name, (_, sixteen) in pairs.items()),
            max(sixteens) > 2 * min(sixteens),
            f"the largest is only {max(sixteens) / min(sixteens):.2f} times the smallest",
        ),
    ]
