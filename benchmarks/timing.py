"""Shared by the benchmarks: timing, --help, and the line that says what was measured, where and when."""

import argparse
import os
import platform
import subprocess
import time
from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import compositegp

ROOT = Path(__file__).resolve().parent.parent
ALWAYS = ("numpy", "scipy", "scikit-learn")  # libraries whose versions every benchmark depends on


def best(function: Callable[[], object], repeats: int = 5) -> float:
    """Seconds of the fastest of several calls."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def no_options(text: str | None) -> None:
    """Answer --help of a script without options by the text at its top, and refuse all other words."""
    argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()


def header(*libraries: str) -> str:
    """The machine, the day, the commit, and the versions of the libraries that take part and are installed here."""
    parts = [time.strftime("%Y-%m-%d"), f"compositegp {commit()}"]
    for name in (*ALWAYS, *libraries):
        try:
            parts.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return f"{machine()}. {', '.join(parts)}"


def machine() -> str:
    """The machine, in words."""
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as info:
            name = next(line.split(":")[1].strip() for line in info if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{name}, {os.cpu_count()} core(s), Python {platform.python_version()}"


def commit() -> str:
    """The short name of the library's commit; "+ changes" where the library or a benchmark differs from it."""
    unknown = f"{compositegp.__version__}, of no known commit"
    spec = find_spec("compositegp")
    if spec is None or spec.origin is None or not Path(spec.origin).resolve().is_relative_to(ROOT / "src"):
        return unknown  # another copy than the one beside the benchmarks
    try:
        if Path(_git("rev-parse", "--show-toplevel")).resolve() != ROOT:
            return unknown  # a copy inside another repository
        changed = _git("status", "--porcelain", "--", "src", "benchmarks/*.py")
        return _git("rev-parse", "--short", "HEAD") + " + changes" * bool(changed)
    except (OSError, subprocess.CalledProcessError):  # no Git, or not a clone
        return unknown


def _git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()
