"""One kind of progress bar, drawn by rich where it is installed, and only on a terminal."""

import sys
import threading
from types import TracebackType
from typing import Any

_DELAY = 2.0  # seconds of work before the bar appears


class ProgressBar:
    """A bar on standard error, on a terminal only, that appears once the work has taken two seconds.

    Nothing is drawn where rich is not installed (``pip install 'compositegp[cli]'``).

    Parameters
    ----------
    description : str
        What is being done, such as "learning".
    show : bool
        False draws nothing.

    Notes
    -----
    Inside its ``with`` block, call it with the number of steps done and the number of all steps. Until it is called,
    the bar only shows that the work goes on and how long it has taken.
    """

    def __init__(self, description: str, *, show: bool = True) -> None:
        self._description = description
        self._show = show
        self._display: Any = None
        self._task: Any = None
        self._timer: threading.Timer | None = None

    def __enter__(self) -> "ProgressBar":
        if self._show and sys.stderr.isatty():
            self._prepare()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is None:
            return
        self._timer.cancel()
        self._timer.join()
        if self._display.live.is_started:
            self._display.stop()

    def __call__(self, done: float, total: float, text: str = "") -> None:
        """Show how much of the work is done, and a short text."""
        if self._display is not None:
            self._display.update(self._task, completed=done, total=total, text=text)

    def _prepare(self) -> None:
        try:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
        except ImportError:
            return
        self._display = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[text]}"),
            console=Console(stderr=True),
            redirect_stdout=False,  # results go to standard output, which the bar leaves alone
            transient=True,
        )
        self._task = self._display.add_task(self._description, total=None, text="")
        self._timer = threading.Timer(_DELAY, self._display.start)
        self._timer.daemon = True
        self._timer.start()
