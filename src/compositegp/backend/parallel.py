"""Independent tasks: on threads that share the data, or in processes as joblib has them."""

import contextvars
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs

from compositegp.backend.blas_threads import available_threads, blas_threads_for

Task = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function and its arguments."""


def run_tasks(tasks: Iterable[Task], n_jobs: int | None) -> list[Any]:
    """Results of independent tasks, in their order; matrices are worked on by one BLAS thread each.

    Parameters
    ----------
    tasks : iterable of (function, arguments)
        Taken one by one, so that those that wait need no memory.
    n_jobs : int or None
        None: as many threads as BLAS may use, in this process; the work releases the interpreter. 1: this thread.
        Another number: processes (or what joblib is configured for), as in joblib.

    Returns
    -------
    list
    """
    if n_jobs == 1:
        with blas_threads_for(0):
            return [function(*arguments) for function, arguments in tasks]
    if n_jobs is not None or effective_n_jobs(None) != 1:
        with blas_threads_for(0):  # joblib may use threads, which share BLAS with this one
            return list(Parallel(n_jobs=n_jobs)(delayed(function)(*arguments) for function, arguments in tasks))
    threads = available_threads() if threading.current_thread() is threading.main_thread() else 1
    with blas_threads_for(0):
        waiting = enumerate(tasks)
        if threads == 1:
            return [function(*arguments) for _, (function, arguments) in waiting]
        return _on_threads(waiting, threads)


def _on_threads(waiting: Iterator[tuple[int, Task]], threads: int) -> list[Any]:
    results: dict[int, Any] = {}
    errors: list[BaseException] = []
    lock = threading.Lock()

    def work() -> None:
        while not errors:
            with lock:
                number, task = next(waiting, (-1, None))
            if task is None:
                return
            function, arguments = task
            results[number] = function(*arguments)

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # raised again by the caller's thread
            errors.append(error)

    # A copy of the context, so that the device in use and NumPy's error handling are those of the caller.
    others = [threading.Thread(target=contextvars.copy_context().run, args=(guarded,)) for _ in range(threads - 1)]
    for thread in others:
        thread.start()
    try:
        guarded()
    finally:
        for thread in others:
            thread.join()
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(results))]
