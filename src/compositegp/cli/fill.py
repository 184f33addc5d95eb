"""compositegp fill: the gaps of a raster, filled with predictions and their errors."""

import time as clock
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from compositegp.cli.map_options import (
    Above,
    Covariates,
    Latent,
    PictureFile,
    Quantiles,
    ReportFile,
    Samples,
    SphereChoice,
    sphere_of,
)
from compositegp.cli.options import JobsOrThreads, JsonFlag, LogFlag
from compositegp.cli.output import Output, note, require_packages
from compositegp.progress import ProgressBar

EXAMPLES = (
    "compositegp fill temperature.nc --variable lst --out filled.nc --picture filled.png",
    "compositegp fill rain.zarr --variable rain --log --above 20 --out filled.zarr",
)


def run(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Raster: NetCDF (.nc), Zarr (.zarr) or GeoTIFF (.tif).")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the layers: .nc, .zarr or .tif.")],
    variable: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which variable; not needed where there is only one.")
    ] = None,
    picture: PictureFile = None,
    x: Annotated[str | None, typer.Option(metavar="AXIS", help="Name of the x axis, if it is not found.")] = None,
    y: Annotated[str | None, typer.Option(metavar="AXIS", help="Name of the y axis, if it is not found.")] = None,
    time: Annotated[
        str | None, typer.Option(metavar="AXIS", help="Name of the time axis, if it is not found.")
    ] = None,
    sphere: SphereChoice = "auto",
    wanted: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Variable that is true (not zero) where cells are to be filled, as on land."
        ),
    ] = None,
    covariate: Covariates = None,
    log: LogFlag = False,
    quantile: Quantiles = None,
    above: Above = None,
    samples: Samples = 0,
    latent: Latent = False,
    report: ReportFile = None,
    as_json: JsonFlag = False,
    jobs: JobsOrThreads = None,
) -> None:
    """Fill the gaps of a raster, with error bars.

    Cells that are missing are predicted from the observed cells around them. What was observed stays. The layers are
    the mean, its standard error and quantiles.
    """
    require_packages("xarray", "pandas", "matplotlib", extra="spatial")
    require_packages("jinja2")
    from compositegp.cli.map_report import write_map_report
    from compositegp.cli.resources import check_output_file, require_memory
    from compositegp.spatial import (
        MapModel,
        check_raster_file,
        choose_variable,
        draw_filled,
        fill,
        learn_raster,
        open_raster,
        write_raster,
    )
    from compositegp.storage import write_atomically

    check_output_file(out, "--out", [file], may_be_folder=out.suffix == ".zarr")
    for path, option in ((picture, "--picture"), (report, "--report")):
        if path is not None:
            check_output_file(path, option, [file, out])
    began = clock.perf_counter()
    data = open_raster(file, variable, whole=samples > 0)
    array = choose_variable(data, variable)
    axes: dict[str, Any] = {"x": x, "y": y, "time": time}
    options = {**axes, "sphere": sphere_of(sphere)}
    check_raster_file(out, array, **options)
    layers: dict[str, Any] = {"quantiles": quantile or (0.05, 0.5, 0.95), "above": above}
    if samples:
        # Twice the draws: each is there as it is made, and as a layer.
        held = 3 + len(layers["quantiles"]) + len(above or []) + 2 * samples
        require_memory(
            8.0 * held * array.size, f"{samples} draws of all cells", "Ask for fewer, or give a part of it."
        )
    missing = int(array.isnull().sum())
    land = None if wanted is None else choose_variable(data, wanted)
    given: dict[str, Any] = {"wanted": land, "covariates": covariate, "n_jobs": jobs, **options}
    model: MapModel | None = None
    if not missing:
        note(f"{array.name} has no missing cell: there is nothing to fill.")
    if missing or report is not None:
        with ProgressBar(f"learning from {array.size - missing} cells"):
            model = learn_raster(data, str(array.name), log=log, **given)
    with warnings.catch_warnings():
        if not missing:
            warnings.simplefilter("ignore", UserWarning)  # which says the same
        filled = fill(
            data, str(array.name), samples=samples, latent=latent, model=model, verbose=True, **layers, **given
        )
    write_raster(filled, out, verbose=True, **axes)
    files = {"layers": out}
    if picture is not None or report is not None:
        drawn = draw_filled(array, filled if filled["mean"].chunks is None else out, **options)
        if picture is not None:
            files["picture"] = picture
            write_atomically(picture, drawn)
        if report is not None and model is not None:
            files["report"] = report
            write_map_report(report, f"{array.name}: {missing} missing cells filled", drawn, model)
    lines, notes = ([], []) if model is None else (model.describe(), list(model.notes))
    with Output(as_json) as output:
        for line in [*lines, *notes]:
            output.line(line)
        output.line(f"{missing} of {array.size} cells were missing. Seconds: {clock.perf_counter() - began:.1f}")
        for name, path in files.items():
            output.line(f"{name}: {path}")
        output.result("model", lines)
        output.result("notes", notes)
        output.result("missing", missing)
        output.result("cells", int(array.size))
        output.result("sphere", None if model is None else model.sphere)
        output.result("files", {name: str(path) for name, path in files.items()})
