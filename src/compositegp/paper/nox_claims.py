"""The paper's claims about NOx, each with the rule of its verdict."""

from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd

from compositegp.paper.claims import Claim
from compositegp.paper.monotone import apart, falls, grows, not_falling, not_growing
from compositegp.paper.nox_forecasts import DEFAULT, Score, in_weeks, named

Results = dict[tuple[str, str], list[Score]]
"""Scores of all methods, by station and by the mean of the model."""

OWN_MEAN = "its own"  # the mean of this library's forecaster, which it learns

_SAME_ORDER = "by Cholesky factors both take operations of the order of N times the size squared"


class Case(NamedTuple):
    """Errors of one model and predictor: those of the GP, and by weeks those of CGP and SGP.

    `profile` says whether the mean of the model is a profile of the week, `median` whether the predictor is the median.
    """

    name: str
    gp: float
    cgp: dict[int, float]
    sgp: dict[int, float]
    profile: bool = False
    median: bool = False


def weeks_of(method: str) -> int:
    """Weeks in the name of a method.

    Examples
    --------
    >>> weeks_of("CGP 5 weeks")
    5
    """
    return int(method.split()[1])


def author_case(author: pd.DataFrame) -> Case:
    """The case of the author's own runs, with 50 weeks of data."""
    gp = author.loc[(author["method"] == "gp") & (author["config"] == "50weeks"), "rmse"]
    found: dict[str, dict[int, float]] = {"rgp": {}, "sgp": {}}
    for method, config, rmse in author[["method", "config", "rmse"]].itertuples(index=False):
        if method in found and _is_fifty_weeks(config):
            found[method][int(config.split("weeks")[0])] = float(rmse)
    cgp, sgp = (dict(sorted(found[method].items())) for method in ("rgp", "sgp"))
    return Case("Essingeleden, the author's own runs", float(gp.iloc[0]), cgp, sgp)


def study_claims(results: Results, author: pd.DataFrame | None) -> list[Claim]:
    """Verdicts about the scores of the study.

    Parameters
    ----------
    results : dict of (station, mean) to list of Score
    author : pandas DataFrame, optional
        The author's own errors.

    Returns
    -------
    list of Claim
    """
    cases = _cases(results)
    claims = [_slightly_above_75(cases, author)] if cases[0].name.startswith("Hornsgatan") else []
    if author is not None:
        cases.append(author_case(author))
    for verdict in (_lower_bound, _trade_off, _sparse_is_better, _gap_closes, _gap_to_gp_closes):
        claims += [verdict(case) for case in cases]
    scores = {score.method: score for score in next(iter(results.values()))}
    claims += _runtimes(scores)
    for (station, kind), found in results.items():
        if kind == OWN_MEAN:
            reference = {score.method: score for score in results[station, "profile"]}["GP"]
            claims += _default(station, found[0], reference, author)
    return claims


def _cases(results: Results) -> list[Case]:
    """The paper's own case first: Hornsgatan, the median, a profile as mean."""
    wanted = [("profile", "median"), ("profile", "mean"), ("constant", "median"), ("constant", "mean")]
    found = []
    for station in sorted({station for station, _ in results}, key=lambda name: name != "hornsgatan"):
        for kind, predictor in wanted:
            if (station, kind) in results:
                errors = {score.method: getattr(score, f"rmse_{predictor}") for score in results[station, kind]}
                cgp, sgp = (
                    {weeks_of(name): value for name, value in errors.items() if name.startswith(family)}
                    for family in ("CGP", "FITC")
                )
                name = f"{named(station)}, {kind} as mean, RMSE of the {predictor}"
                found.append(Case(name, errors["GP"], cgp, sgp, kind == "profile", predictor == "median"))
    return found


def _slightly_above_75(cases: list[Case], author: pd.DataFrame | None) -> Claim:
    case = min(cases, key=lambda case: max(75 - case.gp, case.gp - 77))
    return Claim(
        "the RMSE of the GP with 50 weeks is slightly above 75",
        "between 75 and 77",
        f"{case.gp:.2f} ({case.name}, the nearest of the cases tried)",
        75 < case.gp < 77,
        "the paper names neither its station nor its kernel nor its predictor"
        + ("" if author is None else f"; the author's own run for Essingeleden has {author_case(author).gp:.2f}"),
    )


def _lower_bound(case: Case) -> Claim:
    errors = {f"CGP {in_weeks(size)}": value for size, value in case.cgp.items()}
    errors |= {f"SGP {in_weeks(size)}": value for size, value in case.sgp.items()}
    below = {name: value for name, value in errors.items() if value < case.gp}
    least = min(errors, key=errors.__getitem__)
    own, other = apart([case.gp, errors[least]])
    return Claim(
        f"the GP is the lower bound of CGP and SGP: {case.name}",
        "no CGP and no SGP has a smaller RMSE",
        f"GP {own}; the least of the others is {least} with {other}",
        not below,
        f"{len(below)} of {len(errors)} {'is' if len(below) == 1 else 'are'} below it: the bound is on the expected "
        "squared error of the mean under the true model; here the model is learned"
        + (" and the predictor is the median" if case.median else ""),
    )


def _trade_off(case: Case) -> Claim:
    wrong = [
        f"{name}: {not_falling(list(errors), list(errors.values()))} weeks"
        for name, errors in (("CGP", case.cgp), ("SGP", case.sgp))
        if not falls(errors.values())
    ]
    return Claim(
        f"larger segments and more inducing points reduce the RMSE: {case.name}",
        "it falls from each size to the next, for CGP and SGP",
        f"CGP {_list(case.cgp.values())}; SGP {_list(case.sgp.values())} ({_weeks(case.cgp)})",
        not wrong,
        "; ".join(wrong) + _because_the_gp_is_not_least(case),
    )


