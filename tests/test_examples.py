"""Every public function and class shows how it is used, in an example that the suite runs as a doctest."""

import inspect
from importlib import import_module

import pytest

PUBLIC = ["compositegp"] + [
    f"compositegp.{name}"
    for name in ("analysis", "design", "plotting", "forecasting", "distributed", "simulate", "datasets", "storage")
]


def public_objects():
    """Public functions and classes by their full name; constants, type aliases and exceptions are not among them."""
    found = {}
    for name in PUBLIC:
        module = import_module(name)
        own = [key for key, value in vars(module).items() if getattr(value, "__module__", None) == name]
        for key in getattr(module, "__all__", [key for key in own if not key.startswith("_")]):
            value = getattr(module, key)
            if inspect.isroutine(value) or (inspect.isclass(value) and not issubclass(value, BaseException)):
                found[f"{name}.{key}"] = value
    return found


OBJECTS = public_objects()
FUNCTIONS = {name: value for name, value in OBJECTS.items() if inspect.isroutine(value)}


def test_the_public_names_are_found():
    assert {"compositegp.learn", "compositegp.Composite", "compositegp.design.choose_segmentation"} <= set(OBJECTS)
    assert "compositegp.NumericalWarning" not in OBJECTS


@pytest.mark.parametrize("name", OBJECTS)
def test_a_public_name_has_an_example(name):
    if inspect.isabstract(OBJECTS[name]):
        pytest.skip("an abstract class is not called; tests/test_extensions.py has its example")
    assert ">>>" in inspect.getdoc(OBJECTS[name])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_documents_its_parameters_and_its_result(name):
    documentation, signature = inspect.getdoc(FUNCTIONS[name]), inspect.signature(FUNCTIONS[name])
    if signature.parameters:
        assert "Parameters\n----------" in documentation
    if signature.return_annotation not in (None, "None"):
        assert "Returns\n-------" in documentation
