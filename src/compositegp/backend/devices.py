"""Where the terms are worked on: on the processor by NumPy and LAPACK, or on a device by PyTorch."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from compositegp.backend.arrays import Array, writeable

_COPIES = 24  # matrices of a batch that are alive at once, with room to spare
_MOST_ELEMENTS = 2**27  # of a batch: a gigabyte for each matrix of it fills any device
_FEW_ELEMENTS = 2**17  # of a batch on the processor: what a core's cache holds
_SHARE = 4  # of the free memory that data sent ahead of time may take: one part in so many


@dataclass(frozen=True, eq=False)
class Device:
    """A device that PyTorch knows by a name, such as "cuda", "cuda:1" or "cpu"."""

    name: str
    torch: Any

    def send(self, values: Any) -> Array:
        """An array of the device."""
        return self.torch.asarray(writeable(np.ascontiguousarray(values)), device=self.name)

    @property
    def free_elements(self) -> int:
        """Numbers in double precision that there is memory for."""
        if not self.name.startswith("cuda"):
            return _COPIES * _FEW_ELEMENTS * 8
        free, _ = self.torch.cuda.mem_get_info(self.name)
        unused = self.torch.cuda.memory_reserved(self.name) - self.torch.cuda.memory_allocated(self.name)
        return int(free + unused) // 8

    @property
    def batch_elements(self) -> int:
        """Elements of the matrices of one batch."""
        return max(1, min(_MOST_ELEMENTS, self.free_elements // _COPIES))

    def holds(self, elements: int) -> bool:
        """Whether so many numbers can be kept on the device beside the work."""
        return not self.name.startswith("cuda") or elements <= self.free_elements // _SHARE


_current: ContextVar[Device | None] = ContextVar("device", default=None)


@contextlib.contextmanager
def use_device(name: str | None) -> Iterator[None]:
    """Work on the terms of composites on a device, by PyTorch, as long as this lasts.

    The same code runs in the same double precision, on larger batches. Data are arrays of NumPy before and after.
    `n_jobs` then has no effect on the terms. It holds for the calling thread, not for others that this one starts.

    Parameters
    ----------
    name : str or None
        A device of PyTorch's, such as "cuda"; "cpu" is PyTorch on the processor. None is NumPy, whatever was asked for
        outside.

    Examples
    --------
    >>> with use_device(None):  # or "cuda"
    ...     pass  # posterior(...), learn(...), nearest(...)
    """
    if name is not None and not isinstance(name, str):
        raise ValueError(f'device must be None or the name of a device, such as "cuda"; found {name!r}.')
    token = _current.set(None if name is None else _open(name))
    try:
        yield
    finally:
        _current.reset(token)


def current_device() -> Device | None:
    """The device in use; None for NumPy."""
    return _current.get()


def batch_elements() -> int:
    """Elements of the matrices of one batch, where the terms are worked on now."""
    device = current_device()
    return _FEW_ELEMENTS if device is None else device.batch_elements


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
