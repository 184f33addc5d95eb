"""The documentation holds: its code runs, its commands parse, and the files and messages that it names exist.

The Python blocks of a page share a namespace and run in order, in a folder that is removed afterwards. A block that
cannot run here has ``<!-- not run: reason -->`` on the line before it. A text block that follows a Python block, with
nothing between them, is what the Python block prints.
"""

import ast
import contextlib
import io
import pkgutil
import re
import shlex
import tomllib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import typer
from matplotlib import pyplot
from sklearn.gaussian_process.kernels import Matern, WhiteKernel
from typer.main import get_command

from compositegp import segment
from compositegp.cli.app import build_app
from compositegp.kernels import storable
from compositegp.storage import objects

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "compositegp"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
LANGUAGES = {"python", "sh", "text", "{toctree}", "{include}"}


def stand_ins(folder):
    """All that a page may use without making it: the names that are returned, and files in its folder."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, size=(600, 2))
    y = 4 + np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=600)  # positive, so that it has a logarithm
    X_new = rng.uniform(0, 10, size=(20, 2))
    hours = pd.date_range("2024-01-01", periods=24 * 52, freq="h", name="time")
    pattern = np.sin(2 * np.pi * np.arange(len(hours)) / 24)
    values = pd.Series(np.exp(pattern + 0.3 * rng.normal(size=len(hours))), index=hours, name="nox")
    table = pd.DataFrame({"east": X[:, 0], "north": X[:, 1], "y": y})
    (folder / "measurements").mkdir()
    table.to_parquet(folder / "measurements" / "part.0.parquet")
    return {
        "X": X,
        "y": y,
        "X_new": X_new,
        "y_new": 4 + np.sin(X_new).sum(axis=1),
        "Z": X_new,
        "kernel": 1.0 * Matern([2.0, 2.0], nu=1.5) + WhiteKernel(0.01),
        "segments": segment(X, 256),
        "days": X[:, 0].astype(int),
        "stream": [(X[part], y[part]) for part in np.split(np.arange(600), 4)],
        "series": values[: 24 * 50],
        "table": pd.DataFrame(
            {"station": "Hornsgatan", "timestamp": values.index[: 24 * 10], "nox": values.to_numpy()[: 24 * 10]}
        ),
        "new_values": values[24 * 50 :],
        "new_points": table.drop(columns="y")[:20],
    }


class Block(NamedTuple):
    """A fenced block of a page; `line` is where its text begins, counted from zero."""

    language: str
    text: str
    line: int
    reason: str | None  # why a Python block is not run
    output: str | None  # what a Python block prints, where the page says so


def blocks_of(page):
    lines = page.read_text().splitlines()
    fences = [number for number, line in enumerate(lines) if line.startswith("```")]
    pairs = list(zip(fences[::2], fences[1::2], strict=True))
    found = []
    for position, (first, last) in enumerate(pairs):
        comment = re.fullmatch(r"<!-- not run:?(.*)-->", lines[first - 1]) if first else None
        output = None
        if position + 1 < len(pairs):
            start, stop = pairs[position + 1]
            if lines[start] == "```text" and not any(lines[last + 1 : start]):
                output = "\n".join(lines[start + 1 : stop])
        text = "\n".join(lines[first + 1 : last])
        reason = comment and comment[1].strip()
        found.append(Block(lines[first].removeprefix("```"), text, first + 1, reason, output))
    return found


def prose_of(page):
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def code_spans(page):
    """What stands in single backticks."""
    return [
        " ".join(span.split()) for part in prose_of(page).split("\n\n") for span in re.findall(r"`([^`]+)`", part)
    ]


def each(pages):
    return pytest.mark.parametrize("page", pages, ids=lambda page: page.name)


@pytest.fixture
def no_other_classes():
    """Classes that a page registers for files, and those that other tests have registered, do not meet."""
    registries = objects._CLASSES, storable._STORABLE
    others = [remove_classes_from_outside(registry) for registry in registries]
    yield
    for registry, classes in zip(registries, others, strict=True):
        remove_classes_from_outside(registry)
        registry.update(classes)


def remove_classes_from_outside(registry):
    ours = "compositegp.", "sklearn."
    return {
        name: registry.pop(name) for name, kind in list(registry.items()) if not kind.__module__.startswith(ours)
    }


@each([page for page in PAGES if any(block.language == "python" for block in blocks_of(page))])
def test_python_blocks_run(page, tmp_path, monkeypatch, no_other_classes):
    monkeypatch.chdir(tmp_path)
    pyplot.switch_backend("agg")
    names = {"__name__": "page"} | stand_ins(tmp_path)
    for block in blocks_of(page):
        if block.language != "python":
            continue
        # Empty lines come first, so that the lines of a traceback are those of the page.
        code = compile("\n" * block.line + block.text, str(page), "exec")
        if block.reason is not None:
            assert block.reason, f"{page.name}, line {block.line}: say why this block is not run"
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        if block.output is not None:
            assert printed.getvalue().rstrip("\n") == block.output, f"{page.name}, line {block.line}"
    pyplot.close("all")


@each(PAGES)
def test_blocks_have_a_language(page):
    assert {block.language.split()[0] for block in blocks_of(page)} <= LANGUAGES


@each(PAGES)
def test_commands_parse(page):
    lines = [line for block in blocks_of(page) if block.language == "sh" for line in block.text.splitlines()]
    lines += [span for span in code_spans(page) if span.startswith(("compositegp ", "make ", "python "))]
    lines = [re.sub(r"^compositegp \w+$", r"\g<0> --help", line) for line in lines]  # a verb that is named alone
    for line in lines:
        for words in simple_commands(line):
            check_command(words)


def simple_commands(line):
    """The commands in a line of a shell, each as a list of words; redirections are left out."""
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    commands, redirected = [[]], False
    for word in words:
        if redirected:
            redirected = False
        elif set(word) <= set("|;&()"):
            commands.append([])
        elif set(word) <= set("<>"):
            redirected = True
        else:
            commands[-1].append(word)
    return [command for command in commands if command]


def check_command(words):
    program, *arguments = words
    if program == "make":
        targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        assert {word for word in arguments if "=" not in word} <= targets, words
    elif program == "python":
        assert (ROOT / arguments[0]).exists() or arguments[0] == "-m", words
    elif program == "compositegp":
        group = get_command(build_app())
        if arguments[0].startswith("-"):
            assert arguments[0] in {name for option in group.params for name in option.opts} | {"--help"}, words
        else:
            assert arguments[0] in group.commands, words
            with contextlib.suppress(typer.Exit):  # of --help
                group.commands[arguments[0]].make_context(arguments[0], arguments[1:])


@each(PAGES)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", prose_of(page)):
        if not link.startswith("http"):
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            assert target.exists(), link
            headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE) if anchor else []
            assert not anchor or anchor in {slug(heading) for heading in headings}, link


def slug(heading):
    """The anchor that a heading has on a page."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@each(PAGES)
