"""Claims of the paper, beside what was found."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from compositegp.storage import write_atomically


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    Attributes
    ----------
    text : str
        What the paper says.
    found : str
        What was found, in numbers.
    holds : bool
    why : str
        Where it differs: why.
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
    pictures : list of str
        File names, with a caption each.
    tables : list of str
        In Markdown.
    """

    name: str
    title: str
    setting: str
    claims: list[Claim] = field(default_factory=list)
    pictures: list[tuple[str, str]] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)


def markdown(experiments: Sequence[Experiment], command: str) -> str:
    """The report of some experiments."""
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
    """A table in Markdown."""
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    return "\n".join(lines + ["| " + " | ".join(map(_cell, row)) + " |" for row in rows])


def write_csv(path: Path, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table as a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    write_atomically(path, text.getvalue().encode())


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
