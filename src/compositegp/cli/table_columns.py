"""The input columns of a table: which are numbers, which are categories, and how they become a matrix."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder

from compositegp.backend import Floats
from compositegp.cli.output import CommandError, note
from compositegp.cli.resources import require_memory
from compositegp.cli.tables import (
    AS_FOUND,
    are_all_numbers,
    complete_number_column,
    complete_text_column,
    has_numbers,
    has_times,
    read_table,
    refuse_text_among_numbers,
    target_column,
)
from compositegp.cli.text_format import TextFormat
from compositegp.cli.time_columns import looks_like_times

_ROWS_TOGETHER = 512  # a segment of the default size and as many rows that it is conditioned on
_FEW_LEVELS = 20  # different texts that can always be categories
_MOST_LEVELS = 200  # different texts in a column that can be categories
_MOST_NAMES = 5  # unknown levels that a note lists


@dataclass(frozen=True)
class TableColumns:
    """The columns that a model predicts from.

    Attributes
    ----------
    numbers : list of str
        Numeric columns.
    levels : dict of lists of str
        Text columns, each with its different values.
    """

    numbers: list[str]
    levels: dict[str, list[str]]

    @classmethod
    def of_inputs(cls, inputs: pd.DataFrame, path: str | Path) -> "TableColumns":
        """Find the columns of complete inputs; one that has the same value in every row is left out with a note."""
        numbers, levels = [], {}
        for name in inputs.columns:
            values = inputs[name]
            if (values == values.iloc[0]).all():
                note(f"column {name!r} of {path} has the same value in every row. It is not used.")
            elif has_numbers(values):
                numbers.append(name)
            else:
                levels[name] = sorted(values.unique())
                if len(levels[name]) > min(_MOST_LEVELS, max(_FEW_LEVELS, len(values) // 2)):
                    raise CommandError(
                        f"column {name!r} of {path} has {len(levels[name])} different texts in {len(values)} rows, "
                        f"too many for categories (at most {_MOST_LEVELS}, and one for every two rows). Leave the "
                        "column out, or replace the texts by numbers."
                    )
        if not numbers and not levels:
            raise CommandError(f"{path} has no column to learn from: each has the same value in every row.")
        return cls(numbers, levels)

    @property
    def width(self) -> int:
        """Columns of the matrix: one for each number, and one for each level of a text."""
        return len(self.numbers) + sum(map(len, self.levels.values()))

    def check(self) -> None:
        """Check that no name and no level is there twice, and that every text has a level."""
        names = [*self.numbers, *self.levels]
        if len(set(names)) < len(names) or not names:
            raise ValueError("its names of columns are damaged")
        if not all(texts and len(set(texts)) == len(texts) for texts in self.levels.values()):
            raise ValueError("the levels of its text columns are damaged")

    def read(self, table: pd.DataFrame, path: str | Path) -> pd.DataFrame:
        """Check and read these columns of a table; a level that is not known is reported in a note."""
        missing = [name for name in (*self.numbers, *self.levels) if name not in table.columns]
        if missing:
            names = ", ".join(map(repr, missing))
            raise CommandError(f"{path} lacks the column(s) {names}, which the model was learned from.")
        cells = {name: complete_number_column(table, name, path) for name in self.numbers}
        for name, levels in self.levels.items():
            cells[name] = complete_text_column(table, name, path)
            unknown = sorted(set(cells[name]) - set(levels))
            if unknown:
                names = ", ".join(unknown[:_MOST_NAMES]) + (", …" if len(unknown) > _MOST_NAMES else "")
                note(f"column {name!r} of {path} has values that the model was not learned from: {names}")
        return pd.DataFrame(cells)

    def encoder(self) -> ColumnTransformer:
        """A fitted transformer of `read` tables: numbers pass through, and each level of a text gets a column."""
        one_hot = OneHotEncoder(
            categories=[np.array(levels, dtype=object) for levels in self.levels.values()],
            handle_unknown="ignore",
            sparse_output=False,
        )
        transformer = ColumnTransformer(
            [("numbers", "passthrough", self.numbers), ("levels", one_hot, list(self.levels))]
        )
        # All that fitting would find is known already, so that one row of the right types is enough.
        cells = dict.fromkeys(self.numbers, 0.0) | {name: levels[0] for name, levels in self.levels.items()}
        return transformer.fit(pd.DataFrame([cells]).astype(dict.fromkeys(self.levels, object)))


class TrainingTable(NamedTuple):
    """The rows of a file whose target is known.

    Attributes
    ----------
    columns : TableColumns
    inputs : pandas DataFrame of n rows
    y : array of shape (n,)
    """

    columns: TableColumns
    inputs: pd.DataFrame
    y: Floats


def read_training_table(path: str | Path, target: str, text_format: TextFormat = AS_FOUND) -> TrainingTable:
    """Read a file to learn from. Rows without a target are left out with a note; an empty input cell is an error."""
    table = read_table(
        path, text_format, check_shape=lambda n_rows, n_columns: _check_width(n_columns - 1, n_rows, path)
    )
    y = target_column(table, target, path)
    _check_width(len(table.columns) - 1, len(y), path)
    inputs = _complete_inputs(table.drop(columns=target), target, path)
    known = ~np.isnan(y)
    if known.sum() < 2 or not np.ptp(y[known]):
        what = "the same value in every row" if known.sum() > 1 else f"{int(known.sum())} value(s)"
        raise CommandError(f"column {target!r} of {path} has {what}: there is nothing to learn.")
    if not known.all():
        note(f"{int((~known).sum())} of {len(y)} rows of {path} have no {target!r}. They are left out.")
        inputs = inputs[known]
    columns = TableColumns.of_inputs(inputs, path)
    _check_width(columns.width, len(inputs), path)
    return TrainingTable(columns, inputs[[*columns.numbers, *columns.levels]], y[known])


def _check_width(width: int, n_rows: int, path: str | Path) -> None:
    """Refuse more columns than there is memory for.

    Learning takes some square matrices of the columns and, for each column, one of the rows that are factored together.
    """
    n_bytes = 8.0 * (3 * width**2 + width * min(n_rows, _ROWS_TOGETHER) ** 2)
    require_memory(n_bytes, f"learning from the {width:,} columns of {path}", "Leave columns out.")


def _complete_inputs(table: pd.DataFrame, target: str, path: str | Path) -> pd.DataFrame:
    """All columns but the target, as numbers or texts, none of them with an empty cell."""
    if not len(table.columns):
        raise CommandError(f"{path} has no column besides {target!r} to predict from.")
    cells = {}
    for name in table.columns:
        if has_numbers(table[name]) or are_all_numbers(table[name]):
            cells[name] = complete_number_column(table, name, path)
            continue
        if has_times(table[name]) or looks_like_times(table[name]):
            raise CommandError(
                f"column {name!r} of {path} has times. Use compositegp forecast, or leave the column out."
            )
        refuse_text_among_numbers(table[name], name, path)
        cells[name] = complete_text_column(table, name, path)
    return pd.DataFrame(cells)
