"""A model of a table: a scikit-learn pipeline from columns to predictions, and its file."""

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from compositegp.backend import Floats
from compositegp.cli.table_columns import TableColumns, TrainingTable
from compositegp.estimators import CompositeGPRegressor
from compositegp.storage import Fields, damaged, read_archive, write_archive

_FORMAT, _VERSION = "compositegp table model", 1


class TableModel:
    """Predictions of one column of a table from the others.

    Parameters
    ----------
    target : str
        Name of the column that is predicted.
    columns : TableColumns
        The columns that it is predicted from.
    regressor : CompositeGPRegressor
        Fitted or not.

    Attributes
    ----------
    pipeline : scikit-learn Pipeline
        The encoder of the columns, then the regressor.
    """

    def __init__(self, target: str, columns: TableColumns, regressor: CompositeGPRegressor) -> None:
        self.target = target
        self.columns = columns
        self.pipeline = Pipeline([("columns", columns.encoder()), ("regressor", regressor)])

    def fit(self, training: TrainingTable) -> "TableModel":
        """Learn from a table."""
        self.pipeline.fit(training.inputs, training.y)
        return self

    @property
    def regressor(self) -> CompositeGPRegressor:
        """The last step of the pipeline."""
        return self.pipeline[-1]  # type: ignore[no-any-return]

    def matrix(self, inputs: Any) -> Floats:
        """Inputs, as `TableColumns.read` gives them, as the regressor sees them."""
        return np.asarray(self.pipeline[:-1].transform(inputs), dtype=np.float64)

    def predict(self, inputs: Any) -> Any:
        """The predictive distribution of the target in each row, made once.

        Returns
        -------
        distribution
            With the arrays ``mean`` and ``std``, the methods ``interval(level)``, ``crps(y)`` and
            ``coverage(y, level)``, and the distribution of some rows by ``[rows]``.
        """
        return self.regressor.predict_distribution(self.matrix(inputs))

    def save(self, path: str | Path) -> None:
        """Write the whole pipeline to one file, which holds no code."""
        content = {
            "target": self.target,
            "numbers": self.columns.numbers,
            "levels": self.columns.levels,
            "regressor": self.regressor.to_content(),
        }
        write_archive(path, _FORMAT, _VERSION, content)

    @classmethod
    def load(cls, path: str | Path) -> "TableModel":
        """Read a model that `save` wrote; no code in the file is run."""
        content = read_archive(path, _FORMAT, _VERSION)
        try:
            parts = Fields(content, ["target", "numbers", "levels", "regressor"])
            levels = Fields(parts["levels"], (), parts.dictionary("levels"))
            columns = TableColumns(parts.texts("numbers"), {name: levels.texts(name) for name in parts["levels"]})
            columns.check()
            regressor = CompositeGPRegressor.from_content(parts["regressor"], path)
            if regressor.n_features_in_ != columns.width:
                raise ValueError(f"it has {columns.width} columns for a model of {regressor.n_features_in_}")
            return cls(parts.text("target"), columns, regressor)
        except Exception as error:  # what is in the file may be none of our values
            raise damaged(path, error) from error
