"""Values of models as JSON: numbers, text, kernels and means, with arrays kept apart."""

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.kernels import is_storable, storable_class
from compositegp.means import Basis, Constant, Estimated, InUnitsOfData, Linear, PeriodicLevels
from compositegp.storage.objects import class_named, name_of

_MEANS = {kind.__name__: kind for kind in (Constant, Linear, Basis, Estimated, PeriodicLevels, InUnitsOfData)}


def encode(value: Any, name: str, arrays: dict[str, Any]) -> Any:
    """A value as JSON.

    Parameters
    ----------
    value : number, text, array, kernel, mean, or list, tuple or dict of these
    name : str
        For messages, and for the names of arrays.
    arrays : dict
        Arrays are put here, each under its own name.

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
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, Kernel) and is_storable(value):
        return {"kernel": type(value).__name__, "arguments": _fields(value.get_params(deep=False), name, arrays)}
    if type(value) in _MEANS.values():
        return {"mean": type(value).__name__, "arguments": _fields(vars(value), name, arrays)}
    if name_of(value) is not None:
        return {"object": name_of(value), "arguments": _fields(value.get_params(deep=False), name, arrays)}
    if isinstance(value, dict):
        return {"dict": _fields(value, name, arrays)}
    if isinstance(value, tuple | list):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [encode(item, f"{name}.{position}", arrays) for position, item in enumerate(value)]}
    array = None if callable(value) or isinstance(value, Kernel) else np.asarray(value)
    if array is not None and array.dtype.kind == "O" and all(isinstance(item, str) for item in array.ravel()):
        return {"strings": array.tolist()}
    if array is not None and array.dtype.kind in "biufU":
        arrays[name] = array
        return {"array": name}
    raise ValueError(
        f"{name} is {value!r:.80}, which save does not write: it would need code to be read again. Use pickle, or "
        "kernels of scikit-learn or of a class that compositegp.kernels.register_storable knows, named means "
        "('constant', 'linear') and a number as random_state."
    )


def _fields(values: dict[str, Any], name: str, arrays: dict[str, Any]) -> dict[str, Any]:
    return {key: encode(value, f"{name}.{key}", arrays) for key, value in values.items()}


def decode(value: Any, arrays: dict[str, Any]) -> Any:
    """The value that `encode` was given.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> arrays = {}
    >>> decode(encode(RBF([1.0, 2.0]), "kernel", arrays), arrays)
    RBF(length_scale=[1, 2])
    """
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "strings" in value:
        return np.array(value["strings"], dtype=object)
    if "list" in value:
        return [decode(item, arrays) for item in value["list"]]
    if "tuple" in value:
        return tuple(decode(item, arrays) for item in value["tuple"])
    if "dict" in value:
        return {key: decode(item, arrays) for key, item in value["dict"].items()}
    arguments = {key: decode(item, arrays) for key, item in value["arguments"].items()}
    if "object" in value:
        return class_named(value["object"])(**arguments)
    return (storable_class(value["kernel"]) if "kernel" in value else _MEANS[value["mean"]])(**arguments)