def _because_the_gp_is_not_least(case: Case) -> str:
    if min(*case.cgp.values(), *case.sgp.values()) < case.gp:
        return ": with the size errors approach the GP's, which is not the least here"
    return (
        ": the model is learned, and the order of errors over one year is that of chance where they are this close"
    )


def _sparse_is_better(case: Case) -> Claim:
    size = 5 if 5 in case.cgp else max(case.cgp)
    sgp, cgp = case.sgp[size], case.cgp[size]
    shown = apart([sgp, cgp])
    return Claim(
        f"the SGP with 5 weeks of inducing points has a lower RMSE than the CGP with segments of 5 weeks: {case.name}",
        "a smaller number",
        f"SGP {shown[0]}, CGP {shown[1]}",
        sgp < cgp,
        f"the CGP is {'better' if cgp < sgp else 'as good'} here"
        + (": the pattern that its segments share is in the mean" if case.profile else ""),
    )


def _gap_closes(case: Case) -> Claim:
    gaps = [abs(case.cgp[size] - case.sgp[size]) for size in case.cgp]
    return Claim(
        f"the gap between the RMSEs of CGP and SGP closes: {case.name}",
        "the absolute difference becomes smaller from each size to the next",
        f"{_list(gaps)} at {_weeks(case.cgp)}",
        falls(gaps),
        f"{not_falling(list(case.cgp), gaps)} weeks{_crossing([case.cgp[size] - case.sgp[size] for size in case.cgp])}",
    )


def _crossing(differences: list[float]) -> str:
    if min(differences) < 0 < max(differences):
        return ": the CGP has the smaller error at some sizes and the larger at others"
    return ": both approach the same numbers, in steps of their own"


def _gap_to_gp_closes(case: Case) -> Claim:
    gaps = [abs(value - case.gp) for value in case.cgp.values()]
    return Claim(
        f"(not in the paper) longer segments close the gap to the GP: {case.name}",
        "the absolute difference becomes smaller from each size to the next",
        f"{_list(gaps)} at {_weeks(case.cgp)}",
        falls(gaps),
        f"{not_falling(list(case.cgp), gaps)} weeks"
        + (
            ": there the CGP has the smaller error"
            if min(case.cgp.values()) < case.gp
            else ": over one year errors this close are in the order of chance"
        ),
    )


def _runtimes(scores: dict[str, Score]) -> list[Claim]:
    took = {
        family: {weeks_of(name): score.seconds for name, score in scores.items() if name.startswith(family)}
        for family in ("CGP", "FITC")
    }
    cgp, sgp = took["CGP"], took["FITC"]
    differences = [sgp[size] - cgp[size] for size in cgp]
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
            f"CGP {_list(cgp.values())} s; SGP {_list(sgp.values())} s ({_weeks(cgp)})",
            not wrong,
            "; ".join(wrong) + ": the seconds of a prediction vary on this machine",
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
            f"{_list(differences)} s at {_weeks(cgp)}",
            grows(differences),
            f"{not_growing(list(cgp), differences)} weeks: {_SAME_ORDER}",
            timed=True,
        ),
    ]


def _default(station: str, default: Score, gp: Score, author: pd.DataFrame | None) -> list[Claim]:
    best = ""
    if author is not None and station == "essingeleden":
        best = f"; the best of the author's runs has {author['rmse'].min():.2f}"
    return [
        Claim(
            f"(not in the paper) {named(station)}: {DEFAULT} is as accurate as the GP with a profile",
            "its RMSE is at most 1 % larger (of the mean)",
            f"{_round(default.rmse_mean)} against {_round(gp.rmse_mean)}; of the median {_round(default.rmse_median)} "
            f"against {_round(gp.rmse_median)}; CRPS {_round(default.crps)} against {_round(gp.crps)}{best}",
            default.rmse_mean < 1.01 * gp.rmse_mean,
            f"its RMSE differs by {_percent(default.rmse_mean, gp.rmse_mean)}, that of its median "
            f"{_percent(default.rmse_median, gp.rmse_median)}, CRPS {_percent(default.crps, gp.crps)}; parts are "
            "chosen by the log score of past forecasts, not by squared errors of the mean",
        ),
        Claim(
            f"(not in the paper) {named(station)}: its 95 % intervals hold 95 %",
            "92 to 98 % of the hours",
            f"{default.coverage:.1%}",
            0.92 < default.coverage < 0.98,
            "errors of this year are not like those of the years before",
        ),
        Claim(
            f"(not in the paper) {named(station)}: a prediction takes far less time",
            "at most a tenth of the GP's, which has its factorization in it; the forecaster was fitted before",
            f"{default.seconds:.3f} s against {gp.seconds:.2f} s",
            default.seconds < 0.1 * gp.seconds,
            "it takes longer on this machine",
            timed=True,
        ),
    ]


def _percent(value: float, reference: float) -> str:
    return f"{100 * (value / reference - 1):+.1f} %"


def _round(value: float) -> str:
    return f"{value:.2f}"


def _list(values: Iterable[float]) -> str:
    return ", ".join(apart(values))


def _weeks(sizes: Iterable[int]) -> str:
    return ", ".join(map(str, sizes)) + " weeks"


def _is_fifty_weeks(config: str) -> bool:
    if "inducing" in config:
        return True
    size, _, count = config.removesuffix("batches").partition("weeksperbatch-")
    return bool(count) and int(size) * int(count) == 50
