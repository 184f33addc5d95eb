"""One HTML page about a map, with everything in it."""

from pathlib import Path

import pandas as pd

from compositegp.cli.html_page import HtmlTable, encoded, render_page
from compositegp.plotting import draw_validation, draw_variogram
from compositegp.spatial import MapModel, cautions_about, score_map
from compositegp.storage import write_atomically


def write_map_report(path: Path, title: str, picture: bytes, model: MapModel) -> None:
    """Write the page: the map, the model in words and as a variogram, scores beside simple methods, and warnings.

    Parameters
    ----------
    path : Path
    title : str
    picture : bytes
        The map, as a PNG picture.
    model : MapModel
    """
    scores = score_map(model)
    page = render_page(
        "map.html",
        title=title,
        map=encoded(picture),
        variogram=encoded(_variogram(model)),
        validation=encoded(draw_validation(model.validate(), _lengths(model))),
        model=model.describe(),
        scores=HtmlTable.of(pd.DataFrame(scores.table, index=scores.methods), "method"),
        warnings=cautions_about(model) or ["none: no trend, no clusters, no parameter at a bound"],
        notes=model.notes or ("nothing was left out",),
    )
    write_atomically(path, page.encode())


def _lengths(model: MapModel) -> str:
    lengths = ", ".join(f"{name} {length}" for name, length in model.length_scales.items())
    return f"length scales:\n{lengths}"


def _variogram(model: MapModel) -> bytes:
    kind = {"sphere": model.sphere, "has_time": model.has_time, "time_unit": model.time_unit}
    return draw_variogram(model.regressor, model.X, model.y, unit=model.unit, **kind)
