"""What a packager gets: the archive of the sources has every file, and the README can be read without them."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
HATCH = SETTINGS["tool"]["hatch"]


def readme_of_an_index():
    hook = HATCH["metadata"]["hooks"]["fancy-pypi-readme"]
    text = "".join(part.get("text") or (ROOT / part["path"]).read_text() for part in hook["fragments"])
    for change in hook["substitutions"]:
        text = re.sub(change["pattern"], change["replacement"], text)
    return text


def test_the_readme_of_a_package_index_needs_no_files():
    text, original = readme_of_an_index(), (ROOT / "README.md").read_text()
    links = re.findall(r"\[[^\]]*\]\(([^)]*)\)", text)
    assert all(link.startswith("https://") for link in links)
    paths = set(re.findall(r"\]\(([\w/]+\.md)", original))
    assert len(paths) > 15
    assert all(path in text for path in paths)
    assert all((ROOT / path).exists() for path in paths)


@pytest.mark.skipif(
    shutil.which("git") is None or not (ROOT / ".git").exists(),
    reason="not a clone: git knows which files there are",
)
def test_the_archive_of_the_sources_has_every_file():
    told = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    kept = {name.removeprefix("/") for name in HATCH["build"]["targets"]["sdist"]["include"]}
    always = {".gitignore", "LICENSE", "pyproject.toml"}  # whatever is included
    assert {line.split("/")[0] for line in told.splitlines()} == kept | always


def test_the_authors_are_those_of_the_citation():
    citation = (ROOT / "CITATION.cff").read_text()
    software, paper = citation.split("references:")
    assert [author["name"] for author in SETTINGS["project"]["authors"]] == re.findall(r'- name: "(.+)"', software)
    assert f'url: "{SETTINGS["project"]["urls"]["Paper"]}"' in paper
