"""compositegp analyze: what an approximation would cost on a table, and which one to use."""

import argparse

import numpy as np

from compositegp.analysis import choose_segmentation
from compositegp.cli.output import Output, ProgressBar
from compositegp.cli.regress import encode
from compositegp.cli.tables import numbers, read_table, split_columns
from compositegp.estimators import CompositeGPRegressor


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("train", help="CSV (also .gz) or Parquet file to learn from")
    parser.add_argument("--target", required=True, help="column to predict")
    parser.add_argument("--predict", help="file with the rows to predict; some of the training rows if left out")
    parser.add_argument("--tolerance", type=float, default=0.05, help="excess error allowed, over the exact GP's")
    parser.add_argument("--budget", type=float, help="seconds that predicting may take")


def run(arguments: argparse.Namespace, output: Output) -> None:
    """Learn the hyper-parameters, then compare plans under them."""
    table = read_table(arguments.train)
    y = numbers(table, arguments.target, arguments.train)
    inputs, categories = split_columns(table, arguments.target, arguments.train)
    X = encode(inputs, inputs, categories, arguments.train, output)[y.notna()]
    model = CompositeGPRegressor(n_jobs=arguments.jobs, verbose=True).fit(X, y[y.notna()])
    if arguments.predict is None:
        rows = np.random.default_rng(0).permutation(len(X))[: max(1, min(256, len(X) // 4))]
        moved = 1e-3 * X.std().to_numpy() * np.random.default_rng(1).normal(size=(len(rows), X.shape[1]))
        Z = X.iloc[rows] + moved
    else:
        wanted = read_table(arguments.predict)
        Z = encode(wanted, inputs, categories, arguments.predict, output)
    output.say(f"kernel: {model.kernel_}")
    report = model.analyze(Z.iloc[:256])
    output.say("\nthe default, at these points:\n" + str(report))
    n = len(X)
    design = choose_segmentation(
        model.kernel_,
        X.to_numpy(),
        Z.to_numpy(),
        tolerance=arguments.tolerance,
        budget=arguments.budget,
        sizes=[size for size in (128, 256, 512) if size < n] or [max(1, n // 2)],
        conditioning_sizes=[size for size in (0, 256) if size < n],
        neighbours=[size for size in (64, 256, 512) if size < n],
        n_points=2048,
        report=ProgressBar("plans compared"),
    )
    output.say("\n" + repr(design))
    output.result("kernel", str(model.kernel_))
    output.result("verdict", report.verdict)
    output.result("points", report.table)
    output.result("best", design.best.plan.parameters)
    output.result(
        "plans",
        [
            {"plan": str(c.plan), "excess": c.excess, "claimed": c.claimed, "flops": c.flops, "seconds": c.seconds}
            for c in design.candidates
        ],
    )
