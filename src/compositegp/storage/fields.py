"""Named values of a file, each taken by a rule: its kind, its shape, and whether it is finite."""

from collections.abc import Collection
from typing import Any

import numpy as np

from compositegp.backend import Floats, Indices
from compositegp.validation import are_finite, is_real


class Fields:
    """Values under their names, as they were read from a file. A ValueError says which is not what it should be.

    Parameters
    ----------
    values : dict
    names : collection of str
        The names that have to be there.
    optional : collection of str
        Further names that may be there. All others are refused.

    Examples
    --------
    >>> fields = Fields({"X": np.zeros((3, 2)), "size": -1}, ["X", "size"])
    >>> fields.reals("X", None, 2).shape
    (3, 2)
    >>> fields.count("size")
    Traceback (most recent call last):
    ValueError: size must be a whole number of at least 0; found -1
    """

    def __init__(self, values: Any, names: Collection[str], optional: Collection[str] = ()) -> None:
        if not isinstance(values, dict):
            raise ValueError(f"values by their names were expected; found {_described(values)}")
        missing = [name for name in names if name not in values]
        if missing:
            raise ValueError(f"{missing[0]} is missing")
        unknown = [name for name in values if name not in names and name not in optional]
        if unknown:
            raise ValueError(f"{unknown[0]!r:.80} is no name that it can have")
        self._values = values

    def __getitem__(self, name: str) -> Any:
        """The value as it is; None if it is not there."""
        return self._values.get(name)

    def number(self, name: str, *, least: float = -np.inf, above: float = -np.inf, infinite: bool = False) -> float:
        """A real number, not NaN."""
        value = self[name]
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value[()]
        if not is_real(value) or not value >= least or (value <= above and above > -np.inf):
            raise ValueError(f"{name} must be a number in its range; found {_described(value)}")
        if not are_finite(value) and not (infinite and value in (np.inf, -np.inf)):
            raise ValueError(f"{name} must be finite; found {_described(value)}")
        return float(value)

    def count(self, name: str, *, least: int = 0) -> int:
        """A whole number."""
        value = self[name]
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value < 2**63:
            raise ValueError(f"{name} must be a whole number of at least {least}; found {_described(value)}")
        return int(value)

    def truth(self, name: str) -> bool:
        """True or False."""
        value = self[name]
        if not isinstance(value, bool) and not (
            isinstance(value, np.ndarray) and value.dtype == bool and not value.ndim
        ):
            raise ValueError(f"{name} must be true or false; found {_described(value)}")
        return bool(value)

    def text(self, name: str) -> str:
        """Text."""
        if not isinstance(self[name], str):
            raise ValueError(f"{name} must be text; found {_described(self[name])}")
        return str(self[name])

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        value = self[name]
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ValueError(f"{name} must be a list of texts; found {_described(value)}")
        return value

    def dictionary(self, name: str) -> dict[str, Any]:
        """Values by their names."""
        if not isinstance(self[name], dict):
            raise ValueError(f"{name} must be values by their names; found {_described(self[name])}")
        return dict(self[name])

    def reals(self, name: str, *shape: int | None, infinite: bool = False) -> Floats:
        """An array of real numbers, finite, of a shape of which None is any length."""
        array = self._array(name, "biuf", shape).astype(np.float64, copy=False)
        if np.isnan(array).any() or not (infinite or np.isfinite(array).all()):
            raise ValueError(f"{name} has values that are not finite")
        return np.asarray(array)  # in the order of the file: another order of its memory would round otherwise

    def wholes(self, name: str, *shape: int | None) -> Indices:
        """An array of whole numbers of at least zero."""
        array = self._array(name, "iu", shape)
        if array.size and array.min() < 0:
            raise ValueError(f"{name} has the negative number {array.min()}")
        return np.asarray(array, dtype=np.intp)

    def _array(self, name: str, kinds: str, shape: tuple[int | None, ...]) -> Any:
        array = self[name]
        if not isinstance(array, np.ndarray) or array.dtype.kind not in kinds:
            raise ValueError(f"{name} must be an array of numbers; found {_described(array)}")
        fits = array.ndim == len(shape) and all(
            wanted is None or wanted == found for wanted, found in zip(shape, array.shape, strict=True)
        )
        if not fits:
            wanted = ", ".join("any" if length is None else str(length) for length in shape)
            raise ValueError(f"{name} must have the shape ({wanted}); found {array.shape}")
        return array


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and type {value.dtype}"
    return f"{value!r:.60}" if isinstance(value, str | int | float | None) else type(value).__name__
