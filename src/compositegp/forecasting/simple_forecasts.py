"""Simple forecasts to compare with: the value a season ago, and a decomposition continued."""

from collections.abc import Mapping

import numpy as np

from compositegp.backend import Floats
from compositegp.forecasting.decomposition import continue_decomposition
from compositegp.forecasting.forecaster import CompositeGPForecaster
from compositegp.forecasting.grid import Rhythm, on_grid
from compositegp.forecasting.observations import Observed
from compositegp.forecasting.rolling_forecasts import Made
from compositegp.forecasting.seasons import given_seasons

_FEWEST_PERIODS, _MOST_PERIODS = 2, 8  # that a seasonal naive forecast needs, and looks back over
_LONGEST_YEAR = 100  # steps of a year whose values are what a seasonal naive forecast takes


def simple_forecasts(forecaster: CompositeGPForecaster, seen: Observed, made: Made) -> dict[str, Floats]:
    """Forecasts of the values in a horizon by their names; those that a series is too short for are left out.

    Their seasons are those that were given, or else those that the time step suggests, whatever the model keeps.

    Parameters
    ----------
    forecaster : CompositeGPForecaster
    seen : Observed
    made : Made

    Returns
    -------
    dict of arrays of shape (m,)
    """
    timeline = made.model.timeline_
    if isinstance(forecaster.seasons, str):  # "auto"
        periods: Mapping[str, float] = Rhythm.of(timeline).patterns
    else:
        periods = {season.name: season.period for season in given_seasons(forecaster.seasons, timeline.mean_step)}
    wanted = made.places[made.now]
    found = {"persistence": np.full(len(wanted), seen.values[made.places < made.start][-1])}
    known = made.start - made.places[0]
    fitting = [
        period
        for name, period in periods.items()
        if _FEWEST_PERIODS * period <= known and (name != "year" or period < _LONGEST_YEAR)
    ]
    if fitting:
        found["seasonal naive"] = _a_season_ago(made.places, seen.values, wanted, made.start, max(fitting))
    grid, _ = on_grid(seen.take(made.places < made.start - 0.5), timeline, forecaster.history)
    steps = np.round(wanted).astype(np.int64) - (grid.first + len(grid.values) - 1)
    continued = continue_decomposition(grid.values, list(periods.values()), steps)
    return found if continued is None else found | {"decomposition": continued}


def _a_season_ago(places: Floats, values: Floats, wanted: Floats, start: float, period: float) -> Floats:
    """The latest observed value a whole number of periods before each time, among those before the origin."""
    known = dict(zip(np.round(places[places < start]), values[places < start], strict=True))
    found = np.full(len(wanted), np.nan)
    for row, place in enumerate(wanted):
        for cycles in range(1, 1 + _MOST_PERIODS):
            value = known.get(
                np.round(place - np.ceil((place - start + 1) / period) * period - (cycles - 1) * period)
            )
            if value is not None:
                found[row] = value
                break
    return found
