"""BLAS threads: one for many small matrices, all for a few large ones."""

import contextlib
import threading
from collections.abc import Iterator
from functools import cache

from threadpoolctl import ThreadpoolController

_LARGE = 1536  # matrices of this size keep several BLAS threads busy; on smaller ones they wait for each other

_lock = threading.Lock()
_owner: int | None = None


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextlib.contextmanager
def blas_threads_for(size: int) -> Iterator[None]:
    """Hold BLAS to one thread while matrices of the given size are worked on, unless they are large.

    NumPy's and SciPy's copies of BLAS each have a pool of threads, which spin for a while after every call;
    on small matrices they cost several times the work itself. The limit is the process's. The first thread to
    ask for it sets it and lifts it again; calls inside that, and in other threads meanwhile, leave it alone.
    """
    global _owner
    with _lock:
        owner = size < _LARGE and _owner is None
        if owner:
            _owner = threading.get_ident()
    if not owner:
        yield
        return
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _owner = None
