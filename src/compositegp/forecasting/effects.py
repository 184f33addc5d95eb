"""What repeats or is explained: effects of the clock and of further columns, as a mean of basis functions.

An effect is a Gaussian process on its own columns: level and trend in time, a profile of the day, one for each type of
day, a yearly cycle whose daily profile changes with the season, a smooth function of a column that changes with the
hour. Each is written by finitely many basis functions φ with φ(x)·φ(x′) ≈ k(x, x′) (Nyström), so that its coefficients
have independent standard normal priors and are learned from all of the history.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from compositegp.backend import Floats
from compositegp.forecasting.clock import Clock
from compositegp.forecasting.grid import history_names
from compositegp.forecasting.timeline import Timeline

_FINE, _COARSE = (24, 0.35), (12, 0.8)  # knots in a day, and length scale of profiles and of interactions
_KNOTS = 10  # of a smooth function of a column
KERNEL_PARTS = ("short memory", "medium memory", "long memory", "damped trend", "noise")  # besides patterns
_STANDARD = "standard "  # before the kind of an effect: on a clock without daylight saving
_SMALLEST = 0.01  # functions of a smaller variance are left out, over the largest


@dataclass(frozen=True, eq=False)
class Effect:
    """One effect: its kind, and the numbers that its basis functions need.

    Attributes
    ----------
    name : str
        As it is shown to a user.
    kind : {"level", "trend", "day", "week", "year", "cycle", "column", "standard day", "standard week"}
        The last two are those of a clock without daylight saving.
    column : int
        Of the points; for a column only.
    numbers : array
        ``trend``: center and span; ``week`` and ``standard week``: 1 if there are several values a day; ``year``:
        number of harmonics; ``cycle``: steps of a period; ``column``: knots, in the unit of the column.
    by_hour : bool
        Whether it differs by the hour of day.
    spread : float
        Prior standard deviation, over that of the series.
    average : array of shape (q,)
        ``column``: means of its basis functions before the hour of day comes in, which stand for a missing value; with
        none, zeros do.
    """

    name: str
    kind: str
    column: int = 0
    numbers: Any = ()
    by_hour: bool = False
    spread: float = 1.0
    average: Any = ()

    @classmethod
    def of_column(cls, name: str, column: int, values: Floats, by_hour: bool) -> "Effect":
        """A smooth function of a column with some values, at least one of which is known."""
        known, knots = values[np.isfinite(values)], column_knots(values)
        return cls(name, "column", column, knots, by_hour, average=_smooth(known, knots).mean(axis=0))

    @property
    def season(self) -> str | None:
        """Whose profile it is, on whatever clock: "day", "week", "year" or "cycle"; None if it has none."""
        kind = self.kind.removeprefix(_STANDARD)
        return kind if kind in ("day", "week", "year", "cycle") else None

    def in_standard_time(self) -> "Effect":
        """The same on a clock without daylight saving, if it is an effect of the hour and of the day of the week."""
        return replace(self, kind=_STANDARD + self.kind) if self.kind in ("day", "week") else self

    def functions(self, points: Floats, clock: Clock) -> Floats:
        """Basis functions of points (n, 1 + k), of shape (n, q)."""
        found = _KINDS[self.kind](self, points, clock)
        if self.by_hour:
            found = products(found, _periodic(clock.day, *_COARSE))
        return np.asarray(self.spread * found)


@dataclass(frozen=True, eq=False)
class Effects:
    """Basis functions of all the effects: a function of points (time in steps, further columns).

    Attributes
    ----------
    effects : list of Effect
    timeline : Timeline
    holidays : array of datetime64[D]
    """

    effects: list[Effect]
    timeline: Timeline
    holidays: Any

    def __call__(self, points: Floats) -> Floats:
        """Basis functions of points (n, 1 + k), of shape (n, q)."""
        clock = Clock.at(self.timeline, points[:, 0], self.holidays)
        return np.hstack([effect.functions(points, clock) for effect in self.effects])

    @property
    def columns(self) -> dict[str, slice]:
        """Which basis functions belong to which effect, by its name."""
        probe = np.zeros((1, 1 + max((effect.column for effect in self.effects), default=0)))
        clock = Clock.at(self.timeline, probe[:, 0], self.holidays)
        found, start = {}, 0
        for effect in self.effects:
            width = effect.functions(probe, clock).shape[1]
            found[effect.name] = slice(start, start + width)
            start += width
        return found

    def __post_init__(self) -> None:
        names = [effect.name for effect in self.effects]
        if len(set(names)) < len(names):
            raise ValueError(f"effects must have different names; found {names}")
        object.__setattr__(self, "holidays", np.asarray(self.holidays).astype("datetime64[D]"))


def column_labels(columns: Sequence[str], taken: Iterable[str] = ()) -> list[str]:
    """Names of the effects of further columns: their own, or another where that is the name of something else.

    Parameters
    ----------
    columns : sequence of str
        All different.
    taken : iterable of str
        Names of other effects, besides those of the clock, and of parts of the kernel.

    Returns
    -------
    list of str

    Examples
    --------
    >>> column_labels(["heat", "week"])
    ['heat', 'column week']
    """
    known = {*_KINDS, *taken}
    found = []
    for name in columns:
        label = name
        while known & {label, *history_names(label)}:
            label = f"column {label}"
        known |= {label, *history_names(label)}
        found.append(label)
    return found


def column_knots(values: Floats) -> Floats:
    """Knots of a smooth function of a column: evenly from its 0.5 % to its 99.5 % quantile, or its two values."""
    known = values[np.isfinite(values)]
    different = np.unique(known)
    if len(different) <= _KNOTS:
        return different
    low, high = np.quantile(known, [0.005, 0.995])
    return np.linspace(low, high, _KNOTS) if high > low else different[[0, -1]]


def column_width(knots: Floats) -> int:
    """Number of basis functions of a smooth function of a column with some knots."""
    return int(_smooth(np.zeros(1), knots).shape[1])


def products(a: Floats, b: Floats) -> Floats:
    """All products of the basis functions (n, p) and (n, q): shape (n, p q)."""
    return np.asarray((a[:, :, None] * b[:, None, :]).reshape(len(a), -1))


def _level(effect: Effect, points: Floats, clock: Clock) -> Floats:
    return np.ones((len(points), 1))


def _trend(effect: Effect, points: Floats, clock: Clock) -> Floats:
    center, span = effect.numbers
    return np.asarray((points[:, :1] - center) / span)


def _day(effect: Effect, points: Floats, clock: Clock) -> Floats:
    return _periodic(clock.day, *_FINE)


def _week(effect: Effect, points: Floats, clock: Clock) -> Floats:
    """One profile for each weekday, and one for holidays, as deviations from the profile of all days."""
    types = np.eye(8)[np.where(clock.is_holiday, 7, clock.weekday)]
    if not effect.numbers[0]:  # the series has less than two values a day
        return types
    return products(types, _periodic(clock.day, *_FINE))


def _standard_day(effect: Effect, points: Floats, clock: Clock) -> Floats:
    return _day(effect, points, clock.in_standard_time())


def _standard_week(effect: Effect, points: Floats, clock: Clock) -> Floats:
    return _week(effect, points, clock.in_standard_time())


def _year(effect: Effect, points: Floats, clock: Clock) -> Floats:
    count = int(effect.numbers[0])
    angles = 2 * np.pi * clock.year[:, None] * np.arange(1, 1 + count)
    return np.hstack([np.cos(angles), np.sin(angles)]) / np.tile(np.arange(1, 1 + count), 2)


def _cycle(effect: Effect, points: Floats, clock: Clock) -> Floats:
    return _periodic(points[:, 0] / effect.numbers[0] % 1.0, *_FINE)


def _column(effect: Effect, points: Floats, clock: Clock) -> Floats:
    """A smooth function of a column; its average over the values that it was made from, where the column is missing."""
    values = points[:, effect.column]
    missing = ~np.isfinite(values)
    found = _smooth(np.where(missing, 0.0, values), np.asarray(effect.numbers, dtype=np.float64))
    found[missing] = effect.average if len(effect.average) else 0.0
    return found


def _smooth(values: Floats, knots: Floats) -> Floats:
    """Basis functions of a smooth function with some knots, of values (n,); of two knots a straight line."""
    if len(knots) <= 2:
        low, high = knots[0], knots[-1]
        return np.asarray(((values - low) / (high - low if high > low else 1.0) - 0.5)[:, None])
    spacing = 2.5 * (knots[-1] - knots[0]) / (len(knots) - 1)
    x = np.clip(values, knots[0] - spacing, knots[-1] + spacing)
    root = _root(np.exp(-0.5 * ((knots[:, None] - knots) / spacing) ** 2))
    return np.asarray(np.exp(-0.5 * ((x[:, None] - knots) / spacing) ** 2) @ root)


def _periodic(phase: Floats, knots: int, length: float) -> Floats:
    """Basis functions of a periodic kernel of a phase from 0 to 1: shape (n, at most knots)."""
    places = np.arange(knots) / knots
    inner = np.exp(-2 * np.sin(np.pi * (places[:, None] - places)) ** 2 / length**2)
    outer = np.exp(-2 * np.sin(np.pi * (phase[:, None] - places)) ** 2 / length**2)
    return np.asarray(outer @ _root(inner))


def _root(matrix: Floats) -> Floats:
    """R with R Rᵀ ≈ matrix⁻¹."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > _SMALLEST * values[-1]
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


_KINDS = {
    "level": _level,
    "trend": _trend,
    "day": _day,
    "week": _week,
    "standard day": _standard_day,
    "standard week": _standard_week,
    "year": _year,
    "cycle": _cycle,
    "column": _column,
}
