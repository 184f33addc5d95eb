"""Figures of an attack: what was tried, and how it ended."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

GOOD = ("right", "refused")
"""How a case may end: the answer is right, or the error is one clear sentence."""
BAD = ("tracebacks", "unclear", "hangs", "NaN", "wrong", "lost", "twice")
"""How no case may end."""
_MOST_FAILURES = 25  # failures of a part that are told


@dataclass
class Figures:
    """Counts of one line of the table.

    Attributes
    ----------
    counts : Counter
        Cases by how they ended, and ``tried``.
    failures : list of str
        What to type to see a failure again, and what was seen.
    measures : dict of lists
        What was measured, by setting.
    """

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    measures: dict[str, list[float]] = field(default_factory=dict)

    def add(self, outcome: str, what: str = "", *, tried: int = 1) -> None:
        """Count a case by how it ended."""
        self.counts["tried"] += tried
        self.counts[outcome] += 1
        if outcome in BAD and len(self.failures) < _MOST_FAILURES:
            self.failures.append(f"{outcome}: {what}")

    def to_json(self) -> dict[str, Any]:
        """The figures as JSON."""
        return {"counts": dict(self.counts), "failures": self.failures, "measures": self.measures}

    def merge(self, values: dict[str, Any]) -> None:
        """Add figures that another process has written as JSON."""
        self.counts.update(values["counts"])
        self.failures += values["failures"]
        self.measures |= values["measures"]

    @property
    def n_bad(self) -> int:
        """Cases that ended as no case may."""
        return sum(self.counts[outcome] for outcome in BAD)


def as_table(rows: dict[str, Figures]) -> str:
    """The figures as a table in Markdown."""
    head = ["what was tried", "tried", *GOOD, *BAD]
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    for name, figures in rows.items():
        cells = [f"{figures.counts[column]:,}" for column in ("tried", *GOOD, *BAD)]
        lines.append("| " + " | ".join([name, *cells]) + " |")
    total: Counter[str] = Counter()
    for figures in rows.values():
        total.update(figures.counts)
    cells = [f"**{total[column]:,}**" for column in ("tried", *GOOD, *BAD)]
    return "\n".join([*lines, "| " + " | ".join(["**in all**", *cells]) + " |"])
