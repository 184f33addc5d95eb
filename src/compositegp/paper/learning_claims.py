"""The paper's claims about learning, each with the rule of its verdict."""

import itertools
from typing import Any

import numpy as np

from compositegp.backend import Floats
from compositegp.paper.claims import OWN, Claim
from compositegp.paper.misspecification import COUNT, SIZE, JointModel
from compositegp.paper.monotone import apart, falls, grows, not_falling, not_growing

NAMES = ("α", "θ")


def segment_claims(rows: list[tuple[Any, ...]]) -> list[Claim]:
    """Verdicts about estimates of single segments: rows (N_k, segments, error of α̂_k, of θ̂_k, of Ĵ_k)."""
    numbers = [row[0] for row in rows]
    sizes = _sizes(numbers)
    errors = {name: [row[2 + i] for row in rows] for i, name in enumerate(NAMES)}
    informations = [row[4] for row in rows]
    # Of a root mean square of n normal numbers: a part 1/√(2n) of it.
    fewest = min(row[1] for row in rows)
    unsure = f"an error over {fewest} segments has itself a standard error of {(2 * fewest) ** -0.5:.1%} of it"
    return [
        Claim(
            "the accuracy of a segment's estimate improves as N_k becomes larger",
            "over all segments, the root mean squared error of both parameters falls from each N_k to the next",
            f"{sizes}: {_of_parameters(errors)}",
            all(map(falls, errors.values())),
            f"{_exceptions(numbers, errors)}; {unsure}",
        ),
        Claim(
            "the accuracy of a segment's Fisher information Ĵ_k improves as N_k becomes larger",
            "over all segments, the relative error of J at the estimate falls from each N_k to the next (root mean "
            "square, in the norm in which J at the truth is the identity)",
            f"{sizes}: {_percents(informations)}",
            falls(informations),
            f"{not_falling(numbers, informations)}; {unsure}",
        ),
    ]


def average_claims(rows: list[tuple[Any, ...]], finals: dict[int, Floats], full: float) -> list[Claim]:
    """Verdicts about rows (N_k, parameter, error, bias, spread, claimed, ratio, seconds) of the weighted average.

    `finals` has the errors of its last estimates, arrays of shape (series, 2), by N_k; `full` is the number of seconds
    of one step of full GP learning.
    """
    unsure = {name: _unsure_falls(finals, i) for i, name in enumerate(NAMES)}
    of = {name: [row for row in rows if row[1] == name] for name in NAMES}
    errors = {name: [row[2] for row in found] for name, found in of.items()}
    biases = {name: [abs(row[3]) for row in found] for name, found in of.items()}
    spreads = {name: [row[4] for row in found] for name, found in of.items()}
    seconds = [row[-1] for row in of[NAMES[0]]]
    last, ratios = rows[-2:], [row[6] for row in rows[-2:]]
    numbers = [row[0] for row in of[NAMES[0]]]
    sizes = _sizes(numbers)
    return [
        Claim(
            "the accuracy of the weighted average improves as N_k becomes larger",
            "its mean squared error falls from each N_k to the next by more than the standard error of the fall, for "
            "both parameters (printed: its root)",
            f"{sizes}: {_of_parameters(errors)}",
            not any(unsure.values()),
            "; ".join(f"{name}: {found}" for name, found in unsure.items() if found)
            + f"; biases are {_of_parameters(biases)}, the spread over series is {_of_parameters(spreads)}: beyond a "
            "certain size there is little bias left, and the spread does not depend on N_k",
        ),
        Claim(
            f"{OWN}the bias of the weighted average falls with N_k",
            "from each N_k to the next, for both parameters",
            f"{sizes}: {_of_parameters(biases)}",
            all(map(falls, biases.values())),
            f"{_exceptions(numbers, biases)}; the standard error of a bias over {len(finals[numbers[0]])} series is "
            + _of_parameters(
                {name: [each / len(finals[numbers[0]]) ** 0.5 for each in spreads[name]] for name in NAMES}
            ),
        ),
        Claim(
            "there is a trade-off between accuracy and computational cost",
            "the seconds grow from each N_k to the next",
            f"{sizes}: " + ", ".join(f"{took} s" for took in apart(seconds)),
            grows(seconds),
            f"{not_growing(numbers, seconds)}: every segment has its own search, with a cost that does not fall with "
            "its size",
            timed=True,
        ),
        Claim(
            "with N_k = 200 the accuracy is satisfying",
            "errors of both parameters are below 2 % (root mean square)",
            ", ".join(f"{row[1]} {row[2]:.1%}" for row in last),
            all(row[2] < 0.02 for row in last),
            "; ".join(
                f"{row[1]} has a bias of {row[3]:.1%} and a spread over series of {row[4]:.1%}"
                for row in last
                if not row[2] < 0.02
            ),
        ),
        Claim(
            "with N_k = 200 the cost is low compared to full GP learning",
            "all of it takes less time than one step of that: a factorization and an inverse of the whole covariance",
            f"{seconds[-1]:.2f} s against {full:.2f} s",
            seconds[-1] < full,
            "learning takes many steps in every segment, and this is the time of a single step for the whole series",
            timed=True,
        ),
        Claim(
            "the inverse of the Fisher information is the error covariance",
            "the spread over series is 0.8 to 1.25 times the standard error from Λ⁻¹, at N_k = 200",
            ", ".join(f"{row[1]} {ratio:.2f}" for row, ratio in zip(last, ratios, strict=True)),
            all(0.8 < ratio < 1.25 for ratio in ratios),
            "Λ adds up the information of the segments as if they were independent, and neighbouring segments are not",
        ),
    ]


