"""Seasons: which periods a time step suggests, and which of them the data show."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from compositegp.backend import Floats

CANDIDATES = {"day": pd.Timedelta(days=1), "week": pd.Timedelta(days=7), "year": pd.Timedelta(days=365.25)}
_FEWEST_CYCLES = {"day": 4, "week": 4, "year": 2}
_MOST_PHASES = 400
_LEAST_SHARE = 0.01  # of what is left of the variance, that a season has to explain


class Season(NamedTuple):
    """A period of a series.

    Attributes
    ----------
    name : str
    period : float
        In steps.
    share : float
        Of the variance that shorter seasons leave, what the season's profile explains (adjusted for its size).
    """

    name: str
    period: float
    share: float

    @property
    def phases(self) -> int:
        """Levels of the season's profile: one for each step, if there are not too many."""
        return min(round(self.period), _MOST_PHASES)


def find_seasons(places: Floats, values: Floats, step: pd.Timedelta) -> tuple[list[Season], list[str]]:
    """Seasons that the time step suggests and the data show, shortest first, and what was found of each.

    Parameters
    ----------
    places : array of shape (n,)
        Times in steps.
    values : array of shape (n,)
    step : pandas Timedelta

    Returns
    -------
    list of Season, list of str
    """
    found, notes = [], []
    residuals = values - values.mean()
    span = float(places[-1] - places[0] + 1)
    for name, length in CANDIDATES.items():
        period = length / step
        if period < 2:
            continue
        if span < _FEWEST_CYCLES[name] * period:
            notes.append(f"no {name}: what is learned from is shorter than {_FEWEST_CYCLES[name]} of them")
            continue
        season = Season(name, period, 0.0)
        share, left = _explained(places, residuals, season)
        notes.append(f"{name}: explains {max(share, 0.0):.0%} of what is left")
        if share > _LEAST_SHARE:
            found.append(season._replace(share=share))
            residuals = left
    return found, notes


def given_seasons(periods: Any, step: pd.Timedelta) -> list[Season]:
    """Seasons that a user names: "day", "week", "year" or any duration, shortest first."""
    seasons = []
    for period in periods:
        length = CANDIDATES.get(period) if isinstance(period, str) else None
        try:
            length = pd.Timedelta(period) if length is None else length
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"seasons must be 'auto' or a list of 'day', 'week', 'year' or durations such as 12h; found {period!r}."
            ) from error
        if length / step < 2:
            raise ValueError(f"season {period!r} is shorter than two steps of {step}.")
        seasons.append(Season(str(period), length / step, np.nan))
    return sorted(seasons, key=lambda season: season.period)


def _explained(places: Floats, residuals: Floats, season: Season) -> tuple[float, Floats]:
    """Share of variance that a profile explains, adjusted for its number of levels, and what it leaves."""
    phases = season.phases
    phase = np.floor((places / season.period % 1.0) * phases + 1e-6).astype(int) % phases
    counts = np.bincount(phase, minlength=phases)
    levels = np.bincount(phase, residuals, minlength=phases) / np.maximum(counts, 1)
    left = residuals - levels[phase]
    free = len(residuals) - np.count_nonzero(counts)
    total = float(residuals.var())
    if free < 1 or total == 0:
        return 0.0, residuals
    return 1 - float((left**2).sum()) / free / total, left
