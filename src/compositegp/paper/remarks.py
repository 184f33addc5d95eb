"""The paper's remarks about redundant and synergistic segments, with the rules of their verdicts."""

from compositegp.analysis import Report
from compositegp.paper.claims import Claim


def remark_claims(reports: dict[str, Report]) -> list[Claim]:
    """Verdicts about examples, by their names.

    Parameters
    ----------
    reports : dict of str to Report
        The CGP beside the GP.

    Returns
    -------
    list of Claim
    """
    differences = {name: found.information_exact - found.information_sum for name, found in reports.items()}
    signs = ", ".join(f"{name} {value:+.2f}" for name, value in differences.items())
    wrong = {name: found for name, found in reports.items() if not _is_consistent(found)}
    only = "redundant" if max(differences.values()) < 0 else "synergistic"
    return [
        Claim(
            "Remark 1: the difference of information gains can be positive or negative",
            "both signs of I(z; y) − Σ I(z; y_k) are found among the examples",
            signs,
            min(differences.values()) < 0 < max(differences.values()),
            f"the segments of all these examples are {only}",
        ),
        Claim(
            "Remark 2: redundant segments underestimate uncertainty, synergistic ones overestimate it",
            "in every example the CGP gains more than the GP exactly if I(z; y) < Σ I(z; y_k)",
            f"in {len(reports) - len(wrong)} of {len(reports)}",
            not wrong,
            "; ".join(_exception(name, found) for name, found in wrong.items()),
        ),
    ]


def _is_consistent(found: Report) -> bool:
    """Whether the CGP is over-confident exactly if its segments are redundant by Σ I."""
    redundant = found.information_exact < found.information_sum
    return redundant == (found.information_composite > found.information_exact)


def _exception(name: str, found: Report) -> str:
    if found.information_exact < found.information_sum:
        kind, than, confidence = "redundant", "not more", "under"
    else:
        kind, than, confidence = "synergistic", "more", "over"
    return (
        f"“{name}” is {kind} by Σ I, but its CGP gains {found.information_composite:.2f} nats, {than} than the exact "
        f"{found.information_exact:.2f}: it is {confidence}-confident"
    )
