"""The Typer app: one verb for each job, and how errors become exit codes."""

import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import typer

_HELP = "Gaussian-process regression and forecasts for large data, with error bars."
_EXIT_CODES = (
    "Exit codes: 0 done, 1 the data or the numerics do not allow it, 2 wrong usage, 3 some of many series failed, "
    "130 interrupted, 143 ended by SIGTERM."
)

_TIMES_PUT_OFF = 500  # at most this often, each time 10 ms, SIGTERM waits until joblib has dealt with its processes


def main(argv: list[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : list of str, optional
        Arguments after the name of the program; those of this process by default.

    Returns
    -------
    int
        Exit code: 0 done, 1 the data or the numerics do not allow it, 2 wrong usage, 3 some of many series failed,
        130 interrupted, 143 ended by SIGTERM.
    """
    try:
        return _run(argv)
    except KeyboardInterrupt:  # while modules were imported; the verbs say it themselves
        print("interrupted", file=sys.stderr)
        return 130


def _run(argv: list[str] | None) -> int:
    try:
        import typer
        from typer.main import get_command

        command = get_command(build_app())
    except ImportError as error:
        print(f"error: {_missing_package(error)}", file=sys.stderr)
        return 1
    with warnings.catch_warnings(), _terminable(), _writable_output():
        warnings.showwarning = _print_warning
        try:
            return command.main(argv, prog_name="compositegp", standalone_mode=False) or 0
        except typer.TyperException as error:
            context = getattr(error, "ctx", None)
            if context is not None:
                print(context.get_usage(), file=sys.stderr)
            print(f"error: {error.format_message()}", file=sys.stderr)
            return error.exit_code
        except SystemExit as ended:  # typer ends the process itself after it has printed a completion script
            return ended.code if isinstance(ended.code, int) else 0


@contextmanager
def _terminable() -> Iterator[None]:
    """Make SIGTERM an exception, so that processes that were started and temporary files do not stay behind.

    Python drops an exception that is raised while an object is finalized. Where joblib deals with its processes, one
    may leave a worker that is half told what it is, or a lock that is held. The signal is then sent once more, a little
    later.
    """
    report = sys.unraisablehook
    patience = iter(range(_TIMES_PUT_OFF))

    def end(number: int, frame: FrameType | None) -> None:
        if _manages_workers(frame) and next(patience, None) is not None:
            send_again()
        else:
            threading.excepthook = lambda _: None  # what joblib's own thread finds when all is taken down
            raise SystemExit(128 + number)

    def send_if_dropped(dropped: "sys.UnraisableHookArgs") -> None:
        if issubclass(dropped.exc_type, SystemExit):
            send_again()
        else:
            report(dropped)

    def send_again() -> None:
        timer = threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGTERM))
        timer.daemon = True
        timer.start()

    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:  # whoever calls decides
        yield
        return
    signal.signal(signal.SIGTERM, end)
    sys.unraisablehook = send_if_dropped
    try:
        yield
    finally:
        sys.unraisablehook = report
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _manages_workers(frame: FrameType | None) -> bool:
    """Whether joblib starts, feeds or ends its processes in this frame or in one that it was called from."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("joblib.externals.loky"):
            return True
        frame = frame.f_back
    return False


@contextmanager
def _writable_output() -> Iterator[None]:
    """Let everything be printed: nowhere if the output is closed, and escaped where it has too few characters."""
    before = sys.stdout, sys.stderr
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is None:
                setattr(sys, name, nowhere)
            elif hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before


def build_app() -> "typer.Typer":
    """Make the app with all its verbs; none of them imports anything heavy before it runs."""
    import typer

    from compositegp.cli import analyze, fill, forecast, info, map, regress, reproduce, serve, stream
    from compositegp.cli.options import VersionFlag

    app = typer.Typer(cls=_error_handling_group(), help=_HELP, epilog=_EXIT_CODES, rich_markup_mode="rich")

    @app.callback(help=_HELP, epilog=_EXIT_CODES)
    def options_of_the_program(version: VersionFlag = False) -> None:
        """Options before the verb."""

    for verb in (forecast, regress, fill, map, analyze, stream, serve, reproduce, info):
        name = verb.__name__.rpartition(".")[2]
        examples = "Examples:\n\n" + "\n\n".join(verb.EXAMPLES)
        app.command(name, help=_paragraphs(verb.run.__doc__ or ""), epilog=examples)(verb.run)
    return app


def _paragraphs(docstring: str) -> str:
    """The paragraphs of a docstring, each on one line, which the help breaks where the terminal ends."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in docstring.split("\n\n"))


def _error_handling_group() -> Any:
    """The class of the app's command group: it runs a verb and turns exceptions into exit codes."""
    import typer
    from typer.core import TyperGroup

    class ErrorHandlingGroup(TyperGroup):
        """A command group whose verbs end with one sentence on standard error where something is wrong."""

        def invoke(self, ctx: Any) -> Any:
            """Run the verb."""
            try:
                super().invoke(ctx)
                sys.stdout.flush()
            except KeyboardInterrupt as error:
                print("interrupted", file=sys.stderr)
                raise typer.Exit(130) from error
            except BrokenPipeError:
                # The reader of our output has ended: what remains in the buffer goes nowhere.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            except Exception as error:
                sentence = _sentence(error)
                if sentence is None:
                    raise
                print(f"error: {sentence}", file=sys.stderr)
                raise typer.Exit(1) from error

    return ErrorHandlingGroup


def _sentence(error: Exception) -> str | None:
    """What to print about an exception; None for an error of usage or of the program itself, which is raised on."""
    from compositegp.cli.output import CommandError

    if isinstance(error, ImportError):
        return _missing_package(error)
    if isinstance(error, MemoryError):
        return str(error) or "not enough memory"
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, CommandError | OSError | ValueError):  # a LinAlgError is a ValueError
        return str(error)
    return None


def _missing_package(error: ImportError) -> str:
    """One sentence about a package that is not installed."""
    if isinstance(error, ModuleNotFoundError) and error.name and "pip install" not in str(error):
        return f"{error.name.partition('.')[0]} is not installed: pip install 'compositegp[cli]'"
    return str(error)


def _print_warning(message: Any, category: Any, *_: Any, **__: Any) -> None:
    print(f"note: {message}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
