"""Verdicts as rows of a table, and what has changed between two runs."""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from compositegp.paper.claims import Experiment

VERDICT_COLUMNS = ("experiment", "claim", "verdict", "timed")
_ABSENT = "no row"


class Change(NamedTuple):
    """A row whose verdict is not what it was.

    Attributes
    ----------
    experiment, claim : str
    before, now : str
        ``agrees``, ``differs`` or ``no row``.
    by_the_clock : bool
        Whether the claim is about seconds and has turned: another machine may do that.
    """

    experiment: str
    claim: str
    before: str
    now: str
    by_the_clock: bool

    def __str__(self) -> str:
        return f"{self.experiment}: {self.claim}: before {self.before}, now {self.now}"


def verdict_rows(experiments: Sequence[Experiment]) -> list[tuple[str, str, str, bool]]:
    """Verdicts alone: experiment, claim, verdict, and whether it depends on seconds.

    Examples
    --------
    >>> from compositegp.paper.claims import Claim
    >>> verdict_rows([Experiment("x", "Errors", "", [Claim("errors grow", "", "", True, "")])])
    [('x', 'errors grow', 'agrees', False)]
    """
    return [
        (each.name, claim.full_text, claim.verdict, claim.timed) for each in experiments for claim in each.claims
    ]


def changed_verdicts(earlier: pd.DataFrame, experiments: Sequence[Experiment]) -> list[Change]:
    """Rows that have turned, that are new or that are gone, in the experiments that were run.

    Parameters
    ----------
    earlier : pandas DataFrame
        Columns `VERDICT_COLUMNS`.
    experiments : sequence of Experiment

    Returns
    -------
    list of Change

    Examples
    --------
    >>> from compositegp.paper.claims import Claim
    >>> earlier = pd.DataFrame([("x", "errors grow", "agrees", False)], columns=VERDICT_COLUMNS)
    >>> now = Claim("errors grow", "the second is larger", "from 2 to 1", False, "the grid is fine enough")
    >>> print(*changed_verdicts(earlier, [Experiment("x", "Errors", "", [now])]))
    x: errors grow: before agrees, now differs
    """
    run = {each.name for each in experiments}
    rows = earlier[list(VERDICT_COLUMNS)].itertuples(index=False)
    before = {(name, claim): (verdict, bool(timed)) for name, claim, verdict, timed in rows if name in run}
    now = {(name, claim): (verdict, timed) for name, claim, verdict, timed in verdict_rows(experiments)}
    found = []
    for key in [*now, *(key for key in before if key not in now)]:
        (was, _), (is_now, timed) = before.get(key, (_ABSENT, False)), now.get(key, (_ABSENT, False))
        if was != is_now:
            found.append(Change(*key, was, is_now, timed and key in before))
    return found
