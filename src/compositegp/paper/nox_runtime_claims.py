"""The paper's claims about seconds of the NOx study, and ours about this library's forecaster."""

import itertools

import numpy as np
import pandas as pd

from compositegp.paper.claims import OWN, Claim
from compositegp.paper.monotone import apart, grows, not_growing
from compositegp.paper.nox_forecasts import DEFAULT, Score, Work, named, weeks_of

_SAME_ORDER = "by Cholesky factors both take operations of the order of N times the size squared"


def scaling_claim(seconds: dict[int, float]) -> Claim:
    """The verdict about the GP's seconds, by the weeks of its history: the last is about twice the one before."""
    (fewer, quick), (more, slow) = list(seconds.items())[-2:]
    power = float(np.log(slow / quick) / np.log(more / fewer))
    return Claim(
        "GP prediction is not very scalable",
        f"from {fewer} to {more} weeks its seconds grow faster than the square of the number of hours",
        f"{', '.join(apart(seconds.values()))} s with {', '.join(map(str, seconds))} weeks: as the power {power:.2f}",
        power > 2,
        "the matrices are small enough for their entries, not for their factorization, to take most of the time",
        timed=True,
    )


def runtime_claims(scores: list[Score]) -> list[Claim]:
    """Verdicts about the seconds of the methods."""
    took = {
        family: {weeks_of(each.method): each for each in scores if each.method.startswith(family)}
        for family in ("CGP", "FITC")
    }
    cgp, sgp = ({size: score.seconds for size, score in found.items()} for found in took.values())
    weeks = ", ".join(map(str, cgp)) + " weeks"
    differences = [sgp[size] - cgp[size] for size in cgp]
    spreads = [took["FITC"][size].spread + took["CGP"][size].spread for size in cgp]
    size = 5 if 5 in cgp else max(cgp)
    wrong = [
        f"{name}: {not_growing(list(found), list(found.values()))} weeks"
        for name, found in (("CGP", cgp), ("SGP", sgp))
        if not grows(found.values())
    ]
    return [
        Claim(
            "larger segments and more inducing points take more time",
            "the seconds grow from each size to the next, for CGP and SGP",
            f"CGP {', '.join(apart(cgp.values()))} s; SGP {', '.join(apart(sgp.values()))} s ({weeks})",
            not wrong,
            f"{'; '.join(wrong)}. One prediction, repeated, took up to {max(spreads):.2f} s more or less",
            timed=True,
        ),
        Claim(
            "the runtime of the CGP is significantly lower than the SGP's",
            f"at most half, at {size} weeks",
            f"{cgp[size]:.2f} s against {sgp[size]:.2f} s",
            cgp[size] < 0.5 * sgp[size],
            _SAME_ORDER,
            timed=True,
        ),
        Claim(
            "the difference of runtimes becomes larger with the size",
            "the SGP's seconds less the CGP's grow from each size to the next",
            f"{', '.join(apart(differences))} s at {weeks}",
            grows(differences),
            f"{not_growing(list(cgp), differences)} weeks: {_steps_back(differences, spreads)}",
            timed=True,
        ),
    ]


def _steps_back(differences: list[float], spreads: list[float]) -> str:
    """Whether the steps at which numbers do not grow are larger than what repeated measurements vary."""
    pairs = itertools.pairwise(zip(differences, spreads, strict=True))
    back = [(now - then, max(spread, other)) for (now, spread), (then, other) in pairs if then <= now]
    largest, noise = max(back, default=(0.0, 0.0))
    if largest <= noise:
        return (
            f"a step back of {largest:.2f} s is noise, as the same predictions vary by {noise:.2f} s when repeated"
        )
    return (
        f"the step back of {largest:.2f} s is more than the {noise:.2f} s by which the same predictions vary when "
        f"repeated; {_SAME_ORDER}"
    )


def forecaster_claims(
    station: str, own: Score, gp: Score, author: pd.DataFrame | None, learning: float | None
) -> list[Claim]:
    """Verdicts about this library's forecaster at a station, beside the GP with a profile.

    Parameters
    ----------
    station : str
    own, gp : Score
    author : pandas DataFrame, optional
        The author's own errors.
    learning : float, optional
        Seconds that the GP's hyper-parameters took.

    Returns
    -------
    list of Claim
    """
    best = ""
    if author is not None and station == "essingeleden":
        best = f"; the best of the author's runs has {author['rmse'].min():.2f}"
    width = "narrow" if own.coverage < 0.95 else "wide"
    return [
        Claim(
            f"{OWN}{DEFAULT} is as accurate as the GP with a profile",
            "its RMSE is at most 1 % larger (of the mean)",
            f"{own.rmse_mean:.2f} against {gp.rmse_mean:.2f}; of the median {own.rmse_median:.2f} against "
            f"{gp.rmse_median:.2f}; CRPS {own.crps:.2f} against {gp.crps:.2f}{best}",
            own.rmse_mean < 1.01 * gp.rmse_mean,
            f"its RMSE differs by {_percent(own.rmse_mean, gp.rmse_mean)}, that of its median by "
            f"{_percent(own.rmse_median, gp.rmse_median)}, its CRPS by {_percent(own.crps, gp.crps)}; its parts are "
            "chosen by the log score of past forecasts, not by squared errors of the mean",
            case=named(station),
        ),
        Claim(
            f"{OWN}the 95 % intervals of {DEFAULT} hold 95 %",
            "92 to 98 % of the hours",
            f"{own.coverage:.1%}",
            0.92 < own.coverage < 0.98,
            f"they are too {width}: errors of this year are not like those of the years before",
            case=named(station),
        ),
        Claim(
            f"{OWN}{DEFAULT} takes far less time than the GP",
            "at most a tenth of the GP's seconds for a day; fit, updates and predictions of the forecaster are divided "
            "by the days, the GP's learning is not counted",
            f"{own.seconds:.3f} s{_parts(own.work)} against {gp.seconds:.2f} s"
            + ("" if learning is None else f" (and {learning:.0f} s of learning)"),
            own.seconds < 0.1 * gp.seconds,
            f"it takes {own.seconds / gp.seconds:.2f} times the GP's seconds"
            + (
                ""
                if own.work is None
                else f"; {own.work.fit / (own.seconds * own.work.days):.0%} of them are the fit"
            ),
            timed=True,
            case=named(station),
        ),
    ]


def _parts(work: Work | None) -> str:
    if work is None:
        return ""
    parts = f"fit {work.fit:.1f} s, updates {work.updates:.1f} s, predictions {work.predictions:.1f} s"
    return f" ({parts}; {work.days} days)"


def _percent(value: float, reference: float) -> str:
    return f"{100 * (value / reference - 1):+.1f} %"
