"""The terms on a GPU: seconds beside the roofline, and beside the same work on the processor.

    python benchmarks/device.py                       # on the first GPU: the terms, then the estimator
    python benchmarks/device.py --only terms --profile    # and which operations take the time
    python benchmarks/device.py --device cpu --blocks 8 --tests 200 --only terms   # a try-out without one

N = 512 × blocks observations in 8 columns. The floor of each figure is the larger of its floating-point operations over
the measured rate of a large matrix product in double precision, and its bytes (each array read or written once) over
the measured rate of a copy.
"""

import argparse
import time
import warnings
from collections.abc import Callable

import data as real
import numpy as np
import torch
from scale import table
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from timing import header, machine

from compositegp import (
    Composite,
    CompositeGPRegressor,
    CompositeLikelihood,
    conditioning_sets,
    learn,
    nearest,
    segment,
    use_device,
)
from compositegp.backend import cholesky, current_device
from compositegp.composite import Observations, total_score
from compositegp.kernels import gram

SIZE, COLUMNS, NEIGHBORS = 512, 8, 256
ROWS = 1_024_000, 10_000  # of the table that the estimator is fitted to, and to be predicted
NO_COEFFICIENTS = np.zeros((0, 1))  # of a mean that is zero
TRUTH = 1.0 * Matern(np.linspace(0.6, 2.0, COLUMNS), nu=1.5) + WhiteKernel(0.1)


def seconds(function: Callable[[], object], repeats: int = 5) -> float:
    """Median time of a call, after a first that is not counted."""
    found = []
    for _ in range(repeats + 1):
        wait()
        began = time.perf_counter()
        function()
        wait()
        found.append(time.perf_counter() - began)
    return float(np.median(found[1:] or found))


def wait() -> None:
    if current_device().name.startswith("cuda"):
        torch.cuda.synchronize()


def ceilings() -> tuple[float, float]:
    """Operations a second of a large product in double precision, and bytes a second of a copy."""
    device = current_device()
    side = 8192 if device.name.startswith("cuda") else 1024
    A = torch.rand((side, side), dtype=torch.float64, device=device.name)
    B, C = torch.rand_like(A), torch.empty_like(A)
    return 2 * side**3 / seconds(lambda: torch.mm(A, B, out=C)), 2 * 8 * side**2 / seconds(lambda: C.copy_(A))


def draw(X: np.ndarray, segments: list[np.ndarray]) -> np.ndarray:
    """Data with the true kernel's covariance inside every segment."""
    y, rng = np.empty(len(X)), np.random.default_rng(1)
    sets = np.stack(segments)
    device = current_device()
    for rows in np.array_split(sets, -(-len(sets) // 256)):
        lower, _ = cholesky(gram(TRUTH, device.send(X[rows])))
        noise = device.send(rng.normal(size=(*rows.shape, 1)))
        y[rows] = (torch.tril(lower) @ noise)[..., 0].cpu().numpy()
    return y


def estimator(device: str) -> None:
    """The whole estimator: the satellite split, if it is there, and a table of a million rows; twice, to be warm."""
    n, m = ROWS
    tasks = {
        f"table of {n:,} × {COLUMNS}, {m:,} to predict": (
            CompositeGPRegressor(device=device),
            *table(n, COLUMNS),
            table(m, COLUMNS, 2),
        )
    }
    split = real.satellite()
    if split is not None:
        kernel = ConstantKernel() * Matern(np.ones(2), nu=0.5) + WhiteKernel()
        model = CompositeGPRegressor(kernel, mean="linear", device=device)
        tasks = {
            "satellite field, 105,569 × 2, 42,740 to predict": (
                model,
                split.X,
                split.y,
                (split.X_test, split.y_test),
            ),
            **tasks,
        }
    print("\n| the estimator with a device | fit s | predict s | RMSE |\n|---|---|---|---|")
    for name, (model, X, y, (X_test, y_test)) in tasks.items():
        for turn in ("first", "second"):
            began = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X, y)
            fitted = time.perf_counter()
            mean = model.predict(X_test, return_std=True)[0]
            done = time.perf_counter()
            error = np.sqrt(np.mean((mean - y_test) ** 2))
            print(f"| {name}, {turn} time | {fitted - began:.1f} | {done - fitted:.1f} | {error:.4g} |", flush=True)


def print_profile(what: str, function: Callable[[], object]) -> None:
    """The operations that take most of the time of a call."""
    kinds = [torch.profiler.ProfilerActivity.CPU]
    if current_device().name.startswith("cuda"):
        kinds.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=kinds) as found:
        function()
        wait()
    order = "self_cuda_time_total" if len(kinds) > 1 else "self_cpu_time_total"
    print(f"\n{what}\n" + found.key_averages().table(sort_by=order, row_limit=16, max_name_column_width=56))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--blocks", type=int, default=2000)
    parser.add_argument("--tests", type=int, default=100_000)
    parser.add_argument("--processor", type=int, default=32, help="blocks for the same work on the processor")
    parser.add_argument("--only", choices=["terms", "estimator"], help="one of the two parts")
    parser.add_argument("--profile", action="store_true", help="which operations take the time of the terms")
    arguments = parser.parse_args()
    print(header("torch", "triton") + "\n")
    if arguments.only != "estimator":
        terms(arguments)
    if arguments.only != "terms":
        estimator(arguments.device)


