"""Options that the verbs for maps share."""

import math
from pathlib import Path
from typing import Annotated, Literal

import typer

from compositegp.cli.output import UsageError


def _checked_quantiles(levels: list[float] | None) -> list[float] | None:
    wrong = [level for level in levels or [] if not 0 < level < 1]
    if wrong:
        raise UsageError(f"--quantile must be between 0 and 1; found {wrong[0]:g}.")
    return levels


def _checked_thresholds(thresholds: list[float] | None) -> list[float] | None:
    wrong = [one for one in thresholds or [] if not math.isfinite(one)]
    if wrong:
        raise UsageError(f"--above must be a finite threshold; found {wrong[0]:g}.")
    return thresholds


def _checked_step(step: float | None) -> float | None:
    if step is not None and not (math.isfinite(step) and step > 0):
        raise UsageError(f"--grid must be a positive step; found {step:g}.")
    return step


SphereChoice = Annotated[
    Literal["auto", "yes", "no"],
    typer.Option(
        help="Whether x and y are longitude and latitude, so that distances are kilometers on the sphere."
    ),
]
Covariates = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Variable whose linear drift is part of the mean. Repeatable."),
]
Quantiles = Annotated[
    list[float] | None,
    typer.Option(
        metavar="Q", help="Quantile in the place of 0.05, 0.5 and 0.95. Repeatable.", callback=_checked_quantiles
    ),
]
Above = Annotated[
    list[float] | None,
    typer.Option(
        metavar="VALUE",
        help="Threshold: the probability of a value over it is a layer. Repeatable.",
        callback=_checked_thresholds,
    ),
]
Step = Annotated[
    float | None, typer.Option(metavar="STEP", help="Step between the cells of the map.", callback=_checked_step)
]
Samples = Annotated[
    int, typer.Option(min=0, metavar="N", help="Joint draws of the field, which honor what was observed.")
]
Latent = Annotated[
    bool, typer.Option("--latent", help="Errors of the field itself, without the noise of a new measurement.")
]
PictureFile = Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the map into this PNG file.")]

ReportFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write one HTML page with pictures, model and scores.")
]


def sphere_of(choice: str) -> bool | str:
    """The option as the functions take it."""
    return {"yes": True, "no": False}.get(choice, choice)
