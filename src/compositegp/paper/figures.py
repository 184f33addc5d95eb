"""Figures legible in print, and colour-blind safe."""

import io
from pathlib import Path
from typing import Any

from compositegp.storage import write_atomically

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#888888"


def pyplot() -> Any:
    """Matplotlib without a screen."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as found

    return found


def save(figure: Any, path: Path) -> None:
    """Write a figure as a small PNG file, and let it go."""
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=90)
    write_atomically(path, buffer.getvalue())
    pyplot().close(figure)
