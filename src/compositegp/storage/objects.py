"""Objects that may be written to a file: the name and the parameters of a class that is registered as safe."""

from typing import Any, TypeVar

_CLASSES: dict[str, type[Any]] = {}
_Class = TypeVar("_Class", bound=type[Any])


def storable(kind: _Class) -> _Class:
    """Let objects of a class be written to files and read again: a decorator for classes that have get_params.

    Only the name of the class and its parameters are written. Reading calls the class with those parameters, and then
    its method ``check``, if it has one, which raises a ValueError for parameters that it does not allow.

    Parameters
    ----------
    kind : class

    Returns
    -------
    the same class

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> @storable
    ... class Own(BaseEstimator):
    ...     def __init__(self, power=2.0):
    ...         self.power = power
    >>> name_of(Own())
    'Own'
    """
    _CLASSES[kind.__name__] = kind
    return kind


def name_of(value: Any) -> str | None:
    """The name under which an object may be written; None if its class is not storable."""
    name = type(value).__name__
    return name if _CLASSES.get(name) is type(value) else None


def class_named(name: str) -> type[Any]:
    """The storable class of that name; a ValueError if there is none."""
    if name not in _CLASSES:
        raise ValueError(f"objects of class {name[:80]!r} are not known here: import the module that defines them")
    return _CLASSES[name]
