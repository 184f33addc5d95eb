"""Pictures; they need matplotlib (``pip install 'compositegp[plot]'``)."""

from compositegp.plotting.forecast import draw_forecast, write_picture

__all__ = [
    "draw_forecast",
    "write_picture",
]
