"""How fast the level of forecast bands should forget: past forecasts of each series, without its end that others score.

    pip install 'compositegp[cli,data]'
    python benchmarks/band_level.py                        # five minutes on two cores
    python benchmarks/band_level.py --series bikes "building 1"

The series are those of `benchmarks/forecast.py` with hours and days, without the horizons that it scores. A forecaster
learns from each; its forecasts of the past are then cut in halves. The scale of errors is learned from the first half,
and scored on the second: as it is, and with a level that goes on learning and forgets in 7 to 112 horizons. The gain is
that of the log score, in thousandths of a nat a value.
"""

import argparse
import warnings
from typing import Any

import numpy as np
from forecast_series import Case, cases
from timing import header

from compositegp.forecasting import CompositeGPForecaster, error_scale, series_learning
from compositegp.forecasting.clock import Clock
from compositegp.forecasting.error_scale import ErrorScale, Situation, recent_squares

SPANS = (None, 7.0, 14.0, 28.0, 56.0, 112.0)
LEVELS = (0.5, 0.8, 0.95)
ORIGINS = 60  # horizons that `benchmarks/forecast.py` scores


def past_errors(case: Case) -> dict[str, Any]:
    """Standardized errors (windows, steps) of the forecaster's past forecasts, and when they were made."""
    found: list[dict[str, Any]] = []
    calibrate = series_learning._calibrate

    def noted(task, candidate, forecasts, steps, at, y, overlap):  # type: ignore[no-untyped-def]
        result = calibrate(task, candidate, forecasts, steps, at, y, overlap)
        places = task.grid.first + at.astype(np.float64)
        found.append(
            {
                "z": forecasts.errors / np.sqrt(forecasts.variance),
                "steps": 1.0 + steps.ravel(),
                "clock": Clock.at(task.effects.timeline, places, task.effects.holidays),
                "block": task.block,
                "overlap": overlap,
                "sub_daily": task.rhythm.is_sub_daily,
                "score": float(result[2].log_scores.mean()),
            }
        )
        return result

    scored = case.horizon * case.origins
    forecaster = CompositeGPForecaster(horizon=case.horizon, **case.options)
    series_learning._calibrate = noted  # type: ignore[assignment]
    try:
        forecaster.fit(case.y.iloc[:-scored], None if case.X is None else case.X.iloc[:-scored])
    finally:
        series_learning._calibrate = calibrate
    return max(found, key=lambda one: one["score"])


def scores(past: dict[str, Any]) -> dict[float | None, tuple[float, ...]]:
    """Log score and coverage of the second half of the windows, by the span in which the level forgets."""
    z, overlap = past["z"], past["overlap"]
    known, size = np.isfinite(z), z.shape[1] * overlap
    counts = known.sum(axis=1).astype(np.float64)
    squares = (np.where(known, z, 0.0) ** 2).sum(axis=1) / np.maximum(counts, 1)
    recent = np.repeat(recent_squares(squares, counts, size)[: len(z)], z.shape[1], axis=0)
    window = np.repeat(np.arange(len(z)), z.shape[1])

    def situation(rows: np.ndarray) -> Situation:
        return Situation(past["steps"][rows], past["clock"].take(rows), recent[rows])

    flat, there = z.ravel(), known.ravel()
    first = there & (window < len(z) // 2)
    learned = ErrorScale.learn(
        flat[first],
        situation(first),
        past["block"],
        sub_daily=past["sub_daily"],
        yearly=False,
        limited=False,
        overlap=overlap,
    )
    found: dict[float | None, tuple[float, ...]] = {}
    usual = error_scale._LEVEL_SPAN
    for span in SPANS:
        error_scale._LEVEL_SPAN = usual if span is None else span
        scale = learned if span is None else learned.followed(flat[first], situation(first), window[first], size)
        logs, inside = [], []
        for number in range(len(z) // 2, len(z)):
            rows = there & (window == number)
            own, now = flat[rows], situation(rows)
            factors = scale.factors(now)
            logs.append(scale.family.logpdf(own / factors) - np.log(factors))
            limits = [scale.family.quantile(0.5 + level / 2) for level in LEVELS]
            inside.append(np.abs(own / factors)[:, None] < np.array(limits).ravel())
            if span is not None:
                scale = scale.followed(own, now, window[rows], size)
        found[span] = (float(np.concatenate(logs).mean()), *np.concatenate(inside).mean(axis=0))
    error_scale._LEVEL_SPAN = usual
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", nargs="+")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(header("pandas") + "\n")
    print("| series | windows | level | gain | in 50 % | in 80 % | in 95 % |")
    print("|---|---|---|---|---|---|---|")
    every: dict[float | None, list[tuple[float, ...]]] = {}
    for name, make in cases(ORIGINS).items():
        if arguments.series and name not in arguments.series:
            continue
        case = make()
        if case.kind not in ("hour", "half hour", "day"):
            continue
        past = past_errors(case)
        found = scores(past)
        for span, (score, *covers) in found.items():
            gain = 1000 * (score - found[None][0])
            every.setdefault(span, []).append((gain, *np.abs(np.array(covers) - LEVELS)))
            covered = " | ".join(f"{cover:.3f}" for cover in covers)
            print(f"| {name} | {len(past['z'])} | {told(span)} | {gain:.1f} | {covered} |", flush=True)
    for span, rows in every.items():
        gain, *errors = np.mean(rows, axis=0)
        covered = " | ".join(f"off by {error:.3f}" for error in errors)
        print(f"| **mean of {len(rows)}** | | {told(span)} | {gain:.1f} | {covered} |")


def told(span: float | None) -> str:
    return "stays" if span is None else f"forgets in {span:g}"


if __name__ == "__main__":
    main()
