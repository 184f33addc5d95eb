"""Series of the data folder for `benchmarks/forecast.py`."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from data import folder


class Case(NamedTuple):
    """A series to forecast: its values, further columns, horizon, origins, periods, kind of step, clock."""

    y: pd.Series
    X: pd.DataFrame | None
    horizon: int
    origins: int
    periods: list[int]
    kind: str
    options: dict


FUELS = {
    "GLPs": "liquefied gas",
    "Gasolinas": "petrol",
    "Querosenos": "kerosene",
    "Gasoleos": "diesel",
    "Fueloleos": "fuel oil",
}


def cases(origins: int) -> dict[str, Callable[[], Case]]:
    """All the series of the data folder by name; each is read when it is called.

    Parameters
    ----------
    origins : int
        Horizons at the end of an hourly or half-hourly series that are forecast.
    """
    base = folder()
    if base is None:
        raise SystemExit("no data: set COMPOSITEGP_DATA to a folder that holds the series")
    found: dict[str, Callable[[], Case]] = {}
    for temperature in (False, True):
        name = "electricity with temperature" if temperature else "electricity"
        found[name] = partial(_electricity, base, origins, temperature)
        name = "bikes with weather" if temperature else "bikes"
        found[name] = partial(_bikes, base, origins, temperature)
    with_header = pd.read_csv(base / "series/bdg2_hourly_sample.csv.gz", index_col=0, nrows=1)
    for name in with_header:
        found[name.replace("_", " ")] = partial(_building, base, origins, name)
    found["users a day"] = partial(_users, base, min(origins, 30))
    found["spending a month"] = partial(_spending, base)
    fuel = pd.read_csv(base / "series/consumos-combustibles-mensual.csv.gz", index_col=0, nrows=1)
    for name in fuel:
        found[f"fuel: {FUELS.get(name, name)}"] = partial(_fuel, base, name)
    found["NOx, robustbase"] = partial(_robustbase, origins)
    for name in ("essingeleden", "hornsgatan"):
        found[f"NOx, {name.capitalize()}"] = partial(_stockholm, base, f"nox_{name}", origins)
    return found


def _electricity(base: Path, origins: int, temperature: bool) -> Case:
    table = pd.read_csv(base / "vic_electricity_halfhourly_2012_2014.csv.gz", parse_dates=["Time"])
    table = table.set_index("Time")
    closed = table.index[table["Holiday"]].tz_convert("Australia/Melbourne").date
    clock = {"timezone": "Australia/Melbourne", "holidays": sorted({str(day) for day in closed})}
    extra = table[["Temperature"]].astype(float) if temperature else None
    return Case(table["Demand"].astype(float), extra, 48, origins, [48, 336], "half hour", clock)


def _bikes(base: Path, origins: int, weather: bool) -> Case:
    table = pd.read_csv(base / "series/bike_sharing_dataset_clean.csv.gz", parse_dates=["date_time"])
    table = table.set_index("date_time")
    extra = table[["holiday", "temp", "hum", "windspeed"]].astype(float)
    extra = extra.assign(rain=table["weather"].map({"clear": 0.0, "mist": 1.0, "rain": 2.0}))
    return Case(table["users"].astype(float), extra if weather else None, 24, origins, [24, 168], "hour", {})


def _building(base: Path, origins: int, name: str) -> Case:
    table = pd.read_csv(base / "series/bdg2_hourly_sample.csv.gz", parse_dates=["timestamp"], index_col=0)
    return Case(table[name].dropna(), None, 24, origins, [24, 168], "hour", {})


def _users(base: Path, origins: int) -> Case:
    table = pd.read_csv(base / "series/bicimad_users.csv.gz", parse_dates=["date"], index_col=0)
    return Case(table["users"].astype(float), None, 7, origins, [7], "day", {})


def _spending(base: Path) -> Case:
    table = pd.read_csv(base / "series/h2o.csv.gz", parse_dates=["fecha"], index_col="fecha")
    return Case(table["x"], None, 12, 3, [12], "month", {})


def _fuel(base: Path, name: str) -> Case:
    table = pd.read_csv(base / "series/consumos-combustibles-mensual.csv.gz", parse_dates=["Fecha"], index_col=0)
    return Case(table[name], None, 12, 6, [12], "month", {})


def _robustbase(origins: int) -> Case:
    from compositegp.datasets import nox_emissions

    return Case(nox_emissions(), None, 24, origins, [24, 168], "hour", {})


def _stockholm(base: Path, name: str, origins: int) -> Case:
    table = pd.read_csv(base / "nox_stockholm_2009_2014.csv.gz", parse_dates=["timestamp"], index_col=0)
    return Case(table[name].iloc[-4 * 8766 :], None, 24, origins, [24, 168], "hour", {})
