"""Forecasts that could have been made in the past: a model that has seen only what came before each."""

import copy
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone

from compositegp.backend import Booleans, Floats
from compositegp.forecasting.forecaster import CompositeGPForecaster
from compositegp.forecasting.observations import Observed
from compositegp.forecasting.timeline import Horizon
from compositegp.predictive import PredictiveDistribution
from compositegp.validation import check_count

_FEWEST_HORIZONS, _FEWEST_OBSERVATIONS = 2, 20  # a model is learned from at least these
_SHORT, _MOST_REFITS = 1_000, 12  # values of a series that is learned anew, and how often at most


class Made(NamedTuple):
    """A forecast of the past, and the model that made it.

    Attributes
    ----------
    model : CompositeGPForecaster
    found : PredictiveDistribution
        Of the values that were observed in the horizon.
    places : array of shape (n,)
        Times of all observations, in steps.
    now : boolean array of shape (n,)
        Which of them are in the horizon.
    start : float
        The first step of the horizon.
    """

    model: CompositeGPForecaster
    found: PredictiveDistribution
    places: Floats
    now: Booleans
    start: float


def rolling_forecasts(
    forecaster: CompositeGPForecaster,
    seen: Observed,
    horizon: Horizon,
    n_origins: int,
    refit_every: int | str | None,
    report: Callable[[int, int], None],
    *,
    fitted: bool = False,
) -> Iterator[Made]:
    """Forecasts of the last horizons; the model has not yet taken in what it forecasts."""
    if isinstance(refit_every, str) and refit_every != "auto":
        raise ValueError(f"refit_every must be a number of horizons, 'auto' or None; found {refit_every!r}.")
    if refit_every is not None and not isinstance(refit_every, str):
        check_count(refit_every, "refit_every")
    before = rows_before(forecaster, seen, horizon, n_origins)
    if isinstance(refit_every, str):
        refit_every = -(-n_origins // _MOST_REFITS) if before.sum() <= _SHORT and not fitted else None
    if fitted:
        model = copy.copy(forecaster)
    else:
        model = clone(forecaster).set_params(horizon=horizon)
        model.fit(seen.take(before))
    steps, places, starts = _origins(forecaster, seen, horizon, n_origins)
    for number, start in enumerate(starts):
        now = (places >= start - 0.5) & (places < start + steps - 0.5)
        if refit_every and number and number % refit_every == 0:
            model.fit(seen.take(places < start - 0.5))
        if now.any():
            extra = pd.DataFrame(seen.extra[now], columns=seen.columns) if seen.columns else None
            found = model.predict_distribution(seen.times[now], extra, joint=False)
            yield Made(model, found, places, now, float(start))
            if forecaster.target_transform == "auto" and not model.takes(seen.values[now]):
                # The scale was chosen when there were no such values: it is chosen anew, as a user would.
                model.fit(seen.take(places < start + steps - 0.5))
            else:
                model.update(seen.take(now), late="skip", max_gap=pd.Timedelta.max)
        report(number + 1, n_origins)


def rows_before(forecaster: CompositeGPForecaster, seen: Observed, horizon: Horizon, n_origins: int) -> Booleans:
    """Which observations are before the last horizons of a series: those that a backtest learns from.

    Parameters
    ----------
    forecaster : CompositeGPForecaster
    seen : Observed
    horizon : int, str or Timedelta
    n_origins : int
        Number of horizons.

    Returns
    -------
    boolean array of shape (n,)
    """
    check_count(n_origins, "n_origins")
    steps, places, starts = _origins(forecaster, seen, horizon, n_origins)
    before = places < starts[0] - 0.5
    if before.sum() < min(max(_FEWEST_HORIZONS * steps, _FEWEST_OBSERVATIONS), 8 * steps):
        raise ValueError(
            f"a backtest of {n_origins} horizon(s) leaves {int(before.sum())} observation(s) to learn from, too few. "
            "Ask for fewer, or a shorter horizon."
        )
    return np.asarray(before)


def _origins(
    forecaster: CompositeGPForecaster, seen: Observed, horizon: Horizon, n_origins: int
) -> tuple[int, Floats, Floats]:
    """Steps of a horizon, times of the observations in steps, and the first step of each horizon."""
    timeline = forecaster.timeline_of(seen)
    steps, places = timeline.steps(horizon), timeline.places(seen.stamps)
    return steps, places, np.floor(places[-1] + 1e-6) + 1 - steps * np.arange(n_origins, 0, -1)
