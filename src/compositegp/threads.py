"""BLAS threads: one for many small matrices, all for a few large ones."""

import contextlib
import threading
from collections.abc import Iterator
from functools import cache

from threadpoolctl import ThreadpoolController

_LARGE = 1536  # matrices of this size keep several BLAS threads busy; on smaller ones they wait for each other

_lock = threading.Lock()
_depth = 0
_limiter: contextlib.AbstractContextManager[object] | None = None


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextlib.contextmanager
def blas_threads_for(size: int) -> Iterator[None]:
    """Hold BLAS to one thread while matrices of the given size are worked on, unless they are large.

    NumPy's and SciPy's copies of BLAS each have a pool of threads, which spin for a while after every call;
    on small matrices they cost several times the work itself. The limit is the process's: it is lifted
    when the last of the threads that hold it leaves.
    """
    global _depth, _limiter
    if size >= _LARGE:
        yield
        return
    with _lock:
        if _depth == 0:
            _limiter = _controller().limit(limits=1, user_api="blas")
            _limiter.__enter__()
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0 and _limiter is not None:
                _limiter.__exit__(None, None, None)
                _limiter = None
