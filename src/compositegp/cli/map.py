"""compositegp map: values at stations, mapped to a grid with error bars."""

import time as clock
from pathlib import Path
from typing import Annotated, Any

import typer

from compositegp.cli.map_options import Above, Covariates, Latent, Quantiles, Samples, SphereChoice, Step, sphere_of
from compositegp.cli.options import Decimal, Encoding, JobsOrThreads, JsonFlag, LogFlag, Separator
from compositegp.cli.output import Output, UsageError, note, require_packages
from compositegp.progress import ProgressBar

EXAMPLES = (
    "compositegp map stations.csv --x lon --y lat --target rain --grid 0.05 --out map/",
    "compositegp map wells.csv --x x --y y --target zinc --log --template soil.nc --covariate distance --above 500",
)


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Table of stations: CSV, Parquet or GeoJSON.")],
    target: Annotated[str, typer.Option(metavar="COLUMN", help="Column to map; empty cells are not observed.")],
    x: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of x, or of the longitude.")] = None,
    y: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of y, or of the latitude.")] = None,
    grid: Step = None,
    count: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Cells along the longer side, without a step.")
    ] = None,
    template: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Raster whose cells are taken, with the covariates on them.")
    ] = None,
    covariate: Covariates = None,
    noise_variance: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column with the variance of each measurement's error.")
    ] = None,
    support: Annotated[
        bool, typer.Option("--support", help="Predict averages over cells, not values at their centers.")
    ] = False,
    unit: Annotated[str, typer.Option(metavar="TEXT", help="Unit of the target, for pictures and files.")] = "",
    sphere: SphereChoice = "auto",
    log: LogFlag = False,
    quantile: Quantiles = None,
    above: Above = None,
    samples: Samples = 0,
    latent: Latent = False,
    regions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="GeoJSON of polygons: averages over them go to regions.csv.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the results.")] = Path("map"),
    report: Annotated[
        bool, typer.Option("--report", help="Write one HTML page with pictures, model and scores.")
    ] = False,
    separator: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    as_json: JsonFlag = False,
    jobs: JobsOrThreads = None,
) -> None:
    """Map values at stations to a grid, with error bars.

    Every cell is predicted from the stations around it (kriging). The layers are the mean, its standard error and
    quantiles, in a NetCDF file, with a picture.
    """
    require_packages("xarray", "pandas", "matplotlib", extra="spatial")
    require_packages("jinja2")
    if sum(choice is not None for choice in (grid, count, template)) != 1:
        raise UsageError("The cells of the map are given by one of --grid, --count and --template.")
    if covariate and template is None:
        raise UsageError("--covariate needs --template: a raster with the covariate's values on the map.")
    if regions is not None and (log or covariate):
        raise UsageError("--regions averages the field itself: leave out --log and --covariate.")
    if support and log:
        raise UsageError("--support averages the field itself, not its logarithm: leave out --log.")
    if support and samples:
        raise UsageError("--samples are values at points: leave out --support, and average draws on a finer grid.")
    from compositegp.cli.map_report import write_map_report
    from compositegp.cli.resources import check_output_folder
    from compositegp.cli.tables import read_table
    from compositegp.cli.text_format import TextFormat
    from compositegp.spatial import (
        check_template,
        draw_stations,
        krige,
        learn_stations,
        open_raster,
        read_regions,
        read_station_file,
        region_averages,
        write_raster,
    )
    from compositegp.storage import write_atomically

    text_format = TextFormat.of_options(separator, decimal, encoding)
    areas = None if regions is None else read_regions(regions)
    named = ["map.nc", "map.png", *(["report.html"] if report else []), *(["regions.csv"] if areas else [])]
    check_output_folder(out, named, [file, template, regions])
    began = clock.perf_counter()
    is_geojson = {".geojson", ".json"} & {ending.lower() for ending in file.suffixes}
    table = read_station_file(file) if is_geojson else read_table(file, text_format)
    table.attrs["units"] = {target: unit} if unit else {}
    cells: dict[str, Any] = {"count": count} if count is not None else {"grid": grid}
    covariates: Any = covariate or ()
    if template is not None:
        raster = open_raster(template)
        check_template(raster)
        missing = [name for name in covariates if name not in raster.data_vars]
        if missing:
            names = ", ".join(str(name) for name in raster.data_vars)
            raise ValueError(f"{template} has no variable {missing[0]!r}; it has {names}.")
        cells, covariates = {"grid": raster}, {name: raster[name] for name in covariates}
    given: dict[str, Any] = {
        "x": x,
        "y": y,
        "target": target,
        "covariates": covariates,
        "noise_variance": noise_variance,
        "sphere": sphere_of(sphere),
        "log": log,
        "n_jobs": jobs,
    }
    with ProgressBar(f"learning from {len(table)} stations"):
        model, stations = learn_stations(table, **given)
    for text in model.notes:
        note(text)
    field = krige(
        table,
        **given,
        **cells,
        support="cell" if support else None,
        quantiles=quantile or (0.05, 0.5, 0.95),
        above=above,
        samples=samples,
        latent=latent,
        model=model,
        verbose=True,
    )
    files = {"layers": out / "map.nc", "picture": out / "map.png"}
    write_raster(field, files["layers"])
    picture = draw_stations(stations, field, unit)
    write_atomically(files["picture"], picture)
    if areas is not None:
        files["regions"] = out / "regions.csv"
        averages = region_averages(model, areas, quantile or (0.05, 0.5, 0.95))
        write_atomically(files["regions"], averages.to_csv().encode())
    if report:
        files["report"] = out / "report.html"
        write_map_report(files["report"], f"{target}: a map from {len(stations.values)} stations", picture, model)
    lines = model.describe()
    with Output(as_json) as output:
        for line in lines:
            output.line(line)
        rows, columns = field["mean"].shape
        output.line(f"{rows} × {columns} cells. Seconds: {clock.perf_counter() - began:.1f}")
        for name, path in files.items():
            output.line(f"{name}: {path}")
        output.result("model", lines)
        output.result("notes", list(model.notes))
        output.result("stations", len(stations.values))
        output.result("cells", rows * columns)
        output.result("sphere", model.sphere)
        output.result("files", {name: str(path) for name, path in files.items()})
