"""`tests/lowest.txt`, which `make test-lowest` installs, has the lowest versions that pyproject.toml allows."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TESTED = ("plot", "cli", "spatial", "spatial-files", "calendar", "report", "serve", "sktime", "data", "dask")
NOT_TESTED = {
    "gpu": "an old PyTorch brings gigabytes of libraries for a GPU; its own tests run with the current one",
    "peers": "other libraries, for benchmarks",
    "peers-forecasts": "other libraries, for benchmarks",
    "peers-maps": "other libraries, for benchmarks",
    "docs": "tools",
    "dev": "tools",
}


def requirements(lines):
    return {canonicalize_name(found.name): found for found in map(Requirement, lines)}


@pytest.mark.parametrize("group", ["dependencies", *TESTED])
def test_the_lowest_versions_are_those_that_are_tested(group):
    lines = (ROOT / "tests" / "lowest.txt").read_text().splitlines()
    pinned = requirements(line.partition("#")[0] for line in lines if line.partition("#")[0].strip())
    wanted = PROJECT["dependencies"] if group == "dependencies" else PROJECT["optional-dependencies"][group]
    for name, requirement in requirements(wanted).items():
        if name == "compositegp":  # another extra
            continue
        (bound,) = requirement.specifier
        (exact,) = pinned[name].specifier
        assert (bound.operator, exact.operator) == (">=", "==")
        assert Version(bound.version) == Version(exact.version), name


def test_every_extra_is_tested_at_its_lowest_or_has_a_reason_why_not():
    assert {*TESTED, *NOT_TESTED} == set(PROJECT["optional-dependencies"])
    assert not {*TESTED} & {*NOT_TESTED}
