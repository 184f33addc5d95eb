"""compositegp analyze: what an approximation costs on a table, and which one to use."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compositegp.cli.options import Decimal, Encoding, JobsOrThreads, JsonFlag, Separator
from compositegp.cli.output import Output
from compositegp.progress import ProgressBar

if TYPE_CHECKING:
    from compositegp.design import Design

EXAMPLES = (
    "compositegp analyze train.csv --target y",
    "compositegp analyze train.csv --target y --predict test.csv --tolerance 0.01 --budget 60",
)
_MOST_TEST_ROWS = 256  # rows at which the default approximation is compared with the exact Gaussian process
_SEGMENT_SIZES = (128, 256, 512)  # to compare; half of a table that is smaller
_NEIGHBORHOOD = 2048  # observations around a group of rows on which plans are compared


def run(
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help="CSV or Parquet file to learn from.")],
    target: Annotated[str, typer.Option(metavar="COLUMN", help="Column to predict.")],
    predict: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File with the rows to predict; by default rows near those of TRAIN."),
    ] = None,
    tolerance: Annotated[
        float, typer.Option(metavar="SHARE", help="Error to allow, as a share of the exact Gaussian process's.")
    ] = 0.05,
    budget: Annotated[float | None, typer.Option(metavar="SECONDS", help="Time that predicting may take.")] = None,
    separator: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    as_json: JsonFlag = False,
    jobs: JobsOrThreads = None,
) -> None:
    """Compare approximations on a table: their error against the exact Gaussian process, and their cost."""
    from compositegp.cli.table_columns import read_training_table
    from compositegp.cli.table_model import TableModel
    from compositegp.cli.tables import read_table
    from compositegp.cli.text_format import TextFormat
    from compositegp.design import choose_segmentation
    from compositegp.estimators import CompositeGPRegressor

    with Output(as_json) as output:
        text_format = TextFormat.of_options(separator, decimal, encoding)
        training = read_training_table(train, target, text_format)
        rows = None if predict is None else training.columns.read(read_table(predict, text_format), predict)
        model = TableModel(target, training.columns, CompositeGPRegressor(n_jobs=jobs))
        with ProgressBar(f"learning from {len(training.y)} rows"):
            model.fit(training)
        X = model.matrix(training.inputs)
        Z = _near(X) if rows is None else model.matrix(rows)
        kernel = model.regressor.kernel_
        output.line(f"kernel: {kernel}")
        output.result("kernel", str(kernel))
        with ProgressBar("what the approximation costs"):
            report = model.regressor.analyze(Z[:_MOST_TEST_ROWS])
        output.line(f"\nThe default approximation, at these rows:\n{report}")
        output.result("verdict", report.verdict)
        output.result("points", report.table)
        with ProgressBar("comparing plans") as progress:
            design = choose_segmentation(
                kernel,
                X,
                Z,
                tolerance=tolerance,
                budget=budget,
                sizes=[size for size in _SEGMENT_SIZES if size < len(X)] or [max(1, len(X) // 2)],
                n_points=_NEIGHBORHOOD,
                report=progress,
            )
        _print_design(design, output)


def _near(X: Any) -> Any:
    """Points near some of the training points, at most a quarter of them."""
    import numpy as np

    rows = np.random.default_rng(0).permutation(len(X))[: max(1, min(_MOST_TEST_ROWS, len(X) // 4))]
    return X[rows] + 1e-3 * X.std(axis=0) * np.random.default_rng(1).normal(size=(len(rows), X.shape[1]))


def _print_design(design: "Design", output: Output) -> None:
    """Print the plans, cheapest first, and which one to use."""
    frontier = design.frontier
    rows = []
    for candidate in design.candidates:
        mark = "→" if candidate is design.best else "·" if candidate in frontier else ""
        excess, claimed = f"{candidate.excess:.2%}", f"{candidate.claimed:.2f}"
        cost = f"{candidate.flops:.1e}", f"{candidate.seconds:.3g}"
        rows.append([f"{mark:1s} {candidate.plan}", excess, claimed, *cost])
    output.line()
    output.table(["  plan", "excess error", "claimed / actual variance", "flops", "seconds"], rows)
    output.line("→ chosen; · no cheaper plan is as accurate")
    output.result("best", dataclasses.asdict(design.best.plan))
    names = ("excess", "claimed", "flops", "seconds")
    output.result(
        "plans",
        [{"plan": str(c.plan)} | {name: getattr(c, name) for name in names} for c in design.candidates],
    )
