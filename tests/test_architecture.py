"""Nothing heavy is imported unasked. The layers are import-linter contracts in pyproject.toml (`make lint`)."""

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
import tomllib
from pathlib import Path

import compositegp


def test_public_names_exist():
    assert all(hasattr(compositegp, name) for name in compositegp.__all__)
    assert compositegp.__all__ == sorted(compositegp.__all__)


def test_optional_packages_are_not_imported():
    heavy = "{'torch', 'matplotlib', 'pandas', 'polars', 'dask', 'scoringrules'}"
    needed = (
        "import sys, joblib, sklearn.gaussian_process, sklearn.utils.validation"  # which may import some themselves
    )
    ours = (
        "before = set(sys.modules); from compositegp import CompositeGPRegressor; new = set(sys.modules) - before"
    )
    code = f"{needed}; {ours}; print({heavy} & new or None)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "None\n"
    )


def test_no_module_is_named_like_what_its_package_exports():
    for package in pkgutil.walk_packages(compositegp.__path__, "compositegp."):
        if package.ispkg:
            module = importlib.import_module(package.name)
            siblings = {info.name for info in pkgutil.iter_modules(module.__path__)}
            hidden = siblings & {
                name for name in getattr(module, "__all__", []) if not inspect.ismodule(getattr(module, name))
            }
            assert not hidden, f"{package.name} exports {hidden}, which hide modules of the same name"


def test_every_package_has_a_contract_that_protects_its_inside():
    """The contracts themselves are checked by import-linter, which sees every kind of import."""
    settings = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    protected = {module for contract in contracts for module in contract.get("protected_modules", [])}
    packages = {info.name for info in pkgutil.iter_modules(compositegp.__path__) if info.ispkg}
    assert protected == {f"compositegp.{name}.*" for name in packages}


def test_private_names_stay_in_their_package():
    source = Path(compositegp.__file__).parent
    for path in source.rglob("*.py"):
        package = path.relative_to(source).parts[0]
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("compositegp."):
                foreign = node.module.split(".")[1] != package
                assert not (foreign and any(alias.name.startswith("_") for alias in node.names)), path


def test_the_regressor_has_at_most_13_parameters():
    assert len(compositegp.CompositeGPRegressor().get_params(deep=False)) <= 13


def test_absolute_tolerances_of_tests_stand_alone_or_beside_a_relative_one_that_is_written():
    """NumPy adds a relative tolerance of 1e-7 to an absolute one, unless a test says which."""
    for path in Path(__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "assert_allclose":
                given = {keyword.arg for keyword in node.keywords}
                assert "atol" not in given or "rtol" in given, f"{path.name}, line {node.lineno}: write rtol too"
