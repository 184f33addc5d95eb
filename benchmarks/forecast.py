"""Forecasts beside other libraries: RMSE, MAE, CRPS, coverage and seconds on every series of the data folder.

    pip install 'compositegp[cli,peers-forecasts]'
    python benchmarks/forecast.py [--quick] [--slow] [--series electricity bikes …] [--methods compositegp MSTL …]

Peers: seasonal naive, AutoETS, AutoTheta, MSTL and AutoARIMA of statsforecast, LightGBM on lags and calendar by
skforecast (intervals by draws of its binned residuals), Prophet. Those that are not installed are left out, and one
that takes longer than `--limit` seconds is stopped. Each method forecasts the same horizons at the end of a series from
the values before them: sixty days of a series of hours, or seven with `--quick`. AutoARIMA and Prophet, which would
take most of the time, forecast only series of days and months unless `--slow` is given. The CRPS is 2 × the mean
pinball loss over 19 quantiles for all of them. Results are added to a JSON file as they come, each with the machine,
the commit and the versions of its run, and `--write` makes the page.

Defaults of compositegp come from origins inside the training parts and from other series, but test scores of
electricity and of the NOx series had been seen when four of them were settled (the share of the windows that errors
are learned from, that the scale follows recent errors, within how many standard errors scales of the target count as
equal, and that of equal ones the one that changes values least is taken), so that these test parts are not untouched.
That outliers of short series are tempered, and from how many standard deviations on, was decided after a look at the
errors of petrol and diesel after the lockdown of 2020. That forecasts of short series are averaged over kernels was
tried because of spending and fuel oil, and decided by other series (`benchmarks/forecast_public.py`).
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from forecast_methods import IN_WORDS, LEVELS, METHODS, QUANTILES, TAILS, Result
from forecast_series import cases
from timing import header

SCORES = ("RMSE", "MAE", "CRPS", "50 %", "80 %", "95 %", "seconds")
RULES = ("seasonal naive", "AutoETS", "MSTL")  # whose best the default should never be much worse than
OWN = "compositegp"
SLOW = ("AutoARIMA", "Prophet")
PEERS = ("statsforecast", "skforecast", "lightgbm", "prophet")
INSTALL = "pip install 'compositegp[cli,peers-forecasts]'"

_COLUMNS = (
    "Each method forecasts the same horizons at the end of a series from values before them, with its defaults. "
    "CRPS is twice the mean pinball loss over 19 quantiles; columns in % say how many values lie in such intervals; "
    "seconds are of the processor, of one core. Series of hours are forecast by the day, 60 days (with `--quick` 7); "
    "users a day by the week, 30 weeks (7); months by the year, spending 3 and fuel 6 years. AutoARIMA and Prophet "
    "forecast series of hours only with `--slow`: without it, they are not compared there. " + IN_WORDS
)
_CAVEAT = (
    "Defaults of compositegp come from origins inside the training parts and from other series, but test scores of "
    "electricity and of the NOx series had been seen when four of them were settled, and errors of petrol and diesel "
    "after the lockdown of 2020 when it was decided that outliers of short series are tempered. That forecasts of "
    "short series are averaged over kernels was tried because of the scores of spending and fuel oil, and decided by "
    "other series."
)


def scores(result: Result) -> dict[str, float]:
    y = result.observed[:, None]
    error = y - result.quantiles[:, : len(LEVELS)]
    pinball = np.maximum(LEVELS * error, (LEVELS - 1) * error)

    def inside(low: float, high: float) -> float:
        lower, upper = (result.quantiles[:, QUANTILES.index(q)] for q in (low, high))
        return float(np.mean((lower <= result.observed) & (result.observed <= upper)))

    return {
        "RMSE": float(np.sqrt(np.mean((result.mean - result.observed) ** 2))),
        "MAE": float(np.mean(np.abs(result.quantiles[:, QUANTILES.index(0.5)] - result.observed))),
        "CRPS": float(2 * pinball.mean()),
        "50 %": inside(0.25, 0.75),
        "80 %": inside(0.1, 0.9),
        "95 %": inside(*TAILS),
    }


def one(series: str, method: str, origins: int) -> None:
    """Print the scores of one method on one series, as JSON."""
    warnings.filterwarnings("ignore")
    case = cases(origins)[series]()
    start = time.process_time()
    found = scores(METHODS[method][1](case))
    print(json.dumps({**found, "seconds": time.process_time() - start}))


def in_a_process(series: str, method: str, origins: int, limit: float) -> dict:
    """The scores of one method on one series by a process of its own, or why there are none."""
    command = [sys.executable, __file__, "--one", series, method, "--origins", str(origins)]
    single = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=limit,
            env={**os.environ, **single},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"stopped after {limit:.0f} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        return {"failed": lines[-1][:100]}
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def page(known: dict[str, dict[str, dict]], command: str) -> str:
    """All results as a page: where a peer wins, then one table for each series."""
    lines = ["# Forecasts beside other libraries", "", f"Printed by `{command}`. {_COLUMNS}", ""]
    runs = sorted({row.get("run", "not noted") for rows in known.values() for row in rows.values()})
    lines += [f"The other libraries: `{INSTALL}`. Results are of {len(runs)} run(s): {'; '.join(runs)}.", ""]
    lines += [_CAVEAT, "", "## Where a peer wins", ""]
    before = len(lines)
    told = 0
    for name, rows in known.items():
        own = rows.get(OWN, {}).get("CRPS")
        peers = {method: row["CRPS"] for method, row in rows.items() if method != OWN and "CRPS" in row}
        if own is None or not peers:
            continue
        told += 1
        best = min(peers, key=lambda method: peers[method])
        if peers[best] < own:
            rules = [peers[method] for method in RULES if method in peers]
            least = f" Over the best of {', '.join(RULES)}: {own / min(rules) - 1:+.1%}." if rules else ""
            lines.append(
                f"- {name}: {best} has a CRPS of {rounded(peers[best])}, compositegp {rounded(own)}: "
                f"{own / peers[best] - 1:+.1%}.{least}"
            )
    lost = len(lines) - before
    lines += ["", f"compositegp has the best CRPS on {told - lost} of {told} series.", ""]
    for name, rows in known.items():
        lines += [f"## {name}", "", "| method | " + " | ".join(SCORES) + " |", "|---" * (1 + len(SCORES)) + "|"]
        for method, row in rows.items():
            lines.append(f"| {method} | " + cells(row) + " |")
        lines.append("")
    return "\n".join(lines)


def cells(row: dict) -> str:
    """The scores of a method as cells of a table."""
    if "failed" in row:
        return row["failed"].replace("|", "/") + " |" * (len(SCORES) - 1)
    digits = {"50 %": ".3f", "80 %": ".3f", "95 %": ".3f", "seconds": ".0f"}
    return " | ".join(format(row[key], digits[key]) if key in digits else rounded(row[key]) for key in SCORES)


def rounded(error: float) -> str:
    """An error with four digits, or with all before the point."""
    return f"{error:,.0f}" if abs(error) >= 1000 else f"{error:.4g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", nargs="+")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--origins", type=int, help="horizons that are forecast, 60, or 7 with --quick")
    parser.add_argument("--quick", action="store_true", help="seven horizons: some ten minutes on two cores")
    parser.add_argument("--slow", action="store_true", help="AutoARIMA and Prophet forecast series of hours too")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds after which a method is stopped")
    parser.add_argument("--jobs", type=int, default=2, help="methods that run at the same time, on a core each")
    parser.add_argument("--out", type=Path, default=Path("out/forecast.json"), help="results are added to it")
    parser.add_argument(
        "--write", type=Path, help="a page that gets all results, such as docs/forecast_benchmarks.md"
    )
    parser.add_argument("--one", nargs=2, metavar=("SERIES", "METHOD"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    quick = arguments.quick
    origins = arguments.origins or (7 if quick else 60)
    if arguments.one:
        return one(*arguments.one, origins)
    names = list(cases(origins))
    unknown = set(arguments.series or ()) - set(names)
    if unknown:
        raise SystemExit(f"no series {sorted(unknown)}; there are {names}")
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    before = json.loads(arguments.out.read_text()) if arguments.out.exists() else {"origins": origins, "series": {}}
    if before["origins"] != origins:
        raise SystemExit(
            f"{arguments.out} has results of {before['origins']} horizons, not {origins}; name another file"
        )
    known = before["series"]
    there = [method for method in arguments.methods if importlib.util.find_spec(METHODS[method][0])]
    missing = [method for method in arguments.methods if method not in there]
    if missing:
        print(f"not installed: {', '.join(missing)}; {INSTALL}")
    told = header("pandas", *PEERS)
    print(told + "\n")
    print(f"| series | method | {' | '.join(SCORES)} |\n{'|---' * (2 + len(SCORES))}|", flush=True)

    def run(job: tuple[str, str]) -> tuple[str, str, dict]:
        return *job, in_a_process(*job, origins, arguments.limit)

    jobs = [(name, method) for name in arguments.series or names for method in there]
    if not arguments.slow:
        jobs = [(name, method) for name, method in jobs if method not in SLOW or " a " in name or ":" in name]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for name, method, found in pool.map(run, jobs):
            known.setdefault(name, {})[method] = {**found, "run": told}
            print(f"| {name} | {method} | {cells(found)} |", flush=True)
            arguments.out.write_text(json.dumps({"origins": origins, "series": known}, indent=1))
    if arguments.write:
        options = " --quick" * quick + " --slow" * arguments.slow
        arguments.write.write_text(page(known, f"python benchmarks/forecast.py{options} --write {arguments.write}"))


if __name__ == "__main__":
    main()
