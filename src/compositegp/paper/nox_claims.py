"""The paper's claims about NOx, each with the rule of its verdict."""

from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd

from compositegp.paper.claims import OWN, Claim
from compositegp.paper.monotone import apart, digits_apart, falls, not_falling
from compositegp.paper.nox_forecasts import Score, in_weeks, named, weeks_of

Results = dict[tuple[str, str], list[Score]]
"""Scores of all methods, by station and by the mean of the model."""


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


def author_case(author: pd.DataFrame) -> Case:
    """The case of the author's own runs, with 50 weeks of data."""
    gp = author.loc[(author["method"] == "gp") & (author["config"] == "50weeks"), "rmse"]
    found: dict[str, dict[int, float]] = {"rgp": {}, "sgp": {}}
    for method, config, rmse in author[["method", "config", "rmse"]].itertuples(index=False):
        if method in found and _is_fifty_weeks(config):
            found[method][int(config.split("weeks")[0])] = float(rmse)
    cgp, sgp = (dict(sorted(found[method].items())) for method in ("rgp", "sgp"))
    return Case("Essingeleden, the author's own runs", float(gp.iloc[0]), cgp, sgp)


def error_claims(results: Results, author: pd.DataFrame | None) -> list[Claim]:
    """Verdicts about the errors of the study.

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
        "the GP is the lower bound of CGP and SGP",
        "no CGP and no SGP has a smaller RMSE",
        f"GP {own}; the least of the others is {least} with {other}",
        not below,
        f"{len(below)} of {len(errors)} {'is' if len(below) == 1 else 'are'} below it: the bound is on the expected "
        "squared error of the mean under the true model; here the model is learned"
        + (" and the predictor is the median" if case.median else ""),
        case=case.name,
    )


def _trade_off(case: Case) -> Claim:
    wrong = [
        f"{name}: {not_falling(list(errors), list(errors.values()))} weeks"
        for name, errors in (("CGP", case.cgp), ("SGP", case.sgp))
        if not falls(errors.values())
    ]
    return Claim(
        "larger segments and more inducing points reduce the RMSE",
        "it falls from each size to the next, for CGP and SGP",
        f"CGP {_list(case.cgp.values())}; SGP {_list(case.sgp.values())} ({_weeks(case.cgp)})",
        not wrong,
        f"{'; '.join(wrong)}. {_on_the_way_to_the_gp(case)}",
        case=case.name,
    )


def _on_the_way_to_the_gp(case: Case) -> str:
    below = [
        f"{name} {_weeks(size for size, value in errors.items() if value < case.gp)}"
        for name, errors in (("CGP", case.cgp), ("SGP", case.sgp))
        if min(errors.values()) < case.gp
    ]
    end = f"Larger sizes bring the RMSE towards the GP's {case.gp:.2f}"
    if below:
        return f"{end}, and some are below it on the way: {'; '.join(below)}"
    return f"{end}, from above, but not in every step"


def _sparse_is_better(case: Case) -> Claim:
    size = 5 if 5 in case.cgp else max(case.cgp)
    sgp, cgp = case.sgp[size], case.cgp[size]
    shown = apart([sgp, cgp])
    return Claim(
        "the SGP with 5 weeks of inducing points has a lower RMSE than the CGP with segments of 5 weeks",
        "a smaller number",
        f"SGP {shown[0]}, CGP {shown[1]}",
        sgp < cgp,
        f"the CGP is {'better by ' + digits_apart([sgp - cgp])[0] if cgp < sgp else 'as good'} here"
        + (": the pattern that its segments share is in the mean" if case.profile else ""),
        case=case.name,
    )


def _gap_closes(case: Case) -> Claim:
    gaps = [abs(case.cgp[size] - case.sgp[size]) for size in case.cgp]
    return Claim(
        "the gap between the RMSEs of CGP and SGP closes",
        "the absolute difference becomes smaller from each size to the next",
        f"{', '.join(digits_apart(gaps))} at {_weeks(case.cgp)}",
        falls(gaps),
        f"{not_falling(list(case.cgp), gaps)} weeks{_crossing([case.cgp[size] - case.sgp[size] for size in case.cgp])}",
        case=case.name,
    )


def _crossing(differences: list[float]) -> str:
    if min(differences) < 0 < max(differences):
        return ": the CGP has the smaller error at some sizes and the larger error at others"
    better = "CGP" if max(differences) <= 0 else "SGP"
    return f": the {better} has the smaller error at every size, but by an amount that does not fall in every step"


def _gap_to_gp_closes(case: Case) -> Claim:
    gaps = [abs(value - case.gp) for value in case.cgp.values()]
    return Claim(
        f"{OWN}longer segments close the gap to the GP",
        "the absolute difference becomes smaller from each size to the next",
        f"{', '.join(digits_apart(gaps))} at {_weeks(case.cgp)}",
        falls(gaps),
        f"{not_falling(list(case.cgp), gaps)} weeks"
        + (
            f": the CGP is better than the GP at {_weeks(size for size, value in case.cgp.items() if value < case.gp)}"
            if min(case.cgp.values()) < case.gp
            else ": the CGP is worse than the GP at every size, but by an amount that does not fall in every step"
        ),
        case=case.name,
    )


def _list(values: Iterable[float]) -> str:
    return ", ".join(apart(values))


def _weeks(sizes: Iterable[int]) -> str:
    *others, last = sizes
    return ", ".join([*map(str, others), in_weeks(last) if not others else f"{last} weeks"])


def _is_fifty_weeks(config: str) -> bool:
    if "inducing" in config:
        return True
    size, _, count = config.removesuffix("batches").partition("weeksperbatch-")
    return bool(count) and int(size) * int(count) == 50
