"""Where terms are computed: on the processor by NumPy and LAPACK, or on a device by PyTorch."""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from compositegp.backend.arrays import Array, writeable

_COPIES = 24  # arrays of the size of a batch that must fit into the memory of a device at the same time
_MOST_ELEMENTS = 2**28  # largest batch on a device, in matrix elements: 2 GiB keeps any device busy
_FEW_ELEMENTS = 2**19  # the same on the processor, 4 MiB: with smaller batches threads wait for each other
_FEW_OF_TORCH = 2**20  # the same by PyTorch on the processor
_SHARE = 4  # data stay on a device if they take at most 1/4 of its free memory


@dataclass(frozen=True, eq=False)
class Device:
    """A device that PyTorch knows by a name, such as "cuda", "cuda:1" or "cpu"."""

    name: str
    torch: Any

    def send(self, values: ArrayLike) -> Array:
        """Copy an array to the device."""
        return self.torch.asarray(writeable(np.ascontiguousarray(values)), device=self.name)

    @property
    def free_elements(self) -> int:
        """How many double-precision numbers fit into the free memory."""
        if not self.name.startswith("cuda"):
            return _COPIES * _FEW_OF_TORCH
        free, _ = self.torch.cuda.mem_get_info(self.name)
        unused = self.torch.cuda.memory_reserved(self.name) - self.torch.cuda.memory_allocated(self.name)
        return int(free + unused) // 8

    @property
    def batch_elements(self) -> int:
        """Largest number of matrix elements of one batch."""
        return max(1, min(_MOST_ELEMENTS, self.free_elements // _COPIES))

    def is_full(self, error: RuntimeError) -> bool:
        """Whether an error says that the memory has run out."""
        return isinstance(error, self.torch.OutOfMemoryError)

    def holds(self, elements: int) -> bool:
        """Whether this many numbers can stay on the device while terms are computed."""
        return not self.name.startswith("cuda") or elements <= self.free_elements // _SHARE


_current: ContextVar[Device | None] = ContextVar("device", default=None)


@contextlib.contextmanager
def use_device(name: str | None) -> Iterator[None]:
    """Compute the terms of composites on a device, by PyTorch, inside a ``with`` block.

    The same code runs in the same double precision, on larger batches. Inputs and results are NumPy arrays. `n_jobs`
    has no effect on terms that are computed on a device. The choice holds for the calling thread, not for threads that
    it starts.

    Parameters
    ----------
    name : str or None
        Name of a PyTorch device, such as "cuda"; "cpu" is PyTorch on the processor. None is NumPy, also inside the
        block of another device.

    Returns
    -------
    context manager

    Examples
    --------
    >>> from compositegp import nearest
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> with use_device(None):  # or "cuda"
    ...     found = nearest(RBF(), [[0.0], [1.0]], [1.0, 2.0], [[1.0]])
    >>> found.mean
    array([2.])
    """
    if name is not None and not isinstance(name, str):
        raise ValueError(f'device must be None or the name of a device, such as "cuda"; found {name!r}.')
    token = _current.set(None if name is None else _open(name))
    try:
        yield
    finally:
        _current.reset(token)


@contextlib.contextmanager
def on_processor(what: str) -> Iterator[None]:
    """Work on the processor what has no form for a device; a ValueError, and not silence, where a device is in use."""
    device = current_device()
    if device is not None and not device.name.startswith("cpu"):
        raise ValueError(
            f"{what} works on the processor, and device={device.name!r} is in use. Write `with use_device(None):` "
            "around it, or leave the device out."
        )
    with use_device(None):
        yield


def current_device() -> Device | None:
    """The device in use; None for NumPy."""
    return _current.get()


def batch_elements() -> int:
    """Largest number of matrix elements of one batch on the device in use."""
    device = current_device()
    return _FEW_ELEMENTS if device is None else device.batch_elements


T = TypeVar("T")


def in_batches(count: int, elements_each: int, work: Callable[[slice], T]) -> list[T]:
    """Results of work on slices of range(count), each a batch with a bounded number of matrix elements.

    A batch that does not fit into the memory of a device is tried again in halves, and so are those after it.
    """
    return list(each_batch(count, elements_each, work))


def each_batch(count: int, elements_each: int, work: Callable[[slice], T]) -> Iterator[T]:
    """The same one by one, so that only one result is in memory."""
    step, start = max(1, batch_elements() // max(1, elements_each)), 0
    while start < count:
        stop = min(start + step, count)
        try:
            found = work(slice(start, stop))
        except RuntimeError as error:
            device = current_device()
            if device is None or stop - start == 1 or not device.is_full(error):
                raise
            device.torch.cuda.empty_cache()
            step = (stop - start) // 2
            continue
        yield found
        start = stop


@cache
def _open(name: str) -> Device:
    try:
        import torch
    except ImportError as error:
        raise ImportError(f"device={name!r} needs PyTorch. pip install 'compositegp[gpu]'.") from error
    try:
        torch.linalg.cholesky(torch.eye(2, dtype=torch.float64, device=name)).sum().item()
    except (RuntimeError, TypeError, AssertionError, NotImplementedError) as error:
        raise ValueError(
            f"device={name!r} cannot be used in double precision by PyTorch {torch.__version__} here "
            f"({str(error).splitlines()[0]}). Name a device that it sees, install a build of PyTorch for it, or leave "
            "device out to work on the processor."
        ) from error
    return Device(name, torch)