def test_files_in_backticks_exist(page):
    """Paths are those of the repository, or of the package."""
    for word in (word for span in code_spans(page) for word in span.split()):
        path, _, test = word.partition("::")
        ours = path.startswith(("src/", "docs/", "tests/", "benchmarks/"))
        if ours or re.fullmatch(r"[\w/]+/[\w]+\.(py|md)", path):
            (found,) = [folder / path for folder in (ROOT, SOURCE) if (folder / path).exists()] or [None]
            assert found, word
            assert not test or f"def {test}(" in found.read_text() or f"class {test}" in found.read_text(), word


@each(PAGES)
def test_names_in_backticks_exist(page):
    for span in code_spans(page):
        for name in re.findall(r"(?<![\w./])compositegp(?:\.[a-zA-Z_]\w*)+", span):
            pkgutil.resolve_name(name)


def test_messages_on_the_troubleshooting_page_are_those_of_the_code():
    texts = []
    for path in SOURCE.rglob("*.py"):
        texts += [node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)]
    texts = [text for text in texts if isinstance(text, str)]
    quoted = re.findall(r'^\| "([^|]+)" \|', (ROOT / "docs" / "troubleshooting.md").read_text(), re.MULTILINE)
    parts = [part.strip() for message in quoted for part in message.split("…") if part.strip()]
    assert len(parts) > 20
    unknown = [part for part in parts if not any(part in text for text in texts)]
    assert not unknown


def test_the_layers_in_contributing_are_those_of_the_contract():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    picture = next(block.text for block in blocks_of(ROOT / "CONTRIBUTING.md") if block.language == "text")
    drawn = [re.split(r"\s{2,}", line)[0] for line in picture.splitlines()]
    assert drawn == [layer.replace("compositegp.", "") for layer in layers]
