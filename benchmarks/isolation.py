"""A command in a process of its own: its result, its time limit and the peak memory of it and all that it started."""

import os
import resource
import signal
import subprocess
import time
from pathlib import Path


def watch(command: list[str], limit: float) -> tuple[subprocess.CompletedProcess[str] | None, float]:
    """Run a command; return it when it is done, or None past the limit, and the peak memory of it and its children."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    began, peak = time.perf_counter(), 0.0
    while process.poll() is None:
        peak = max(peak, family_memory(process.pid))
        if time.perf_counter() - began > limit:
            os.killpg(process.pid, signal.SIGKILL)  # with all that it started
            process.communicate()
            return None, peak
        time.sleep(0.5)
    out, err = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, out, err), peak


def family_memory(ancestor: int) -> float:
    """Memory in MB, each shared page counted once, of a process and all that it started; 0 where /proc is not there."""
    parents, total = {}, 0.0
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(status.parent.name)] = int(status.read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError):
            continue
    family, growing = {ancestor}, True
    while growing:
        more = {pid for pid, parent in parents.items() if parent in family} - family
        family |= more
        growing = bool(more)
    for pid in family:
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")) / 1024
    return total


def limit_memory(gigabytes: float) -> None:
    """Let allocations of this process fail beyond a size, rather than the machine."""
    size = int(gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
