"""BLAS threads: one for many small matrices, all for a few large ones."""

import contextlib
import threading
from collections.abc import Iterator
from functools import cache
from typing import Any

import threadpoolctl
from threadpoolctl import ThreadpoolController

_LARGE = 1536  # matrices of this size keep several BLAS threads busy; on smaller ones they wait for each other

_lock = threading.Lock()
_holders = 0
_limit: Any = None


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextlib.contextmanager
def blas_threads_for(size: int) -> Iterator[None]:
    """Hold BLAS to one thread while matrices of the given size are worked on, unless they are large.

    NumPy's and SciPy's copies of BLAS each have a pool of threads, which spin for a while after every call;
    on small matrices they cost several times the work itself. The limit is the process's: the first to ask for it sets
    it, and the last of those who did, in whatever thread, lifts it.

    A size of zero is for results that have to be the same to the last bit in every process and thread.
    """
    global _holders, _limit
    if size >= _LARGE:
        yield
        return
    with _lock:
        if not _holders:
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
    """Let a thread set OpenBLAS's threads that was not the first to do so, which threadpoolctl else keeps from it."""
    clear = getattr(getattr(threadpoolctl, "OpenBLASController", None), "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)
