"""Values of models as JSON: numbers, text, kernels and means, with arrays kept apart."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.kernels import check_arguments, is_storable, storable_class
from compositegp.means import (
    Basis,
    Constant,
    Estimated,
    InUnitsOfData,
    Linear,
    LinearIn,
    PeriodicLevels,
    check_mean_values,
)
from compositegp.storage.objects import class_named, name_of

_MEANS = {
    kind.__name__: kind for kind in (Constant, Linear, LinearIn, Basis, Estimated, PeriodicLevels, InUnitsOfData)
}
_DEEPEST = 200  # values inside values; a sum of kernels is as deep as it has parts
_WITH_ARGUMENTS = ("kernel", "mean", "object")
_PLAIN = (bool, int, float, str, type(None))


def encode(value: Any, name: str, arrays: dict[str, Any], *, depth: int = 0) -> Any:
    """A value as JSON.

    Parameters
    ----------
    value : number, text, array, kernel, mean, or list, tuple or dict of these
    name : str
        For messages, and for the names of arrays.
    arrays : dict
        Arrays are put here, each under its own name.
    depth : int
        Values that this one is inside of.

    Returns
    -------
    JSON value

    Examples
    --------
    >>> arrays = {}
    >>> encode({"X": np.zeros(3), "size": 2}, "state", arrays)
    {'dict': {'X': {'array': 'state.X'}, 'size': 2}}
    >>> list(arrays)
    ['state.X']
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    if depth >= _DEEPEST:
        raise ValueError(f"{name:.80} … is nested too deeply to be saved: at most {_DEEPEST} levels. Use pickle.")

    def fields(values: dict[str, Any]) -> dict[str, Any]:
        return {key: encode(item, f"{name}.{key}", arrays, depth=depth + 1) for key, item in values.items()}

    if isinstance(value, Kernel) and is_storable(value):
        return {"kernel": type(value).__name__, "arguments": fields(value.get_params(deep=False))}
    if type(value) in _MEANS.values():
        return {"mean": type(value).__name__, "arguments": fields(vars(value))}
    if name_of(value) is not None:
        return {"object": name_of(value), "arguments": fields(value.get_params(deep=False))}
    if isinstance(value, dict):
        return {"dict": fields(value)}
    if isinstance(value, tuple | list):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: list(fields({str(position): item for position, item in enumerate(value)}).values())}
    array = None if callable(value) or isinstance(value, Kernel) else np.asarray(value)
    if (
        array is not None
        and array.dtype.kind == "O"
        and array.ndim == 1
        and all(isinstance(item, str) for item in array)
    ):
        return {"strings": array.tolist()}
    if array is not None and array.dtype.kind in "biufU":
        arrays[name] = array
        return {"array": name}
    raise ValueError(
        f"{name} is {value!r:.80}, which save does not write: it would need code to be read again. Use pickle, or "
        "kernels of scikit-learn or of a class that compositegp.kernels.register_storable knows, named means "
        "('constant', 'linear') and a number as random_state."
    )


def decode(value: Any, array: Callable[[str], Any], *, depth: int = 0) -> Any:
    """The value that `encode` was given; a ValueError where that cannot be.

    Kernels, means and objects are made by their classes, which must be known here, and checked by their rules.

    Parameters
    ----------
    value : JSON value
    array : callable
        Gives the array of a name.
    depth : int
        Values that this one is inside of.

    Returns
    -------
    value

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> arrays = {}
    >>> decode(encode(RBF([1.0, 2.0]), "kernel", arrays), arrays.get)
    RBF(length_scale=[1, 2])
    """
    if isinstance(value, _PLAIN):
        return value
    if depth > _DEEPEST:
        raise ValueError(f"its values are nested more than {_DEEPEST} levels deep")
    if not isinstance(value, dict):
        raise ValueError("a list has no kind")

    def parts(items: Any, kind: type) -> Any:
        if not isinstance(items, kind):
            raise ValueError(f"a {kind.__name__} was expected, and {type(items).__name__} found")
        return items

    def fields(items: Any) -> dict[str, Any]:
        return {key: decode(item, array, depth=depth + 1) for key, item in parts(items, dict).items()}

    tag = next((name for name in _WITH_ARGUMENTS if value.keys() == {name, "arguments"}), None)
    if tag is not None:
        return _MAKERS[tag](parts(value[tag], str), fields(value["arguments"]))
    if value.keys() == {"array"}:
        return array(parts(value["array"], str))
    if value.keys() == {"strings"}:
        if not all(isinstance(item, str) for item in parts(value["strings"], list)):
            raise ValueError("a list of texts has something else in it")
        return np.array(value["strings"], dtype=object)
    if value.keys() in ({"list"}, {"tuple"}):
        ((kind, items),) = value.items()
        found = [decode(item, array, depth=depth + 1) for item in parts(items, list)]
        return found if kind == "list" else tuple(found)
    if value.keys() == {"dict"}:
        return fields(value["dict"])
    raise ValueError(f"a value has the unknown kind {', '.join(sorted(value))[:80]!r}")


def _make_kernel(name: str, arguments: dict[str, Any]) -> Kernel:
    kernel = storable_class(name)(**arguments)
    check_arguments(kernel)
    return kernel


def _make_mean(name: str, arguments: dict[str, Any]) -> Any:
    if name not in _MEANS:
        raise ValueError(f"means of class {name[:80]!r} are not known here")
    mean = _MEANS[name](**arguments)
    check_mean_values(mean)
    return mean


def _make_object(name: str, arguments: dict[str, Any]) -> Any:
    made = class_named(name)(**arguments)
    if hasattr(made, "check"):
        made.check()
    return made


_MAKERS: dict[str, Callable[[str, dict[str, Any]], Any]] = {
    "kernel": _make_kernel,
    "mean": _make_mean,
    "object": _make_object,
}
