"""Parts of a sum kernel: independent processes that add up to f, and the covariances between them."""

from collections.abc import Iterable

from sklearn.gaussian_process.kernels import Kernel, Product, Sum, WhiteKernel

from compositegp.kernels import OnColumns

WHOLE = ""
"""The name of f itself: all the parts of the kernel, and the mean."""
MEAN = "mean"
"""The name of the mean function as a part."""


def part_names(kernel: Kernel) -> list[str]:
    """Names of the smallest parts of a sum kernel, without its noise; a kernel that is no sum is one part, "kernel".

    A product is multiplied out where a factor is a sum: (A + B) · C has the parts A · C and B · C.

    Parameters
    ----------
    kernel : scikit-learn kernel

    Returns
    -------
    list of str
        For `part`; the mean function, named "mean", is not among them.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, DotProduct
    >>> part_names(RBF(1.0) + 2.0 * (RBF(9.0) + DotProduct()) + WhiteKernel())
    ['k1__k1', 'k1__k2__k2__k1', 'k1__k2__k2__k2']
    """
    names = ["__".join(path) for path in _leaves(kernel)]
    if names == [WHOLE]:
        return [] if _is_noise(kernel) else ["kernel"]
    return [name for name in names if not _is_noise(part_of(kernel, [name]))]


def part_of(kernel: Kernel, names: Iterable[str]) -> Kernel | None:
    """The kernel of the common part of several named parts: the covariance between them; None where it is zero.

    Parameters
    ----------
    kernel : scikit-learn kernel
    names : iterable of str
        As `part` takes them, "mean" excepted; "" is the whole kernel.

    Returns
    -------
    scikit-learn kernel or None

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, DotProduct
    >>> kernel = 2.0 * (RBF(9.0) + DotProduct()) + RBF(1.0)
    >>> part_of(kernel, ["k1__k2__k1"])
    1.41**2 * RBF(length_scale=9)
    >>> part_of(kernel, ["k1", "k2"]) is None
    True
    """
    return _restricted(kernel, [(name, _path(name)) for name in names])


def check_part(kernel: Kernel, name: str) -> None:
    """Check that a kernel has a part of that name; a ValueError says which it has."""
    if name in (WHOLE, MEAN):
        return
    found = part_of(kernel, [name])
    if found is None or _is_noise(found):
        raise ValueError(
            f"part {name!r} of kernel {kernel} is noise of the observations, and not of f. {_which(kernel)}"
        )


def _path(name: str) -> tuple[str, ...]:
    return () if name in (WHOLE, "kernel") else tuple(name.split("__"))


def _restricted(kernel: Kernel, paths: list[tuple[str, tuple[str, ...]]]) -> Kernel | None:
    steps = [(name, path) for name, path in paths if path]
    if not steps:
        return kernel
    if isinstance(kernel, Sum | Product):
        inside: dict[str, list[tuple[str, tuple[str, ...]]]] = {"k1": [], "k2": []}
        for name, (step, *rest) in steps:
            if step not in inside:
                raise _no_part(kernel, name)
            if isinstance(kernel, Product) and not rest:
                raise ValueError(
                    f"part {name!r} is a factor of the product {kernel}, and a factor alone adds nothing to f. "
                    f"{_which(kernel)}"
                )
            inside[step].append((name, tuple(rest)))
        if isinstance(kernel, Product):
            k1, k2 = _restricted(kernel.k1, inside["k1"]), _restricted(kernel.k2, inside["k2"])
            return None if k1 is None or k2 is None else Product(k1, k2)
        if inside["k1"] and inside["k2"]:
            return None
        chosen = "k1" if inside["k1"] else "k2"
        return _restricted(getattr(kernel, chosen), inside[chosen])
    if isinstance(kernel, OnColumns) and all(path[0] == "kernel" for _, path in steps):
        found = _restricted(kernel.kernel, [(name, path[1:]) for name, path in steps])
        return None if found is None else OnColumns(found, kernel.columns)
    raise _no_part(kernel, steps[0][0])


def _no_part(kernel: Kernel, name: str) -> ValueError:
    return ValueError(f"there is no part {name!r} at {kernel}. {_which(kernel)}")


def _which(kernel: Kernel) -> str:
    found = part_names(kernel)
    return f"Its parts are {', '.join(map(repr, [*found, MEAN]))}." if found else "It has no part but noise."


def _leaves(kernel: Kernel) -> list[tuple[str, ...]]:
    if isinstance(kernel, Sum):
        return [(name, *path) for name in ("k1", "k2") for path in _leaves(getattr(kernel, name))]
    if isinstance(kernel, Product):
        # Of two factors that are sums the first is multiplied out: its parts are whole products already.
        for name in ("k1", "k2"):
            inner = _leaves(getattr(kernel, name))
            if len(inner) > 1:
                return [(name, *path) for path in inner]
    if isinstance(kernel, OnColumns):
        inner = _leaves(kernel.kernel)
        return [("kernel", *path) for path in inner] if len(inner) > 1 else [()]
    return [()]


def _is_noise(kernel: Kernel | None) -> bool:
    if kernel is None or isinstance(kernel, WhiteKernel):
        return True
    if isinstance(kernel, OnColumns):
        return _is_noise(kernel.kernel)
    if isinstance(kernel, Product):
        return _is_noise(kernel.k1) or _is_noise(kernel.k2)
    return isinstance(kernel, Sum) and _is_noise(kernel.k1) and _is_noise(kernel.k2)