def terms(arguments: argparse.Namespace) -> None:
    """The terms by themselves, beside what the machine could do at best."""
    n, N = SIZE, SIZE * arguments.blocks
    X = np.random.default_rng(0).uniform(0, 4, size=(N, COLUMNS))
    with use_device(arguments.device):
        segmented = seconds(lambda: segment(X, n), 1)
        segments = segment(X, n)
        composite = Composite.marginal(segments)
        numbers = np.arange(0, arguments.blocks, max(1, arguments.blocks // 200))
        conditioned = seconds(lambda: conditioning_sets(X, segments, 256, kernel=TRUTH, only=numbers), 1)
        rate, bandwidth = ceilings()
        name = torch.cuda.get_device_name() if arguments.device.startswith("cuda") else machine()
        print(
            f"{name}, PyTorch {torch.__version__}: {rate / 1e12:.1f} TFLOP/s, {bandwidth / 1e9:.0f} GB/s, both measured"
        )
        print(f"N = {N:,} × {COLUMNS}, segments of {n}\n")
        y = draw(X, segments)
        data = Observations.checked(TRUTH, X, y, mean=None, noise_variance=None)
        b, element = arguments.blocks, 8 * n * n
        batch = torch.from_numpy(X[np.stack(segments[:256])]).to(arguments.device)
        bare = seconds(lambda: cholesky(gram(TRUTH, batch))) * b / len(batch)

        # docs/scale.md: n³ for the factor and the inverse; the Gram matrix written, and read once for each of them
        floor = max(b * n**3 / rate, 3 * b * element / bandwidth)
        whole = seconds(lambda: total_score(data, composite, NO_COEFFICIENTS))
        probed = seconds(lambda: total_score(data, composite, NO_COEFFICIENTS, probes=1))
        report = [
            ("segments", segmented, None),
            (f"conditioning sets of 256 for {len(numbers)} of the segments", conditioned, None),
            (
                "Gram matrices and Cholesky factors alone",
                bare,
                max(b * n**3 / 3 / rate, 2 * b * element / bandwidth),
            ),
            ("likelihood and gradient", whole, floor),
            ("the same with the Fisher information by one probe", probed, floor),
        ]
        start = ConstantKernel() * Matern(np.ones(COLUMNS), nu=1.5) + WhiteKernel()
        began = time.perf_counter()
        result = learn(start, X, y, segments, learning=CompositeLikelihood(tolerance=0.02), conditioning_size=0)
        report.append(("learning to 2 %", time.perf_counter() - began, None))
        Z = np.random.default_rng(2).uniform(0, 4, size=(arguments.tests, COLUMNS))
        m, k = len(Z), NEIGHBORS
        floor = max(
            (m * k**3 / 3 + 2.0 * m * N * COLUMNS) / rate, (2 * m * k * k * 8 + 2.0 * m * N * 8) / bandwidth
        )
        predict = seconds(lambda: nearest(TRUTH, X, y, Z, n_neighbors=k), 1)
        report.append((f"{m:,} test points by the nearest {k}", predict, floor))
        if arguments.profile:
            print_profile("likelihood and gradient", lambda: total_score(data, composite, NO_COEFFICIENTS))
            print_profile("test points", lambda: nearest(TRUTH, X, y, Z, n_neighbors=k))
        report_batch = current_device().batch_elements // n**2
    few = Composite.marginal(segments[: arguments.processor])
    total_score(data, few, NO_COEFFICIENTS, n_jobs=1)
    began = time.perf_counter()
    expected = total_score(data, few, NO_COEFFICIENTS, n_jobs=1)
    processor = (time.perf_counter() - began) * b / arguments.processor
    with use_device(arguments.device):
        found = total_score(data, few, NO_COEFFICIENTS)
    print("| what | seconds | floor | over the floor |\n|---|---|---|---|")
    for what, took, least in report:
        print(f"| {what} | {took:.3f} | " + (f"{least:.3f} | {took / least:.1f} |" if least else "| |"))
    print(f"\nBatches of {report_batch} blocks. Likelihood and gradient by NumPy on one core: {processor:.1f} s, "
          f"{processor / whole:.0f} times as long.")  # fmt: skip
    error = np.abs(found.gradient - expected.gradient).max() / np.abs(expected.gradient).max()
    print(f"Likelihood and gradient of {arguments.processor} blocks differ from NumPy's by a relative "
          f"{abs(found.log_likelihood / expected.log_likelihood - 1):.0e} and {error:.0e}.")  # fmt: skip
    errors = np.sqrt(np.diagonal(result.theta_covariance))
    print(f"Learned from {result.n_segments} segments; largest standard error {errors.max():.3f}, largest distance "
          f"from the truth {np.abs((result.theta - TRUTH.theta) / errors).max():.1f} standard errors.")  # fmt: skip


if __name__ == "__main__":
    main()
