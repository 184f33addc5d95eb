"""Times in text: which day, month and year a cell means; a cell that can be read two ways is an error."""

import re
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from compositegp.cli.output import CommandError
from compositegp.cli.tables import column, has_times, is_empty

_OFFSET = re.compile(r":\d\d(?:\.\d+)?\s*(?:Z|[+-]\d\d(?::?\d\d)?)$")
_YEAR = re.compile(r"(?<!\d)\d{4}(?!\d)|^\d{8}(?:T?\d{4,6})?(?:\D|$)")
_YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})(?!\d)(.*)", re.DOTALL)
_YEAR_FIRST = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?!\d)(.*)", re.DOTALL)
_SHORT_HOUR = re.compile(r"[T,\s]+(\d)(?=:\d\d)")
_HALF_DAY = re.compile(r"(\d{1,2})(:\d\d(?::\d\d(?:\.\d+)?)?)\s*([ap])\.?m\b\.?", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?\d*\.?\d+(?:[eE][+-]?\d+)?")
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d(?!\d)")
_MONTH = re.compile(r"(?<![a-z])(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b", re.IGNORECASE)
_DATE_LIKE = re.compile(
    r"\d{4}([-/.])\d{1,2}\1\d{1,2}(?!\d)|\d{1,2}([-/.])\d{1,2}\2\d{4}(?!\d)|\d{1,2}/\d{1,2}/\d\d(?!\d)"
    r"|\d{1,2}:\d{2}(?!\d)|\d{8}T\d{4,6}"
)


@dataclass(frozen=True)
class TimeFormat:
    """How times are written.

    Attributes
    ----------
    pattern : str, optional
        As in strptime, such as "%d.%m.%y %H:%M". None is ISO 8601, or another way that has one meaning.
    day_first : bool, optional
        Whether the day stands before the month in dates such as 01/02/2024. None: it must follow from the dates.

    Examples
    --------
    >>> TimeFormat(day_first=True).read("1/2/2024 8:30")
    Timestamp('2024-02-01 08:30:00')
    >>> TimeFormat().read("1/2/2024")
    Traceback (most recent call last):
    ValueError: '1/2/2024' can be read two ways: give --dayfirst, --monthfirst or --time-format
    """

    pattern: str | None = None
    day_first: bool | None = None

    def read(self, text: str) -> pd.Timestamp:
        """Read one time; a ValueError says why it cannot be read."""
        text = text.strip()
        if not text:
            raise ValueError("it has no time")
        try:
            if self.pattern is not None:
                stamp = pd.to_datetime(text, format=self.pattern)
            else:
                stamp = _parse(self._in_iso_order(text))
        except _UnclearTimeError as error:
            raise ValueError(str(error)) from error
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(f"{text[:60]!r} is not a time") from error
        if stamp is pd.NaT:
            raise ValueError("it has no time")
        return stamp

    def found_in(self, text: pd.Series, name: str, path: str | Path) -> "TimeFormat":
        """The format with the order of day and month that follows from all times of a column."""
        if self.pattern is not None or self.day_first is not None:
            return self
        dates = text.str.extract(_YEAR_LAST)
        known = dates[0].notna()
        if not known.any():
            return self
        if not known.all():
            other = text[~known].iloc[0]
            raise CommandError(
                f"column {name!r} of {path} has times in several formats, such as {text[known].iloc[0]!r} and "
                f"{other!r}. Write all of them as 2024-01-31 14:00."
            )
        first, second = dates[0].astype(int), dates[2].astype(int)
        if (first > 12).any() and not (second > 12).any():
            return replace(self, day_first=True)
        if (second > 12).any() and not (first > 12).any():
            return replace(self, day_first=False)
        if (first > 12).any():
            cells = f"{text[first > 12].iloc[0]!r} and {text[second > 12].iloc[0]!r}"
            raise CommandError(f"column {name!r} of {path} has the day before and after the month: {cells}.")
        raise CommandError(
            f"column {name!r} of {path} has dates that can be read two ways, such as {text.iloc[0]!r}. Give "
            "--dayfirst, --monthfirst or --time-format."
        )

    def read_column(self, text: pd.Series, utc: bool, name: str, path: str | Path) -> pd.DatetimeIndex:
        """Read the times of a column; an error names the first cell that is not one."""
        try:
            if self.pattern is not None:
                return pd.DatetimeIndex(pd.to_datetime(text, format=self.pattern, utc=utc))
            return _parse_all(text.map(self._in_iso_order), utc)
        except (ValueError, TypeError, OverflowError) as error:
            for row, cell in enumerate(text):
                try:
                    self.read(cell)
                except ValueError as reason:
                    raise CommandError(
                        f"column {name!r} of {path} has values that are not times: {reason}, in row "
                        f"{text.index[row] + 1}.{_hint(self)}"
                    ) from error
            raise CommandError(
                f"the times in column {name!r} of {path} have no common format.{_hint(self)}"
            ) from error

    def _in_iso_order(self, text: str) -> str:
        """The text of a time with its date as year-month-day."""
        found = _YEAR_LAST.match(text)
        if found is not None:
            if self.day_first is None:
                raise _UnclearTimeError(
                    f"{text[:60]!r} can be read two ways: give --dayfirst, --monthfirst or --time-format"
                )
            first, _, second, year, rest = found.groups()
            day, month = (first, second) if self.day_first else (second, first)
        else:
            found = _YEAR_FIRST.match(text)
            if found is None:
                if _YEAR.search(text) is None and any(map(str.isdigit, text)):
                    raise _UnclearTimeError(f"{text[:60]!r} is a time without a year of four digits")
                return text
            year, _, month, day, rest = found.groups()
        return (
            f"{year}-{month:0>2}-{day:0>2}{_SHORT_HOUR.sub(_with_zero, _HALF_DAY.sub(_of_24_hours, rest), count=1)}"
        )


ANY_FORMAT = TimeFormat()  # ISO 8601, or any way that has one meaning


def time_column(
    table: pd.DataFrame, name: str, path: str | Path, time_format: TimeFormat
) -> tuple[pd.DatetimeIndex, TimeFormat]:
    """One column as time stamps, and how they are written: in UTC if they have a time zone; an empty cell is NaT."""
    values = column(table, name, path)
    if has_times(values):
        return pd.DatetimeIndex(values), time_format
    text = values.astype("string").str.strip()
    known = ~is_empty(text)
    if not known.any():
        raise CommandError(f"column {name!r} of {path} has no times: every cell is empty.")
    text = text[known].astype(object)
    if time_format.pattern is None and text.map(lambda cell: _NUMBER.fullmatch(cell) is not None).all():
        raise CommandError(
            f"column {name!r} of {path} has numbers where times should be. Write times as 2024-01-31 14:00, or give "
            "--time-format."
        )
    if time_format.pattern is None:
        has_zone = text.str.contains(_OFFSET) & (text.str.len() > 10)
        if has_zone.any() and not has_zone.all():
            raise CommandError(
                f"column {name!r} of {path} mixes times with and without a time zone. Give all of them one, or none."
            )
        utc = bool(has_zone.any())
    else:
        utc = "%z" in time_format.pattern
    time_format = time_format.found_in(text, name, path)
    stamps = pd.Series(time_format.read_column(text, utc, name, path), index=text.index)
    return pd.DatetimeIndex(stamps.reindex(values.index)), time_format


def looks_like_times(values: pd.Series) -> bool:
    """Whether most cells of a column of text are dates, times of day or both."""
    cells = values[~is_empty(values)].astype(str).str.strip()
    return bool(len(cells)) and bool(cells.map(_is_date_or_time).mean() > 0.5)


def _is_date_or_time(text: str) -> bool:
    is_named = text[-1:].isdigit() and _MONTH.search(text) is not None and _YEAR.search(text) is not None
    return is_named or _DATE_LIKE.match(text) is not None


class _UnclearTimeError(ValueError):
    """A time that can be read in several ways; the message says why."""


def _of_24_hours(clock: re.Match[str]) -> str:
    """A time of day, such as 1:05 PM, as 13:05; one that there is not stays as it is."""
    hour = int(clock[1])
    if not 1 <= hour <= 12:
        return clock[0]
    return f"{hour % 12 + 12 * (clock[3].lower() == 'p'):02d}{clock[2]}"


def _with_zero(hour: re.Match[str]) -> str:
    return f" 0{hour[1]}"


def _hint(time_format: TimeFormat) -> str:
    if time_format.pattern is not None:
        return f" They were read by --time-format {time_format.pattern!r}."
    return " Write times as 2024-01-31 14:00, or give --time-format."


def _parse(text: str) -> pd.Timestamp:
    if not any(map(str.isdigit, text)):  # pandas knows "now" and "today"
        raise ValueError
    try:
        return pd.to_datetime(text, format="ISO8601")
    except ValueError:
        if not _has_whole_date(text):
            raise
        return pd.to_datetime(text, format="mixed")


def _parse_all(text: pd.Series, utc: bool) -> pd.DatetimeIndex:
    """Times in ISO 8601 or, failing that, in a format that pandas guesses; their dates have one meaning already."""
    if not text.str.contains(r"\d").all():  # pandas knows "now" and "today"
        raise ValueError
    try:
        return pd.DatetimeIndex(pd.to_datetime(text, utc=utc, format="ISO8601"))
    except (ValueError, TypeError):
        if not text.map(_has_whole_date).all():
            raise
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # pandas warns where it finds no common format
            return pd.DatetimeIndex(pd.to_datetime(text, utc=utc))
    except (ValueError, TypeError, UserWarning):
        return pd.DatetimeIndex(pd.to_datetime(text, utc=utc, format="mixed"))


def _has_whole_date(text: str) -> bool:
    """Whether a text has year, month and day, or the name of a month with a year, so that nothing is left to guess."""
    return _ISO_DATE.match(text) is not None or (_MONTH.search(text) is not None and _YEAR.search(text) is not None)
