"""Parameters as JSON, kernels included, with arrays kept aside."""

from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels
from sklearn.gaussian_process.kernels import Kernel

from compositegp.kernels import OnColumns
from compositegp.means import Basis, Constant, Estimated, Linear, PeriodicLevels

_KERNELS: dict[str, type[Kernel]] = {
    kind.__name__: kind
    for kind in (
        kernels.ConstantKernel,
        kernels.WhiteKernel,
        kernels.RBF,
        kernels.Matern,
        kernels.RationalQuadratic,
        kernels.ExpSineSquared,
        kernels.DotProduct,
        kernels.PairwiseKernel,
        kernels.Sum,
        kernels.Product,
        kernels.Exponentiation,
        OnColumns,
    )
}
_MEANS = {kind.__name__: kind for kind in (Constant, Linear, Basis, Estimated, PeriodicLevels)}


def encode(value: Any, name: str, arrays: dict[str, Any]) -> Any:
    """A value as JSON; arrays go into `arrays` under a name of their own."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, Kernel) and _KERNELS.get(type(value).__name__) is type(value):
        return {"kernel": type(value).__name__, "arguments": _fields(value.get_params(deep=False), name, arrays)}
    if type(value) in _MEANS.values():
        return {"mean": type(value).__name__, "arguments": _fields(vars(value), name, arrays)}
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
        "kernels of scikit-learn, named means ('constant', 'linear') and a number as random_state."
    )


def _fields(values: dict[str, Any], name: str, arrays: dict[str, Any]) -> dict[str, Any]:
    return {key: encode(value, f"{name}.{key}", arrays) for key, value in values.items()}


def decode(value: Any, arrays: dict[str, Any]) -> Any:
    """The value that `encode` was given."""
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
    return (_KERNELS[value["kernel"]] if "kernel" in value else _MEANS[value["mean"]])(**arguments)
