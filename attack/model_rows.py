"""Which rows a model has: it keeps the latest ones, and sums of what all of them have taught."""

import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

from attack.cases import Ended
from compositegp.forecasting import CompositeGPForecaster


def members(path: Path) -> dict[str, bytes]:
    """What a model file holds; the file itself has the time at which it was written in it."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def compared(path: Path, start: Path, new: pd.Series) -> Ended:
    """Whether a model is the one that it was at the start with some rows, each taken in once.

    Rows that are older than the latest ones live on in sums only. So the file is compared, to the last bit, with that
    of a model that was given all the rows at once, and the latest rows tell what is wrong if it is another one.

    Parameters
    ----------
    path : Path
        Of the model.
    start : Path
        Of the model as it was before.
    new : Series
        The rows, all of them observed.
    """
    model, names = CompositeGPForecaster.load_with(path)
    straight = CompositeGPForecaster.load(start)
    if len(new):
        straight.update(new)
    found, expected = model.observations_["value"], straight.observations_["value"]
    lost = expected.index.difference(found.index)
    if len(lost):
        return Ended("lost", message=f"{len(lost)} of the latest {len(expected)} rows are not in the model")
    if found.index.has_duplicates or model.last_ > straight.last_:
        return Ended("twice", message=f"rows are there twice, or nobody sent them; the last is at {model.last_}")
    if not np.array_equal(found, expected):
        return Ended("wrong", message="the model has other values in its latest rows")
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / "straight.cgp"
        straight.save(copy, **names)
        if members(path) != members(copy):
            return Ended("wrong", message="the rows have taught the model something else than in one run")
    return Ended("right")
