"""Kernels that can be written to a file of a model, and read again, by the name of their class."""

from typing import TypeVar

from sklearn.gaussian_process import kernels
from sklearn.gaussian_process.kernels import Kernel

from compositegp.kernels.columns import OnColumns

_STORABLE: dict[str, type[Kernel]] = {}
_KernelClass = TypeVar("_KernelClass", bound=type)


def register_storable(kernel_class: _KernelClass) -> _KernelClass:
    """Let models with kernels of a class be saved; usable as a decorator of the class.

    A file holds the name of the class and the arguments in ``kernel.get_params(deep=False)``: numbers, text, arrays
    and other kernels. Loading calls the class with these arguments, so its constructor must do nothing else than keep
    them. The class must be registered, by importing the module that defines it, before a model is loaded.

    Parameters
    ----------
    kernel_class : subclass of scikit-learn's Kernel

    Returns
    -------
    the same class

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> @register_storable
    ... class Smooth(RBF):
    ...     pass
    >>> storable_class("Smooth") is Smooth
    True
    """
    if not (isinstance(kernel_class, type) and issubclass(kernel_class, Kernel)):
        raise ValueError(f"kernel_class must be a subclass of scikit-learn's Kernel; found {kernel_class!r}.")
    name = kernel_class.__name__
    known = _STORABLE.setdefault(name, kernel_class)
    if known is not kernel_class:
        if (known.__module__, known.__qualname__) != (kernel_class.__module__, kernel_class.__qualname__):
            raise ValueError(
                f"a kernel class named {name} is registered already, by module {known.__module__}. Files know kernels "
                "by the name of their class: choose another name."
            )
        _STORABLE[name] = kernel_class  # its module was loaded again
    return kernel_class


def storable_class(name: str) -> type[Kernel]:
    """The class of kernels that is registered under a name.

    Parameters
    ----------
    name : str

    Returns
    -------
    subclass of scikit-learn's Kernel

    Examples
    --------
    >>> storable_class("RBF").__module__
    'sklearn.gaussian_process.kernels'
    """
    if name not in _STORABLE:
        raise ValueError(
            f"kernels of class {name} are not known here: import the module that registers them with "
            "compositegp.kernels.register_storable"
        )
    return _STORABLE[name]


def is_storable(kernel: Kernel) -> bool:
    """Whether the very class of a kernel, not a parent of it, is registered.

    Parameters
    ----------
    kernel : scikit-learn kernel

    Returns
    -------
    bool

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> is_storable(RBF()), is_storable(type("Own", (RBF,), {})())
    (True, False)
    """
    return _STORABLE.get(type(kernel).__name__) is type(kernel)


for _class in (
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
):
    register_storable(_class)
