"""A hundred series of two years, forecast by one command: seconds, memory, errors and coverage.

    python benchmarks/many_series.py [--series 100] [--step h] [--jobs 2] [--write FILE]

The series are simulated, each with its own level, profiles of day and week, and red noise. The last two days of them
(four weeks, of a series of days) are left out of the table that the command reads, and its forecasts are compared with
them. The naive forecast is the value of a week before.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from isolation import watch
from scipy.signal import lfilter
from timing import header

YEARS = 2
AHEAD = {"h": 48, "D": 28}
WEEK = {"h": 168, "D": 7}
IN_WORDS = {"h": "hours", "D": "days"}
LIMIT = 4 * 3600.0


def table(count: int, step: str) -> pd.DataFrame:
    """A long table of simulated series."""
    stamps = pd.date_range("2024-01-01", "2025-12-31 23:00", freq=step)
    hour, weekday, n = stamps.hour.to_numpy(), stamps.dayofweek.to_numpy(), len(stamps)
    parts = []
    for number in range(count):
        rng = np.random.default_rng(number)
        angles = 2 * np.pi * (hour / 24 - rng.uniform()) if step == "h" else np.zeros(n)
        day = np.cos(angles) + 0.5 * np.cos(2 * angles + rng.uniform(0, 6))
        week = rng.normal(size=7)[weekday]
        red = lfilter([1.0], [1.0, -rng.uniform(0.7, 0.98)], rng.normal(size=n))
        y = 10 * rng.uniform(1, 5) + rng.uniform(0.5, 2) * day + 0.5 * week + red / red.std()
        parts.append(pd.DataFrame({"series": f"s{number:03d}", "time": stamps, "y": rng.lognormal() * y}))
    return pd.concat(parts, ignore_index=True)


def scores(forecast: pd.DataFrame, later: pd.DataFrame, before: pd.DataFrame, step: str) -> dict[str, float]:
    """Root mean squares of errors, each over the spread of its series, and coverage."""
    both = later.merge(forecast, on=["series", "time"], validate="one_to_one")
    if len(both) != len(later):
        raise SystemExit(f"{len(later) - len(both)} of {len(later)} values have no forecast")
    spread = both["series"].map(before.groupby("series")["y"].std())
    week = before.groupby("series").tail(WEEK[step]).groupby("series")["y"].agg(list)
    place = both.groupby("series").cumcount() % WEEK[step]
    naive = np.array([week[name][at] for name, at in zip(both["series"], place, strict=True)])
    inside = {
        "in 50 %": (both["q0.25"] <= both["y"]) & (both["y"] <= both["q0.75"]),
        "in 95 %": (both["q0.025"] <= both["y"]) & (both["y"] <= both["q0.975"]),
    }
    errors = {"RMSE": both["y"] - both["mean"], "RMSE, naive": both["y"] - naive}
    found = {name: float(np.sqrt(((error / spread) ** 2).mean())) for name, error in errors.items()}
    return found | {name: float(which.mean()) for name, which in inside.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=100, help="how many")
    parser.add_argument("--step", choices=list(AHEAD), default="h", help="values by the hour or by the day")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--write", type=Path, help="a page that gets the result")
    given = parser.parse_args()
    whole = table(given.series, given.step)
    last = whole["time"].drop_duplicates().sort_values().iloc[-AHEAD[given.step] :]
    later, before = whole[whole["time"].isin(last)], whole[~whole["time"].isin(last)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before.to_csv(folder / "table.csv", index=False)
        words = ["forecast", "table.csv", "--series", "series", "--time", "time", "--target", "y"]
        words += ["--horizon", str(AHEAD[given.step]), "--jobs", str(given.jobs), "--out", "out"]
        paths = [str(folder / word) if word in ("table.csv", "out") else word for word in words]
        began = time.perf_counter()
        done, memory = watch([sys.executable, "-m", "compositegp", *paths], LIMIT)
        seconds = time.perf_counter() - began
        if done is None or done.returncode:
            raise SystemExit(f"the command failed: {'over the limit' if done is None else done.stderr[-2000:]}")
        forecast = pd.read_csv(folder / "out" / "forecast.csv", parse_dates=["time"])
    found = scores(forecast, later, before, given.step)
    rows = {"seconds": f"{seconds:.0f}", "MB": f"{memory:.0f}", **{key: f"{one:.3f}" for key, one in found.items()}}
    text = "\n".join(
        [
            f"{header('pandas')}; {given.jobs} processes",
            "",
            f"{given.series} series of {YEARS} years of {IN_WORDS[given.step]}, {len(before):,} values: "
            f"`compositegp {' '.join(words)}`",
            "",
            f"| {' | '.join(rows)} |",
            f"|{'---|' * len(rows)}",
            f"| {' | '.join(rows.values())} |",
        ]
    )
    print(text)
    if given.write is not None:
        printed = f"Printed by `python benchmarks/many_series.py --series {given.series} --step {given.step}"
        printed += f" --jobs {given.jobs}`. RMSE is over the spread of each series."
        given.write.write_text(f"# A hundred series in one command\n\n{printed}\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
