"""A page in a real browser: what it becomes once its scripts have run."""

import shutil
import subprocess
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def dump_page(url: str, folder: Path, *options: str) -> str:
    """The page's HTML after it was loaded, without a message on the console; the test is skipped without a browser."""
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None:
        pytest.skip("no chromium and no google-chrome: make test-setup installs the first")
    done = subprocess.run(
        [
            browser,
            *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
            *("--disable-component-update", "--disable-sync", f"--user-data-dir={folder / 'profile'}"),
            *("--enable-logging=stderr", "--v=0", *options, "--dump-dom", url),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "CONSOLE" not in done.stderr
    assert "<title>error" not in done.stdout
    return done.stdout


def dump_probed_page(page: str, probe: str, folder: Path, *options: str) -> str:
    """The same of HTML with a script in its head that leaves what it sees in the page; its errors fail the test."""
    script = f"<script>window.onerror = e => document.title = 'error ' + e; {probe}</script>"
    path = folder / "page.html"
    path.write_text(page.replace("</head>", script + "</head>"))
    return dump_page(f"file://{path}", folder, *options)
