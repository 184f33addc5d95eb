"""Seasons: the periods that fit a time step, and those of them that the data show."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd

from compositegp.backend import Floats
from compositegp.means import phase_of

CANDIDATES = {"day": pd.Timedelta(days=1), "week": pd.Timedelta(days=7), "year": pd.Timedelta(days=365.25)}
_FEWEST_CYCLES = {"day": 4, "week": 4, "year": 2}  # a season is looked for in a history of at least these
_MOST_PHASES = 400  # levels of a profile
_LEAST_SHARE = 0.01  # a season has to explain this part of the remaining variance


class Season(NamedTuple):
    """A period of a series.

    Attributes
    ----------
    name : str
    period : float
        In steps.

    Examples
    --------
    >>> Season("week", 168.0).phases
    168
    """

    name: str
    period: float

    @property
    def phases(self) -> int:
        """Number of levels of the season's profile: one for each step, but at most 400."""
        return min(round(self.period), _MOST_PHASES)


def find_seasons(places: Floats, values: Floats, step: pd.Timedelta) -> tuple[list[Season], list[str]]:
    """Seasons that fit the time step and that the data show, shortest first, and a note about each that was tried.

    Parameters
    ----------
    places : array of shape (n,)
        Times in steps.
    values : array of shape (n,)
    step : pandas Timedelta

    Returns
    -------
    list of Season, list of str

    Examples
    --------
    >>> hours = np.arange(240.0)
    >>> seasons, notes = find_seasons(hours, np.sin(2 * np.pi * hours / 24), pd.Timedelta(hours=1))
    >>> [season.name for season in seasons], notes[0]
    (['day'], 'day: explains 100% of the remaining variance')
    """
    found, notes = [], []
    residuals = values - values.mean()
    span = float(places[-1] - places[0] + 1)
    for name, length in CANDIDATES.items():
        period = length / step
        if period < 2:
            continue
        if span < _FEWEST_CYCLES[name] * period:
            notes.append(f"no {name} pattern: the history is shorter than {_FEWEST_CYCLES[name]} {name}s")
            continue
        season = Season(name, period)
        share, remaining = _explained(places, residuals, season)
        notes.append(f"{name}: explains {max(share, 0.0):.0%} of the remaining variance")
        if share > _LEAST_SHARE:
            found.append(season)
            residuals = remaining
    return found, notes


def given_seasons(periods: Iterable[str | pd.Timedelta], step: pd.Timedelta) -> list[Season]:
    """Seasons that a user names: "day", "week", "year" or any duration, shortest first.

    Parameters
    ----------
    periods : list of str or pandas Timedelta
    step : pandas Timedelta

    Returns
    -------
    list of Season

    Examples
    --------
    >>> given_seasons(["week", "12h"], pd.Timedelta(hours=1))
    [Season(name='12h', period=12.0), Season(name='week', period=168.0)]
    """
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
        seasons.append(Season(str(period), length / step))
    return sorted(seasons, key=lambda season: season.period)


def _explained(places: Floats, residuals: Floats, season: Season) -> tuple[float, Floats]:
    """Share of variance that a profile explains, adjusted for its number of levels, and the residuals from it."""
    phase = phase_of(places, season.period, season.phases)
    counts = np.bincount(phase, minlength=season.phases)
    levels = np.bincount(phase, residuals, minlength=season.phases) / np.maximum(counts, 1)
    remaining = residuals - levels[phase]
    freedom = len(residuals) - np.count_nonzero(counts)
    total = float(residuals.var())
    if freedom < 1 or total == 0:
        return 0.0, residuals
    return 1 - float((remaining**2).sum()) / freedom / total, remaining
