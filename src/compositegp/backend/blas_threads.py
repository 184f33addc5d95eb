"""BLAS threads: one for many small matrices, all for a few large ones."""

import contextlib
import os
import threading
from collections.abc import Iterator
from functools import cache
from typing import Any

import threadpoolctl
from threadpoolctl import ThreadpoolController

_LARGE = 1536  # size from which a matrix keeps several BLAS threads busy; on smaller ones they wait for each other

_lock = threading.Lock()
_holders = 0
_limit: Any = None
_allowed = 1  # threads that BLAS had before it was held to one


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def available_threads() -> int:
    """Threads that BLAS may use where nothing holds it to one: those of the machine, unless a user allows fewer."""
    with _lock:
        return _allowed if _holders else _set_for_blas()


def _set_for_blas() -> int:
    found = [library.num_threads for library in _controller().lib_controllers if library.user_api == "blas"]
    return max(
        1, min(max(found, default=1), len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)
    )


@contextlib.contextmanager
def blas_threads_for(size: int) -> Iterator[None]:
    """Hold BLAS to one thread while matrices of the given size are worked on, unless they are large.

    NumPy and SciPy each have their own copy of BLAS with a pool of threads, which keep running for a while after every
    call. On small matrices this costs several times the work itself. The limit holds for the whole process. The first
    caller sets it, and the last caller to leave removes it, from any thread.

    A size of zero is for results that must be the same to the last bit in every process and thread.
    """
    global _holders, _limit, _allowed
    if size >= _LARGE:
        yield
        return
    with _lock:
        if not _holders:
            _allowed = _set_for_blas()
            _let_any_thread_set_it()
            _limit = _controller().limit(limits=1, user_api="blas")
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if not _holders:
                _let_any_thread_set_it()
                _limit.restore_original_limits()
                _let_any_thread_set_it()
                _limit = None


def _let_any_thread_set_it() -> None:
    """Let any thread set the number of OpenBLAS threads: threadpoolctl otherwise allows only the first that did."""
    clear = getattr(getattr(threadpoolctl, "OpenBLASController", None), "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)
