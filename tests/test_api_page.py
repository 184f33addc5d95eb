"""`docs/api.rst` lists what is public: all of some packages, a part of others, and whatever the documentation uses."""

import ast
import importlib
import inspect
import pkgutil
import re

from test_docs import PAGES, ROOT, blocks_of

import compositegp

PAGE = (ROOT / "docs" / "api.rst").read_text()
LISTED = re.findall(r"^   ([\w.]+)$", PAGE, re.MULTILINE)
WHOLE, PARTLY, NOT_PUBLIC = (
    set(re.findall(r"``(\w+)``", item)) for item in re.findall(r"^- .*\n(?:  .*\n)*", PAGE, re.MULTILINE)
)
HOOKS = compositegp.PredictionMethod, compositegp.Predictor  # their methods are for the library, not for users


def resolve(name):
    return pkgutil.resolve_name(f"compositegp.{name}")


PUBLIC = [resolve(name) for name in LISTED]


def test_every_package_is_said_to_be_public_in_whole_in_part_or_not():
    groups = (WHOLE, PARTLY, NOT_PUBLIC)
    packages = {info.name for info in pkgutil.iter_modules(compositegp.__path__)} - {"__main__"} | {"compositegp"}
    assert set().union(*groups) == packages
    assert sum(map(len, groups)) == len(packages)


def test_public_packages_are_listed_whole():
    for package in WHOLE:
        module = compositegp if package == "compositegp" else resolve(package)
        exported = {name for name in module.__all__ if not inspect.ismodule(getattr(module, name))}
        prefix = "" if package == "compositegp" else f"{package}."
        missing = {name for name in exported if not {prefix + name, name} & set(LISTED)}
        assert not missing, package


def test_listed_names_are_exported_once_and_from_packages_that_are_public():
    assert len(LISTED) == len(set(LISTED))
    assert len({id(thing) for thing in PUBLIC}) == len(PUBLIC)
    for name in LISTED:
        package, _, last = name.rpartition(".")
        module = importlib.import_module(f"compositegp.{package}") if package else compositegp
        assert last in module.__all__, name
        assert (package.partition(".")[0] or "compositegp") in WHOLE | PARTLY, name


def test_what_the_documentation_imports_is_listed():
    codes = [block.text for page in PAGES for block in blocks_of(page) if block.language == "python"]
    codes += [path.read_text() for path in sorted((ROOT / "docs" / "gallery").glob("*.py"))]
    for node in (node for code in codes for node in ast.walk(ast.parse(code))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("compositegp"):
            for alias in node.names:
                found = pkgutil.resolve_name(f"{node.module}.{alias.name}")
                assert inspect.ismodule(found) or is_public(found), f"{node.module}.{alias.name}"


def is_public(thing):
    return any(thing is public for public in PUBLIC)


def test_what_public_functions_and_methods_return_is_listed():
    classes = {}
    for info in pkgutil.walk_packages(compositegp.__path__, "compositegp."):
        if not info.name.endswith(("__main__", "fused_kernels")):
            module = importlib.import_module(info.name)
            classes |= {
                (info.name, name): kind for name, kind in inspect.getmembers(module, inspect.isclass) if ours(kind)
            }
    for thing in PUBLIC:
        for function in functions_of(thing):
            for name in re.findall(r"\b[A-Z]\w+", returned(function)):
                kind = classes.get((function.__module__, name))
                assert kind is None or is_public(kind), f"{function.__qualname__} returns {name}"


def ours(thing):
    return (getattr(thing, "__module__", None) or "").startswith("compositegp")


def functions_of(thing):
    """A function, or the public methods and properties of a class."""
    if inspect.isclass(thing) and not issubclass(thing, HOOKS):
        members = [member for name, member in inspect.getmembers_static(thing) if not name.startswith("_")]
        functions = [getattr(member, "fget", getattr(member, "__func__", member)) for member in members]
    else:
        functions = [thing]
    return [function for function in functions if inspect.isfunction(function) and ours(function)]


def returned(function):
    annotation = function.__annotations__.get("return", "")
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
