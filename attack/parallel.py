"""Threads, processes, interrupts: the same bits everywhere, and a failure leaves the model as it was."""

import multiprocessing
import pickle
import signal
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import joblib
import numpy as np

from attack.cases import Budget, Ended, TimeLimit, time_limit
from attack.figures import Figures
from compositegp import CompositeGPRegressor
from compositegp.prediction import CompositeSum, Nearest

_LONGEST = 120.0  # seconds of a check


def parallel(budget: Budget, rows: dict[str, Figures]) -> None:
    """Each check in turn, until the time is over; a quick run has each of the quick ones once."""
    checks = {check.__name__: check for check in _CHECKS}
    quick = budget.most is not None
    for number, rng in budget.cases("parallel"):
        for name in [check.__name__ for check in _QUICK] if quick else [list(checks)[number % len(checks)]]:
            found = _judged(checks[name], rng)
            figures = rows.setdefault("threads, forks, interrupts", Figures())
            figures.add(found.outcome, f"--part parallel --case {number} ({name}): {found.message[:300]}")


def _judged(check: Callable[[np.random.Generator], str], rng: np.random.Generator) -> Ended:
    try:
        with warnings.catch_warnings(), time_limit(_LONGEST):
            warnings.simplefilter("ignore")
            said = check(rng)
    except TimeLimit:
        return Ended("hangs", message="it did not end")
    except Exception as error:
        return Ended("tracebacks", message=f"{type(error).__name__}: {error}")
    return Ended("wrong", message=said) if said else Ended("right")


def _data(rng: np.random.Generator, n: int = 200) -> tuple[Any, Any, Any]:
    X = rng.uniform(0, 8, size=(n, 2))
    return X, np.sin(X).sum(axis=1) + 0.2 * rng.normal(size=n), rng.uniform(0, 8, size=(40, 2))


def _model(rng: np.random.Generator, **options: Any) -> CompositeGPRegressor:
    method: Any = [Nearest(40), CompositeSum(), "rbcm", "fitc"][int(rng.integers(4))]
    return CompositeGPRegressor(prediction=method, segment_size=50, learning="fisher_average", **options)


def _predicted(model: CompositeGPRegressor, Z: Any) -> Any:
    return np.array(model.predict(Z, return_std=True))


