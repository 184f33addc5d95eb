"""Timing shared by the benchmarks."""

import os
import platform
import time
from collections.abc import Callable


def best(function: Callable[[], object], repeats: int = 5) -> float:
    """Seconds of the fastest of several calls."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def machine() -> str:
    """The machine, in words."""
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as info:
            name = next(line.split(":")[1].strip() for line in info if line.startswith("model name"))
    except OSError:
        pass
    return f"{name}, {os.cpu_count()} core(s), Python {platform.python_version()}"
