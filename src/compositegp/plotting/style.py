"""The style of all pictures: colors, figures that need no screen, and PNG files."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compositegp.storage import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Safe for color-blind readers (Okabe and Ito).
BLUE, ORANGE, GREEN, GRAY, BLACK = "#0072B2", "#D55E00", "#009E73", "#888888", "#222222"


def figure(rows: int = 1, columns: int = 1, *, size: tuple[float, float], **options: Any) -> tuple["Figure", Any]:
    """A figure for a file, and its axes. It needs no screen, changes no setting of Matplotlib and need not be closed.

    Parameters
    ----------
    rows, columns : int
        Of axes.
    size : (float, float)
        Width and height in inches.
    **options
        As for ``Figure.subplots``.

    Returns
    -------
    matplotlib Figure
    matplotlib Axes, or array of them

    Examples
    --------
    >>> drawn, axes = figure(1, 2, size=(6, 3))
    >>> len(axes)
    2
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise _missing() from error
    made = Figure(figsize=size, layout="constrained")
    return made, made.subplots(rows, columns, **options)


def interactive_axes(axes: "Axes | None" = None) -> "Axes":
    """The axes that a caller gives, or new ones of Matplotlib's pyplot, which shows them on a screen or in a notebook.

    Examples
    --------
    >>> _, axes = figure(size=(6, 4))
    >>> interactive_axes(axes) is axes
    True
    """
    return interactive_figure(size=(6, 4))[1] if axes is None else axes


def interactive_figure(rows: int = 1, columns: int = 1, *, size: tuple[float, float]) -> tuple["Figure", Any]:
    """As `figure`, of Matplotlib's pyplot, which shows it on a screen or in a notebook.

    Examples
    --------
    >>> drawn, axes = interactive_figure(size=(6, 4))
    >>> from matplotlib import pyplot
    >>> pyplot.gcf() is drawn
    True
    >>> pyplot.close(drawn)
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise _missing() from error
    return pyplot.subplots(rows, columns, figsize=size, layout="constrained")


def png(drawn: "Figure", dpi: int = 90) -> bytes:
    r"""A figure as the content of a PNG file.

    Examples
    --------
    >>> png(figure(size=(1, 1))[0])[:4]
    b'\x89PNG'
    """
    buffer = io.BytesIO()
    drawn.savefig(buffer, format="png", dpi=dpi)
    return buffer.getvalue()


def save(drawn: "Figure", path: Path, dpi: int = 90) -> None:
    """Write a figure to a PNG file, which is replaced as a whole or not at all.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(figure(size=(1, 1))[0], Path(folder) / "empty.png")
    ...     [path.name for path in Path(folder).iterdir()]
    ['empty.png']
    """
    write_atomically(path, png(drawn, dpi))


def literal(text: object) -> str:
    r"""A text that Matplotlib draws as it is: names of columns and units are no formulas, whatever signs they have.

    Examples
    --------
    >>> literal("$/m²")
    '\\$/m²'
    """
    return str(text).replace("$", r"\$")


def _missing() -> ImportError:
    return ImportError("Pictures need matplotlib: pip install 'compositegp[plot]'.")