def recursion_claim(differences: dict[int, float]) -> Claim:
    """The verdict about Λ_k and s_k: largest differences of log (α, θ) from the average made at once, by N_k."""
    worst = max(differences.values())
    return Claim(
        "the recursion of Λ_k and s_k computes the weighted average of the segments' estimates",
        "for one series, its last step is (Σ Ĵ_k)⁻¹ Σ Ĵ_k θ̂_k to 1e-6 (of the logarithm), with θ̂_k and Ĵ_k of every "
        "segment estimated by itself",
        f"{_sizes(list(differences))}: largest difference "
        + ", ".join(f"{each:.0e}" for each in differences.values()),
        worst < 1e-6,
        "the search in a segment ends elsewhere where the segment is estimated by itself, or the sums are not these",
    )


def robustness_claim(right: JointModel, wrong: JointModel) -> Claim:
    """The verdict about segments as modules of inference, where the joint model is wrong."""
    average, whole = wrong.root_mean_squares()
    worse = " and ".join(name for name, a, b in zip(NAMES, average, whole, strict=True) if not a < b)
    return Claim(
        "inference by modules, the segments, is more robust where the joint data model is misspecified",
        f"series of {COUNT} independent draws of {SIZE} points each, taken for one draw of {COUNT * SIZE:,}: the "
        "weighted average has smaller errors of both parameters than maximum likelihood for all points at once",
        f"{_each(average)} against {_each(whole)}; where the joint model is right "
        + " against ".join(map(_each, right.root_mean_squares())),
        bool((average < whole).all()),
        f"of {worse} the weighted average has the larger error, over {len(wrong.average)} series",
    )


def _unsure_falls(finals: dict[int, Floats], parameter: int) -> str:
    """The steps from size to size at which the mean squared error does not fall by more than its standard error."""
    found = []
    for (size, errors), (larger, later) in itertools.pairwise(finals.items()):
        fall = errors[:, parameter] ** 2 - later[:, parameter] ** 2
        if not fall.mean() > fall.std(ddof=1) / np.sqrt(len(fall)):
            found.append(f"{size} to {larger}")
    return "not from " + ", ".join(found) if found else ""


def _exceptions(sizes: list[int], values: dict[str, list[float]]) -> str:
    """Where parameters do not fall."""
    return "; ".join(f"{name}: {not_falling(sizes, found)}" for name, found in values.items() if not falls(found))


def _sizes(sizes: list[int]) -> str:
    return "N_k = " + ", ".join(map(str, sizes))


def _of_parameters(values: dict[str, list[float]]) -> str:
    return "; ".join(f"{name} {_percents(found)}" for name, found in values.items())


def _percents(values: list[float]) -> str:
    return ", ".join(f"{text}%" for text in apart([100 * value for value in values], 3))


def _each(values: Floats) -> str:
    return ", ".join(f"{name} {value:.1%}" for name, value in zip(NAMES, values, strict=True))
