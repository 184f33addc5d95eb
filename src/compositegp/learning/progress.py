"""What learning tells while it runs: to a callback, and on a terminal as a line that is written over."""

import sys
from collections.abc import Callable
from typing import NamedTuple, TextIO

import numpy as np

from compositegp.arrays import Floats


class Progress(NamedTuple):
    """Where learning stands.

    Attributes
    ----------
    n_segments : int
        Segments read so far.
    n_points : float
        Points in them.
    log_likelihood : float
        Per point.
    theta : array of shape (p,)
        Log of the hyper-parameters.
    standard_errors : array of shape (p,)
        Of `theta`.
    """

    n_segments: int
    n_points: float
    log_likelihood: float
    theta: Floats
    standard_errors: Floats


class Reporter:
    """Keeps the history, calls the callback, and draws the line.

    Parameters
    ----------
    callback : callable or None
        Called with every `Progress`.
    show : bool
        Draw a line on standard error, if that is a terminal.
    total : int
        Segments there are.
    """

    def __init__(
        self, callback: Callable[[Progress], None] | None, show: bool, total: int, stream: TextIO | None = None
    ) -> None:
        self.history: list[Progress] = []
        self._callback = callback
        self._stream = sys.stderr if stream is None else stream
        self._show = show and self._stream.isatty()
        self._total = total

    def tell(self, progress: Progress) -> None:
        """Tell where learning stands."""
        self.history.append(progress)
        if self._callback is not None:
            self._callback(progress)
        if self._show:
            done = progress.n_segments / self._total
            bar = "█" * round(20 * done)
            worst = np.max(progress.standard_errors, initial=0.0)
            self._stream.write(
                f"\r\x1b[K{bar:░<20s} {progress.n_segments}/{self._total} segments, log likelihood "
                f"{progress.log_likelihood:.4f} a point, largest standard error {worst:.3f}"
            )
            self._stream.flush()

    def close(self) -> None:
        """End the line."""
        if self._show and self.history:
            self._stream.write("\n")
