"""A model of a table: a scikit-learn pipeline from columns to predictions, and its file."""

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from compositegp.backend import Floats
from compositegp.cli.table_columns import TableColumns, TrainingTable
from compositegp.estimators import CompositeGPRegressor
from compositegp.storage import read_archive, unreadable, write_archive

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
            target, numbers, levels = content["target"], content["numbers"], content["levels"]
            texts = [target, *numbers, *levels, *(level for names in levels.values() for level in names)]
            regressor_content = content["regressor"]
        except (KeyError, TypeError, AttributeError) as error:
            raise unreadable(path, f"a part of it is missing or damaged ({error})") from error
        if not all(isinstance(text, str) for text in texts) or not all(levels.values()):
            raise unreadable(path, "its names of columns are damaged")
        model = cls(
            target, TableColumns(numbers, levels), CompositeGPRegressor.from_content(regressor_content, path)
        )
        width = len(numbers) + sum(map(len, levels.values()))
        if model.regressor.n_features_in_ != width:
            raise unreadable(path, f"it has {width} columns for a model of {model.regressor.n_features_in_}")
        return model
