"""Seasons: periods of a series by their names."""

from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd

CANDIDATES = {"day": pd.Timedelta(days=1), "week": pd.Timedelta(days=7), "year": pd.Timedelta(days=365.25)}
_MOST_PHASES = 400  # levels of a profile


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


def given_seasons(periods: Iterable[str | pd.Timedelta], step: pd.Timedelta) -> list[Season]:
    """Seasons that a user names: "day", "week", "year" or any duration, shortest first.

    Parameters
    ----------
    periods : list of str or pandas Timedelta
    step : pandas Timedelta
        Time that passes in a step on average.

    Returns
    -------
    list of Season

    Examples
    --------
    >>> given_seasons(["week", "12h"], pd.Timedelta(hours=1))
    [Season(name='12h', period=12.0), Season(name='week', period=168.0)]
    """
    seasons = []
    for period in dict.fromkeys(periods):
        length = CANDIDATES.get(period) if isinstance(period, str) else None
        try:
            length = pd.Timedelta(period) if length is None else length
        except (ValueError, TypeError) as error:
            raise ValueError(
                "seasons must be 'auto' or a list of 'day', 'week', 'year' or durations such as 12h (--season on the "
                f"command line); found {period!r}."
            ) from error
        if length / step < 2:
            raise ValueError(f"season {period!r} is shorter than two steps of {step}.")
        seasons.append(Season(str(period), length / step))
    return sorted(seasons, key=lambda season: season.period)
