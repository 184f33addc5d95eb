"""Nothing heavy is imported unasked. The layers are import-linter contracts in pyproject.toml (`make lint`)."""

import subprocess
import sys

import compositegp


def test_public_names_exist():
    assert all(hasattr(compositegp, name) for name in compositegp.__all__)
    assert compositegp.__all__ == sorted(compositegp.__all__)


def test_optional_packages_are_not_imported():
    heavy = "{'torch', 'matplotlib', 'pandas', 'polars', 'dask'}"
    needed = (
        "import sys, joblib, sklearn.gaussian_process, sklearn.utils.validation"  # which may import some themselves
    )
    ours = "before = set(sys.modules); import compositegp; new = set(sys.modules) - before"
    code = f"{needed}; {ours}; print({heavy} & new or None)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "None\n"
    )
