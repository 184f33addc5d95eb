"""Claims of the paper, and what was found in each experiment."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from compositegp.storage import write_atomically

FIGURES = "figures"
"""The folder of pictures, inside the folder of a report."""

_METHODS = (
    "- **GP**: the exact Gaussian process of all the observations.",
    "- **CGP**, the paper's composite GP: the observations in segments, an exact GP for each, and their evidence about "
    "the test points added up.",
    "- **SGP**, a sparse GP: the observations speak about the values at a few inducing points alone, and the test "
    "points are predicted from those.",
    "- **FITC** (fully independent training conditional): the SGP that is computed here, in which the observations are "
    "independent of each other once the values at the inducing points are given.",
    "- **conditional** (not in the paper): segments as in the CGP, each given so many weeks of those before it in the "
    "order (block Vecchia).",
    "",
    "RMSE and MAE are the root mean squared and the mean absolute error; CRPS and nats are in the "
    "[glossary](theory.md#glossary).",
)

VERDICT_COLUMNS = ("experiment", "claim", "verdict", "timed")


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    Attributes
    ----------
    text : str
        The claim.
    rule : str
        What must be true of the numbers for the verdict "agrees".
    found : str
        The numbers that were found.
    holds : bool
        Whether the rule is true of them.
    why : str
        The reason, which is printed where it is not. A claim that fails has one.
    timed : bool
        Whether the numbers are seconds, which depend on the machine.

    Examples
    --------
    >>> Claim("the CGP is faster than the GP", "fewer seconds", "0.2 s against 0.8 s", True, timed=True).verdict
    'agrees'
    """

    text: str
    rule: str
    found: str
    holds: bool
    why: str = ""
    timed: bool = False

    def __post_init__(self) -> None:
        if not self.holds and not self.why:
            raise ValueError(f"the claim that {self.text} does not hold ({self.found}), and no reason is given")

    @property
    def verdict(self) -> str:
        """``agrees`` or ``differs``."""
        return "agrees" if self.holds else "differs"


@dataclass
class Experiment:
    """One experiment: its claims, pictures and tables.

    Attributes
    ----------
    name, title, setting : str
    claims : list of Claim
    pictures : list of (str, str)
        File names and captions.
    tables : list of str
        In Markdown.
    seconds : float
        How long it took.

    Examples
    --------
    >>> experiment = Experiment("spatial", "Synthetic spatial data", "A grid with a box held out.")
    >>> experiment.claims.append(Claim("errors grow", "the second is larger", "from 1 to 2", True))
    """

    name: str
    title: str
    setting: str
    claims: list[Claim] = field(default_factory=list)
    pictures: list[tuple[str, str]] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    seconds: float = 0.0


def markdown(experiments: Sequence[Experiment], command: str, cores: int) -> str:
    """A report of experiments, in Markdown.

    Parameters
    ----------
    experiments : sequence of Experiment
    command : str
        The command that ran them.
    cores : int
        Of the machine.

    Returns
    -------
    str

    Examples
    --------
    >>> claims = [Claim("errors grow", "the second is larger", "from 1 to 2", True)]
    >>> text = markdown([Experiment("x", "Errors", "A grid.", claims)], "compositegp reproduce x", 2)
    >>> print(text.split("## ")[1])
    Errors
    <BLANKLINE>
    A grid.
    <BLANKLINE>
    | claim | rule | found | verdict |
    |---|---|---|---|
    | errors grow | the second is larger | from 1 to 2 | agrees |
    <BLANKLINE>
    """
    claims = [claim for each in experiments for claim in each.claims]
    own = [claim for claim in claims if not claim.text.startswith("(not in the paper)")]
    times = ", ".join(f"{each.name} {each.seconds:.0f} s" for each in experiments)
    lines = [
        "# The paper's experiments, reproduced",
        "",
        f"Printed by `{command}` in {sum(each.seconds for each in experiments):.0f} s on {cores} core(s): {times}.",
        "",
        *_METHODS,
        "",
        f"Of {len(own)} rows with claims of the paper {sum(claim.holds for claim in own)} agree; a claim about several "
        "stations, means or predictors has a row for each. Each row states the rule of its verdict. Rows that begin "
        "with “(not in the paper)” are ours. The CSV files that the command writes hold every prediction.",
        "",
    ]
    for experiment in experiments:
        lines += [f"## {experiment.title}", "", experiment.setting, ""]
        lines += ["| claim | rule | found | verdict |", "|---|---|---|---|"]
        for claim in experiment.claims:
            verdict = claim.verdict if claim.holds else f"**{claim.verdict}**"
            reason = f": {claim.why}" if claim.why and not claim.holds else ""
            cells = (claim.text, claim.rule, claim.found, verdict + reason)
            lines.append("| " + " | ".join(cells) + " |")
        for file, caption in experiment.pictures:
            lines += ["", f"![{caption}]({FIGURES}/{file})"]
        for text in experiment.tables:
            lines += ["", text]
        lines.append("")
    return "\n".join(lines)


def verdict_rows(experiments: Sequence[Experiment]) -> list[tuple[str, str, str, bool]]:
    """Verdicts alone: experiment, claim, verdict, and whether it depends on seconds.

    Examples
    --------
    >>> verdict_rows([Experiment("x", "Errors", "", [Claim("errors grow", "", "", True)])])
    [('x', 'errors grow', 'agrees', False)]
    """
    return [(each.name, claim.text, claim.verdict, claim.timed) for each in experiments for claim in each.claims]


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown; numbers have four digits.

    Examples
    --------
    >>> print(table(("method", "seconds"), [("GP", 0.123456)]))
    | method | seconds |
    |---|---|
    | GP | 0.1235 |
    """
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    return "\n".join(lines + ["| " + " | ".join(map(_cell, row)) + " |" for row in rows])


def write_csv(path: Path, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a table to a CSV file."""
    write_frame(path, pd.DataFrame(rows, columns=list(columns)))


def write_frame(path: Path, frame: pd.DataFrame) -> None:
    """Write a table to a CSV file, with seven digits."""
    write_atomically(path, frame.to_csv(index=False, float_format="%.7g").encode())


def picture(out: Path, name: str) -> Path:
    """Path of a picture of a report; its folder is made."""
    (out / FIGURES).mkdir(parents=True, exist_ok=True)
    return out / FIGURES / name


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
