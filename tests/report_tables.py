"""Tables of the report on the paper's experiments, docs/reproduction.md, as a reader finds them."""

from pathlib import Path

import numpy as np
import pandas as pd

REPORT = Path(__file__).parent.parent / "docs" / "reproduction.md"


def tables_under(title):
    """The tables of a section, in order, with numbers where all cells of a column are numbers."""
    section = REPORT.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|") or not line.strip()]
    found, current = [], []
    for line in [*lines, ""]:
        if line.startswith("|"):
            current.append([cell.strip() for cell in line.strip("|").split(" | ")])
        elif current:
            header, _, *rows = current
            found.append(pd.DataFrame(rows, columns=header).apply(_numbers))
            current = []
    return found


def assert_the_report_has(table, found):
    """A table that was computed again, from a file with more digits, is that of the report; seconds may differ."""
    assert list(table.columns) == list(found.columns)
    for name in table.columns:
        if "seconds" in name:
            continue
        if pd.api.types.is_numeric_dtype(table[name]):
            np.testing.assert_allclose(
                table[name], found[name], rtol=0.02, atol=1e-9, err_msg=f"make reproduce: {name}"
            )
        else:
            assert list(table[name]) == list(found[name])


def _numbers(column):
    converted = pd.to_numeric(column, errors="coerce")
    return column if converted.isna().any() else converted
