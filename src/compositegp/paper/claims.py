"""Claims of the paper, and what was found in each experiment."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from compositegp.storage import write_atomically

FIGURES = "figures"
"""The folder of pictures, inside the folder of a report."""

OWN = "(not in the paper) "
"""How the text of a claim begins that is not the paper's."""


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, in one of the cases that it is about.

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
    case : str
        What the numbers are of, for a claim that has a row for each of several stations, means or predictors.

    Examples
    --------
    >>> claim = Claim("the CGP is faster than the GP", "fewer seconds", "0.2 s against 0.8 s", True, "", timed=True)
    >>> claim.verdict
    'agrees'
    """

    text: str
    rule: str
    found: str
    holds: bool
    why: str
    timed: bool = False
    case: str = ""

    def __post_init__(self) -> None:
        if not self.holds and not self.why:
            raise ValueError(
                f"the claim that {self.full_text} does not hold ({self.found}), and no reason is given"
            )

    @property
    def full_text(self) -> str:
        """The claim and its case."""
        return f"{self.text}: {self.case}" if self.case else self.text

    @property
    def verdict(self) -> str:
        """``agrees`` or ``differs``."""
        return "agrees" if self.holds else "differs"

    @property
    def of_the_paper(self) -> bool:
        """Whether the claim is the paper's."""
        return not self.text.startswith(OWN)


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
    >>> experiment.claims.append(Claim("errors grow", "the second is larger", "from 1 to 2", True, ""))
    """

    name: str
    title: str
    setting: str
    claims: list[Claim] = field(default_factory=list)
    pictures: list[tuple[str, str]] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    seconds: float = 0.0


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
