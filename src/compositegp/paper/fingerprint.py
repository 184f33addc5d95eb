"""A hash of the code of the experiments, by which a report that an older code wrote is noticed."""

import ast
import hashlib
from collections.abc import Iterable
from pathlib import Path

_DIGITS = 12
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_hash(folder: Path | None = None) -> str:
    """Hash of the code in a folder, by default this one; comments, docstrings and layout do not count.

    A whole run takes ten minutes, so the hash must change seldom: a new comment or another line break cannot change a
    number and does not change the hash. It is of this package alone, which says what is computed, by which rule it is
    judged and how it is printed. It does not see a change of the library below. For that, tests compute parts of
    the report again: ``tests/test_paper_report.py``.

    Parameters
    ----------
    folder : Path, optional

    Returns
    -------
    str of 12 hexadecimal digits

    Examples
    --------
    >>> len(code_hash())
    12
    """
    paths = sorted((folder or Path(__file__).parent).glob("*.py"))
    return hash_of((path.name, path.read_text(encoding="utf-8")) for path in paths)


def hash_of(sources: Iterable[tuple[str, str]]) -> str:
    r"""Hash of some files, given by name and text.

    Examples
    --------
    >>> commented = '"Doc."\nx = (1 +\n     2)  # three'
    >>> hash_of([("a.py", "x = 1 + 2")]) == hash_of([("a.py", commented)])
    True
    >>> hash_of([("a.py", "x = 1 + 2")]) == hash_of([("a.py", "x = 1 + 3")])
    False
    """
    texts = [f"{name}: {_written(_without_docstrings(ast.parse(text)))}" for name, text in sources]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:_DIGITS]


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, _WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return tree


def _written(node: object) -> str:
    """A syntax tree as text. Fields that are empty are left out: newer versions of Python have more of them."""
    if isinstance(node, list):
        return "[" + ", ".join(map(_written, node)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [
        f"{name}={_written(value)}" for name, value in ast.iter_fields(node) if value is not None and value != []
    ]
    return f"{type(node).__name__}({', '.join(fields)})"
