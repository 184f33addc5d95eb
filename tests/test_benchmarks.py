"""Benchmarks are not run here, but each of their files can be imported, and each script says what it does."""

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "benchmarks"
FILES = {path.stem: path.read_text() for path in sorted(FOLDER.glob("*.py"))}
SCRIPTS = [name for name, text in FILES.items() if '\nif __name__ == "__main__":\n' in text]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
# In one process, so that NumPy, SciPy and the library are imported once. A script that does not stop at --help would
# begin to work: the time limit ends that.
RUN_ALL = """
import contextlib, io, json, runpy, sys, traceback
found = {}
for path in sys.argv[1:]:
    name, printed, sys.argv = path.split("/")[-1][:-3], io.StringIO(), [path, "--help"]
    try:
        with contextlib.redirect_stdout(printed):
            runpy.run_path(path, run_name="__main__")
        found[name] = {"code": None, "text": printed.getvalue()}
    except SystemExit as end:
        found[name] = {"code": end.code, "text": printed.getvalue()}
    except ModuleNotFoundError as error:
        found[name] = {"missing": error.name, "text": traceback.format_exc()}
    except Exception:
        found[name] = {"code": "failed", "text": traceback.format_exc()}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def helped():
    """What every file of the folder does when it is run with --help."""
    command = [sys.executable, "-c", RUN_ALL, *(str(FOLDER / f"{name}.py") for name in FILES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=FOLDER)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", FILES)
def test_a_benchmark_can_be_imported_and_a_script_has_a_help(name, helped):
    found = helped[name]
    if found.get("missing") == "torch":
        pytest.skip("PyTorch is not installed (make torch)")
    assert "missing" not in found, found["text"]
    if name not in SCRIPTS:
        assert found["code"] is None, found["text"]
        return
    assert found["code"] == 0, found["text"]
    first = ast.get_docstring(ast.parse(FILES[name])).splitlines()[0]
    assert first in found["text"]


def test_every_script_says_what_was_measured_where():
    """The machine, the commit and the versions: a table without them cannot be checked."""
    silent = [name for name in SCRIPTS if "header(" not in FILES[name]]
    assert not silent


@pytest.mark.parametrize("name", FILES)
def test_the_extras_that_a_benchmark_names_exist(name):
    named = re.findall(r"compositegp\[([\w,-]+)\]", FILES[name])
    assert {extra for names in named for extra in names.split(",")} <= set(EXTRAS)


@pytest.mark.skipif(shutil.which("git") is None or not (ROOT / ".git").exists(), reason="not a clone")
def test_the_header_names_commit_and_versions():
    code = "import timing; print(timing.header('joblib', 'no-such-library'))"
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=FOLDER
    ).stdout
    name = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.strip()
    assert f"compositegp {name}" in told
    for library in ("numpy", "scipy", "scikit-learn", "joblib"):
        assert f"{library} {metadata.version(library)}" in told
    assert "no-such-library" not in told
    assert re.search(r"\. \d{4}-\d\d-\d\d, ", told)


def test_the_page_has_what_the_model_of_partitions_says():
    command = [sys.executable, "scale.py", "model"]
    told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=FOLDER).stdout
    rows = [line for line in told.splitlines() if line.startswith("|")]
    assert len(rows) > 10
    assert "\n".join(rows) in (ROOT / "docs" / "scale.md").read_text()
