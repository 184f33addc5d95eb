"""The paper's claims about its time series, each with the rule of its verdict."""

import numpy as np

from compositegp.analysis import Report
from compositegp.backend import Floats
from compositegp.paper.claims import Claim

_TOLERANCE = 1e-6  # of the recursion


def runtime_claims(
    seconds: dict[str, float], runtimes: list[tuple[int, int, float]], long_series: tuple[int, float], size: int
) -> list[Claim]:
    """Verdicts about seconds.

    Parameters
    ----------
    seconds : dict of str to float
        Of a prediction, by method.
    runtimes : list of (int, int, float)
        Numbers of segments and of points, and the seconds of a CGP.
    long_series : (int, float)
        Points of a longer series, and the seconds of a CGP.
    size : int
        Points of a segment.

    Returns
    -------
    list of Claim
    """
    gp, cgp, fitc = seconds["GP"], seconds["CGP, 4 segments"], seconds["FITC, 128 inducing"]
    many = [(count, took) for count, _, took in runtimes if count >= 4]
    counts, took = np.log(many).T
    slope = float(np.polyfit(counts, took, 1)[0])
    ends = " and ".join(f"{span:.4f} s with K = {count}" for count, span in (many[0], many[-1]))
    return [
        Claim(
            "the CGP is very fast compared to the GP",
            "at most half of its seconds",
            f"{cgp:.2f} s against {gp:.2f} s",
            cgp < 0.5 * gp,
            "four segments need a sixteenth of the GP's operations, but with so few points other costs count more",
            timed=True,
        ),
        Claim(
            "the CGP is very fast compared to the SGP",
            "at most half of its seconds",
            f"{cgp:.2f} s against {fitc:.2f} s",
            cgp < 0.5 * fitc,
            f"the CGP takes operations of the order of N · {size:,}² with such segments, FITC of N · 128²",
            timed=True,
        ),
        Claim(
            "the CGP takes less than a second for 5,000 points",
            "less than 1 s",
            f"{long_series[1]:.2f} s for {long_series[0]:,}",
            long_series[1] < 1,
            f"with segments of {size:,} points it takes operations of the order of N · {size:,}², which need longer on "
            "this machine",
            timed=True,
        ),
        Claim(
            "the CGP's runtime grows linearly with K",
            f"as K to a power between 0.9 and 1.1, for K = 4 to {runtimes[-1][0]} segments of equal size",
            f"as K to the power {slope:.2f}",
            0.9 < slope < 1.1,
            f"{ends}: "
            + (
                "a part of the time does not depend on K"
                if slope < 1
                else "a segment takes longer where there are more"
            ),
            timed=True,
        ),
    ]


def variance_claims(composite: Report, exact: Floats) -> list[Claim]:
    """Verdicts about what the CGP claims beside the GP's variances, shape (m,)."""
    redundant = float((composite.redundancy == "redundant").mean())
    below = float((composite.claimed_variance < exact).mean())
    return [
        Claim(
            "the CGP underestimates the predictive variance",
            "it claims less than the GP at every test point",
            f"less at {below:.0%}; on average it claims {composite.claimed_variance.mean():.3f}, the GP "
            f"{exact.mean():.3f}; its actual error is {composite.actual_mse.mean():.3f}",
            below == 1,
            f"at {1 - below:.0%} of the points the segments together say less about the value than all the data do",
        ),
        Claim(
            "the underestimated variance is consistent with redundant segments",
            "I(z; y) < Σ I(z; y_k) at every test point",
            f"at {redundant:.0%} of them",
            redundant == 1,
            f"at {1 - redundant:.0%} of the points the segments are synergistic",
        ),
    ]


def recursion_claim(difference: float) -> Claim:
    """The verdict about Section 4.2, of the largest difference in mean or covariance."""
    return Claim(
        "(Section 4.2) the recursion computes the CGP's posterior",
        f"mean and covariance are those of p(z) Π p(y_k given z) to {_TOLERANCE:.0e}",
        f"largest difference {difference:.0e}",
        difference < _TOLERANCE,
        "rounding errors of the updates add up: a belief whose covariance is nearly singular loses digits in each",
    )
