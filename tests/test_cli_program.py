"""The command as a program: help, usage, signals, shells, progress bars."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import PROGRAM, SERIES, Done, command, write_tables

import compositegp
from compositegp.cli import info
from compositegp.cli.app import main
from compositegp.progress import ProgressBar


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    write_tables(folder)
    return folder


class TestProgram:
    def test_help_has_examples(self):
        for verb in ("forecast", "regress", "analyze", "stream", "reproduce", "info"):
            done = command(verb, "--help")
            assert done.code == 0
            assert "Examples:" in done.out
            assert f"compositegp {verb}" in done.out.partition("Examples:")[2]
        done = command("--help")
        assert done.code == 0
        assert "Exit codes: 0 done" in done.out
        assert command("--version").out.startswith("compositegp ")

    @pytest.mark.parametrize("wrong", [["fly"], ["forecast"], [], ["regress", "x.csv"], ["info", "--jobs", "two"]])
    def test_wrong_usage(self, wrong):
        done = command(*wrong)
        assert done.code == 2
        assert "Usage: compositegp" in done.err
        assert done.error

    def test_info_lists_the_installed_packages(self):
        assert json.loads(command("info", "--json", "--jobs", 1).out)["compositegp"]
        assert "scikit-learn" in command("info").out

    @pytest.mark.filterwarnings("always")
    def test_warnings_are_notes(self, monkeypatch):
        def warn(package):
            warnings.warn("look here", UserWarning, stacklevel=1)
            return "1.0"

        monkeypatch.setattr(info, "_version", warn)
        before = warnings.showwarning
        done = command("info")
        assert done.code == 0
        assert "note: look here\n" in done.err
        assert warnings.showwarning is before

    def test_an_interrupted_command_ends_with_130(self, monkeypatch):
        def interrupt(package):
            raise KeyboardInterrupt

        monkeypatch.setattr(info, "_version", interrupt)
        assert command("info") == Done(130, "", "interrupted\n")

    def test_an_interrupt_while_modules_are_imported_ends_with_130(self, monkeypatch):
        def interrupt():
            raise KeyboardInterrupt

        monkeypatch.setattr("compositegp.cli.app.build_app", interrupt)
        assert command("info") == Done(130, "", "interrupted\n")

    @pytest.mark.parametrize("module", ["compositegp.cli.app", "typer"])
    def test_an_interrupt_while_the_first_modules_are_imported_ends_with_130(self, module):
        code = textwrap.dedent(f"""
            import sys

            class Interrupt:
                def find_spec(self, name, path, target=None):
                    if name == {module!r}:
                        raise KeyboardInterrupt

            sys.meta_path.insert(0, Interrupt())
            from compositegp.cli import main

            sys.argv[1:] = ["info"]
            sys.exit(main())
        """)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")

    @pytest.mark.parametrize(
        ("error", "sentence"),
        [
            (MemoryError(), "not enough memory"),
            (OSError("full"), "full"),
            (OSError(28, "No space left on device", "m.cgp"), "m.cgp: No space left on device"),
        ],
    )
    def test_errors_of_the_machine_are_one_sentence(self, monkeypatch, error, sentence):
        def fail(package):
            raise error

        monkeypatch.setattr(info, "_version", fail)
        assert command("info") == Done(1, "", f"error: {sentence}\n")

    @pytest.mark.parametrize("package", ["typer", "jinja2", "matplotlib"])
    def test_a_missing_package_is_one_sentence(self, monkeypatch, folder, package):
        monkeypatch.setitem(sys.modules, package, None)
        done = command("forecast", folder / "series.csv", *SERIES)
        assert done == Done(1, "", f"error: {package} is not installed: pip install 'compositegp[cli]'\n")

    def test_help_imports_nothing_heavy(self):
        # The package itself, whose own imports are not the command line's, is replaced by an empty one.
        code = """
            import sys, types
            package = types.ModuleType("compositegp")
            package.__path__ = [sys.argv[1]]
            sys.modules["compositegp"] = package
            from compositegp.cli.app import main
            assert main(["forecast", "--help"]) == 0
            print("heavy:", {"numpy", "pandas", "scipy", "sklearn", "matplotlib", "jinja2"} & set(sys.modules))
        """
        path = Path(compositegp.__file__).parent
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code), path], capture_output=True, text=True, timeout=60
        )
        assert done.stdout.splitlines()[-1] == "heavy: set()", done.stderr

    @pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
    def test_sigterm_leaves_no_process_behind(self, tmp_path):
        rng = np.random.default_rng(0)
        pd.DataFrame(rng.normal(size=(4000, 6)), columns=list("abcdey")).to_csv(tmp_path / "big.csv", index=False)
        arguments = [*PROGRAM, "regress", "big.csv", "--target", "y", "--save", "m.cgp", "--jobs", "2"]
        process = subprocess.Popen(arguments, cwd=tmp_path, stderr=subprocess.PIPE, start_new_session=True)
        with process:
            wait_until(lambda: len(processes_of_session(process.pid)) > 3, 60)  # itself, two workers, their tracker
            process.terminate()
            assert beside_notes_of_locks(process.stderr.read()) == []  # the pipe is closed by all of them
        assert process.returncode == 143
        wait_until(lambda: not processes_of_session(process.pid))
        assert [file.name for file in tmp_path.iterdir()] == ["big.csv"]

    def test_sigterm_while_an_object_is_finalized_is_not_lost(self):
        code = """
            import os, signal, time
            from compositegp.cli.app import _terminable
            class Finalized:
                def __del__(self):
                    os.kill(os.getpid(), signal.SIGTERM)
                    time.sleep(0.1)
            with _terminable():
                Finalized()
                time.sleep(30)
        """
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, timeout=60)
        assert (done.returncode, done.stderr) == (143, b"")

    def test_sigterm_while_workers_are_started_waits_for_it(self):
        code = """
            import os, signal
            from joblib import Parallel, delayed
            from joblib.externals.loky.backend import fork_exec as starting
            from compositegp.cli.app import _terminable
            start = starting.fork_exec
            def ended_meanwhile(*arguments, **options):
                process = start(*arguments, **options)
                os.kill(os.getpid(), signal.SIGTERM)  # the worker has not been told anything
                return process
            starting.fork_exec = ended_meanwhile
            with _terminable():
                Parallel(n_jobs=2)(delayed(abs)(number) for number in range(4))
                print("never here")
        """
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, timeout=60)
        assert (done.returncode, done.stdout, beside_notes_of_locks(done.stderr)) == (143, b"", [])

    def test_a_closed_output_and_one_with_few_characters(self, tmp_path):
        script = " ".join(PROGRAM) + " info >&-; echo $?; PYTHONIOENCODING=ascii " + " ".join(PROGRAM) + " info"
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60)
        assert done.stderr == ""
        assert done.stdout.startswith("0\n")
        assert "scikit-learn" in done.stdout

    def test_a_reader_that_ends_early_is_no_error(self):
        with subprocess.Popen([*PROGRAM, "info"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.close()
            assert process.stderr.read() == b""
        assert process.returncode == 0

    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
    def test_completion_is_there_for_four_shells(self, monkeypatch, capfd, shell):
        monkeypatch.setenv("_COMPOSITEGP_COMPLETE", f"source_{shell}")
        assert main([]) == 0
        assert f"complete_{shell}" in capfd.readouterr().out

    def test_completion_in_bash(self, tmp_path):
        program = tmp_path / "compositegp"
        program.write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
        program.chmod(0o755)
        environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        script = """
            eval "$(_COMPOSITEGP_COMPLETE=source_bash compositegp)"
            for words in "fore" "forecast --back"; do
                COMP_WORDS=(compositegp $words); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
                _compositegp_completion compositegp
                echo ${COMPREPLY[@]}
            done
        """
        done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=120)
        assert done.stdout.split() == ["forecast", "--backtest"], done.stderr


def beside_notes_of_locks(errors):
    """Lines without joblib's notes on locks that one of its threads had removed, but not said so, when all ended."""
    gone = "FileNotFoundError"
    note = rf"(?m)^.*UserWarning: resource_tracker: (There appear.*leaked semlock|.*{gone}).*\n  warnings\.warn.*\n"
    assert errors.count(b"'/loky-") == errors.count(gone.encode())
    return re.sub(note, "", errors.decode()).splitlines()


