"""Options that the verbs for maps share."""

from pathlib import Path
from typing import Annotated, Literal

import typer

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
    list[float] | None, typer.Option(metavar="Q", help="Quantile in the place of 0.05, 0.5 and 0.95. Repeatable.")
]
Above = Annotated[
    list[float] | None,
    typer.Option(metavar="VALUE", help="Threshold: the probability of a value over it is a layer. Repeatable."),
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
