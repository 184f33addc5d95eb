"""Warnings that point at the user's line of code, not at a line of this package or of a library that called it."""

import sys
import warnings
from types import FrameType

_LIBRARIES = {"compositegp", "sklearn", "joblib", "contextlib", "functools"}  # whose lines are not a user's
_WORKERS = {"concurrent", "multiprocessing", "threading"}  # below these a worker has no line of a user


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn. The source is the innermost line that is a user's: outside this package, scikit-learn and joblib.

    In a worker process or thread there is none. The source is then the line that called this package.
    """
    frame: FrameType | None = sys._getframe(1)
    level, caller = 2, 0
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package != "compositegp" and not caller:
            caller = level
        if package in _WORKERS or ("joblib" in frame.f_code.co_filename and package == "__main__"):
            level = caller
            break
        if package not in _LIBRARIES:
            break
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