def _fitted(model: CompositeGPRegressor, X: Any, y: Any, Z: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _predicted(model.fit(X, y), Z)


def _all_same(found: list[Any], expected: Any) -> str:
    wrong = sum(not np.array_equal(one, expected) for one in found)
    return f"{wrong} of {len(found)} have other bits" if wrong else ""


def fits_in_threads(rng: np.random.Generator) -> str:
    """Four threads fit at the same time."""
    data, models = _data(rng), [_model(np.random.default_rng(9)) for _ in range(5)]
    expected = _fitted(models[0], *data)
    with ThreadPoolExecutor(4) as pool:
        return _all_same(list(pool.map(lambda model: _fitted(model, *data), models[1:])), expected)


def predictions_in_threads(rng: np.random.Generator) -> str:
    """Six threads predict with one model, which prepares itself when it is first asked."""
    X, y, Z = _data(rng)
    model = _model(rng).fit(X, y)
    expected = _predicted(pickle.loads(pickle.dumps(model)), Z)
    with ThreadPoolExecutor(6) as pool:
        return _all_same(list(pool.map(lambda _: _predicted(model, Z), range(6))), expected)


def refit_while_predicting(rng: np.random.Generator) -> str:
    """Predictions while a model is fitted again: each belongs to one of the fits."""
    X, y, Z = _data(rng)
    model = _model(rng)
    fits = [_fitted(model, X, y, Z), _fitted(model, X, -y, Z)]
    found, done = [], threading.Event()

    def predict() -> None:
        while not done.is_set():
            found.append(_predicted(model, Z))

    thread = threading.Thread(target=predict)
    thread.start()
    for sign in (1.0, -1.0, 1.0):
        model.fit(X, sign * y)
    done.set()
    thread.join()
    strange = sum(not any(np.array_equal(one, fit) for fit in fits) for one in found)
    return f"{strange} of {len(found)} predictions belong to no fit" if strange else ""


def several_jobs(rng: np.random.Generator) -> str:
    """Any number of jobs, and any back end of joblib."""
    data, seed = _data(rng), int(rng.integers(1000))
    expected = _fitted(_model(np.random.default_rng(seed)), *data)
    found = [_fitted(_model(np.random.default_rng(seed), n_jobs=2), *data)]
    for backend in ("threading", "multiprocessing"):
        with joblib.parallel_config(backend=backend):
            found.append(_fitted(_model(np.random.default_rng(seed), n_jobs=2), *data))
    return _all_same(found, expected)


def jobs_in_jobs(rng: np.random.Generator) -> str:
    """Fits with several jobs inside jobs."""
    data = _data(rng, 120)
    expected = _fitted(_model(np.random.default_rng(1)), *data)
    inside = joblib.delayed(_fitted)
    found = joblib.Parallel(2)(inside(_model(np.random.default_rng(1), n_jobs=2), *data) for _ in range(3))
    return _all_same(found, expected)


def _in_pool(method: str, rng: np.random.Generator) -> str:
    X, y, Z = _data(rng)
    model = _model(rng).fit(X, y)
    expected = _predicted(model, Z)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        found = list(pool.map(_predicted, [model] * 4, [Z] * 4))
    return _all_same(found, expected)


def forks(rng: np.random.Generator) -> str:
    """Forked processes predict."""
    return _in_pool("fork", rng)


def forks_beside_threads(rng: np.random.Generator) -> str:
    """Forked processes predict while a thread is in linear algebra."""
    done = threading.Event()
    A = rng.normal(size=(300, 300))

    def busy() -> None:
        while not done.is_set():
            np.linalg.svd(A)

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        return _in_pool("fork", rng)
    finally:
        done.set()
        thread.join()


def spawned(rng: np.random.Generator) -> str:
    """Processes that begin with nothing predict with a model that was pickled."""
    return _in_pool("spawn", rng)


def interrupted_fit(rng: np.random.Generator) -> str:
    """Control-C in the middle of a fit leaves the model as it was."""
    X, y, Z = _data(rng, 400)
    model = _model(rng).fit(X[:100], y[:100])
    expected = _predicted(model, Z)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    began = time.monotonic()
    model.fit(X, y)
    lasted = time.monotonic() - began
    model.fit(X[:100], y[:100])
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, max(1e-3, float(rng.uniform(0, lasted))))
    try:
        model.fit(X, y)
    except KeyboardInterrupt:
        pass
    else:
        return ""  # it was quicker
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return _all_same([_predicted(model, Z)], expected)


def refused_segment(rng: np.random.Generator) -> str:
    """A segment that is refused leaves the model as it was."""
    X, y, Z = _data(rng)
    model = CompositeGPRegressor(prediction="composite", segment_size=50, learning="fisher_average").fit(X, y)
    expected = _predicted(model, Z)
    bad: list[tuple[Any, Any]] = [
        (X[:5, :1], y[:5]),
        (X[:5], y[:4]),
        (np.full((5, 2), np.nan), y[:5]),
        (X[:5], np.full(5, np.inf)),
        (X[:5], ["a"] * 5),
    ]
    for points, targets in bad:
        try:
            model.partial_fit(points, targets)
        except ValueError:
            if not np.array_equal(_predicted(model, Z), expected):
                return "a segment that was refused changed the model"
        else:
            return "a segment that is none was taken in"
    return ""


_CHECKS = (
    fits_in_threads,
    predictions_in_threads,
    refit_while_predicting,
    several_jobs,
    jobs_in_jobs,
    forks,
    forks_beside_threads,
    spawned,
    interrupted_fit,
    refused_segment,
)
_QUICK = (fits_in_threads, predictions_in_threads, forks, interrupted_fit, refused_segment)