def processes_of_session(session):
    """Processes that are alive in a session: on Linux, by their status files."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = status.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(status.parent.name))
    return found


class Terminal(io.StringIO):
    def isatty(self):
        return True


class TestProgressBar:
    def test_appears_on_a_terminal_when_work_takes_long(self, monkeypatch):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setattr("compositegp.progress._DELAY", 0.0)
        monkeypatch.setenv("TERM", "xterm")
        with ProgressBar("comparing plans") as bar:
            bar(1, 4)
            wait_until(lambda: "25%" in terminal.getvalue())
            print("note: in between", file=sys.stderr)
        assert "comparing plans" in terminal.getvalue()
        assert "note: in between" in terminal.getvalue()
        assert sys.stderr is terminal

    def test_shows_that_work_goes_on_before_anything_is_counted(self, monkeypatch):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setattr("compositegp.progress._DELAY", 0.0)
        monkeypatch.setenv("TERM", "xterm")
        with ProgressBar("learning"):
            wait_until(lambda: "learning" in terminal.getvalue())

    def test_does_not_appear_in_the_first_two_seconds(self, monkeypatch):
        monkeypatch.setattr(sys, "stderr", Terminal())
        from compositegp import progress

        assert progress._DELAY == 2.0
        with ProgressBar("learning") as bar:
            bar(1, 2)
        assert sys.stderr.getvalue() == ""
        assert not any(isinstance(thread, threading.Timer) for thread in threading.enumerate())

    def test_does_not_appear_without_a_terminal(self, monkeypatch):
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        monkeypatch.setattr("compositegp.progress._DELAY", 0.0)
        with ProgressBar("learning") as bar:
            bar(1, 2)
            time.sleep(0.05)
        assert sys.stderr.getvalue() == ""


def wait_until(happened, seconds=10.0):
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)
