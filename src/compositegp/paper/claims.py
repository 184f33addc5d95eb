"""Claims of the paper, and what was found in each experiment."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from compositegp.storage import write_atomically


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    Attributes
    ----------
    text : str
        The claim.
    found : str
        The numbers that were found.
    holds : bool
        Whether these agree with the claim.
    why : str
        The reason, where they do not.

    Examples
    --------
    >>> Claim("the CGP is faster than the GP", "0.2 s against 0.8 s", True).holds
    True
    """

    text: str
    found: str
    holds: bool
    why: str = ""


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

    Examples
    --------
    >>> experiment = Experiment("spatial", "Synthetic spatial data", "A grid with a box held out.")
    >>> experiment.claims.append(Claim("errors grow", "from 1 to 2", True))
    """

    name: str
    title: str
    setting: str
    claims: list[Claim] = field(default_factory=list)
    pictures: list[tuple[str, str]] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)


def markdown(experiments: Sequence[Experiment], command: str) -> str:
    """A report of experiments, in Markdown.

    Parameters
    ----------
    experiments : sequence of Experiment
    command : str
        The command that ran them.

    Returns
    -------
    str

    Examples
    --------
    >>> claims = [Claim("errors grow", "from 1 to 2", True)]
    >>> print(markdown([Experiment("x", "Errors", "A grid.", claims)], "compositegp reproduce x").split("## ")[1])
    Errors
    <BLANKLINE>
    A grid.
    <BLANKLINE>
    | the paper | found | |
    |---|---|---|
    | errors grow | from 1 to 2 | agrees |
    <BLANKLINE>
    """
    lines = ["# The paper's experiments, reproduced", "", f"Printed by `{command}`.", ""]
    for experiment in experiments:
        lines += [f"## {experiment.title}", "", experiment.setting, ""]
        lines += ["| the paper | found | |", "|---|---|---|"]
        for claim in experiment.claims:
            verdict = "agrees" if claim.holds else "**differs**"
            lines.append(f"| {claim.text} | {claim.found} | {verdict}{': ' + claim.why if claim.why else ''} |")
        for file, caption in experiment.pictures:
            lines += ["", f"![{caption}]({file})"]
        for text in experiment.tables:
            lines += ["", text]
        lines.append("")
    return "\n".join(lines)


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
    write_atomically(path, pd.DataFrame(rows, columns=list(columns)).to_csv(index=False).encode())


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
