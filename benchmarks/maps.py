"""Maps: the satellite image filled, a million cells from a million observations, and other libraries beside us.

    python benchmarks/maps.py satellite            # fill the image of Heaton et al. by the command line, and score it
    python benchmarks/maps.py mirrored             # the training part of the image under its own gaps, mirrored
    python benchmarks/maps.py stations             # map the precipitation of April 1948 in the US by the command line
    python benchmarks/maps.py million [SIDE ...]   # rasters of SIDE² cells, half missing, filled in chunks;
                                                   # up to 10⁶ cells filled from 10⁶ observed ones by default
    python benchmarks/maps.py peers [TASK ...] [--limit SECONDS]    # PyKrige, GSTools and verde beside us

The other libraries: pip install 'compositegp[peers-maps]'. With --picture FILE satellite and stations keep theirs.
Every measurement is a process of its own, one at a time; memory is the peak of it and all that it starts.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from data import Split, precipitation, satellite
from isolation import watch
from timing import header

LEVELS = (0.5, 0.8, 0.95, 0.99)
TASKS = ("1000", "5000", "precipitation", "satellite")
METHODS = ("compositegp", "pykrige", "gstools", "verde")
LIMIT = 900.0
HOUR = 3600.0
SIDES = (500, 1000, 1420)  # of the last about a million cells are observed, and as many are filled
CHUNK = 250
INSTALL = "pip install 'compositegp[peers-maps]'"
NODES = 16  # levels by whose quantiles CRPS is computed
MIRRORED = 4000  # cells under mirrored gaps that are scored
MIRRORS = {
    "both ways": np.s_[::-1, ::-1],
    "east for west": np.s_[:, ::-1],
    "south for north": np.s_[::-1, :],
}


def field(n: int) -> Split:
    """A simulated field of n places, a Matérn field with noise, and 1,000 places to predict."""
    from sklearn.gaussian_process.kernels import Matern, WhiteKernel

    rng = np.random.default_rng(1)
    X = rng.uniform(0, 10, size=(n + 1000, 2))
    y = np.linalg.cholesky((Matern(1.0, nu=1.5) + WhiteKernel(0.05))(X)) @ rng.normal(size=len(X))
    return Split(X[:n], y[:n], X[n:], y[n:])


def task(name: str) -> Split | None:
    if name == "satellite":
        return satellite()
    return precipitation() if name == "precipitation" else field(int(name))


def scores(mean: np.ndarray, std: np.ndarray | None, y: np.ndarray) -> dict[str, float]:
    """RMSE and, of a Gaussian with these standard deviations, CRPS and coverage."""
    from scipy.stats import norm

    found = {"RMSE": float(np.sqrt(np.mean((mean - y) ** 2)))}
    if std is not None:
        z = (y - mean) / np.maximum(std, 1e-12)
        found["CRPS"] = float(np.mean(std * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))))
        for level in LEVELS:
            found[f"in {100 * level:g} %"] = float(np.mean(np.abs(z) <= norm.ppf(0.5 + level / 2)))
    return found


def run_compositegp(split: Split, lonlat: bool) -> dict[str, float]:
    import pandas as pd

    from compositegp.spatial import learn_stations

    names = ["lon", "lat"] if lonlat else ["x", "y"]
    frame = pd.DataFrame(split.X, columns=names).assign(value=split.y)
    model, _ = learn_stations(frame, target="value")
    return scored(model.regressor.predict_distribution(split.X_test), split.y_test)


def run_fill(split: Split, lonlat: bool) -> dict[str, float]:
    """The same for places that are the cells of a raster: the model of `fill`, which sees its gaps."""
    from compositegp.spatial import learn_raster

    model = learn_raster(image_of(split))
    return scored(model.regressor.predict_distribution(split.X_test), split.y_test)


def image_of(split: Split) -> Any:
    """The raster of a split whose places are cells; those of the test part are missing."""
    import pandas as pd
    import xarray as xr

    points = pd.DataFrame(np.concatenate([split.X, split.X_test]), columns=["lon", "lat"])
    points["lst"] = np.concatenate([split.y, np.full(len(split.y_test), np.nan)])
    table = points.pivot(index="lat", columns="lon", values="lst")
    coordinates = {"lat": table.index, "lon": table.columns}
    raster = xr.DataArray(table.to_numpy(), coords=coordinates, dims=("lat", "lon"), name="lst")
    return raster.assign_attrs(units="°C", long_name="land surface temperature")


def scored(found: Any, y: np.ndarray) -> dict[str, float]:
    coverage = {f"in {100 * level:g} %": float(found.coverage(y, level)) for level in LEVELS}
    rmse = float(np.sqrt(np.mean((found.mean - y) ** 2)))
    return {"RMSE": rmse, "CRPS": float(found.crps(y).mean()), **coverage}


def run_pykrige(split: Split, lonlat: bool) -> dict[str, float]:
    """Whole where all the stations fit into one system, else a moving window of the 64 nearest."""
    from pykrige.ok import OrdinaryKriging

    n, rng = len(split.y), np.random.default_rng(0)
    sample = rng.permutation(n)[:5000]  # its variogram takes all pairs
    kind = "geographic" if lonlat else "euclidean"
    fitted = OrdinaryKriging(
        *split.X[sample].T, split.y[sample], variogram_model="exponential", coordinates_type=kind, nlags=20
    )
    if n <= 5000:
        mean, variance = fitted.execute("points", *split.X_test.T)
    else:
        whole = OrdinaryKriging.__new__(OrdinaryKriging)
        whole.__dict__.update(fitted.__dict__)
        whole.X_ADJUSTED, whole.Y_ADJUSTED, whole.Z = split.X[:, 0], split.X[:, 1], split.y
        mean, variance = whole.execute("points", *split.X_test.T, n_closest_points=64, backend="loop")
    return scores(np.asarray(mean), np.sqrt(np.maximum(np.asarray(variance), 0)), split.y_test)


def run_gstools(split: Split, lonlat: bool) -> dict[str, float]:
    import gstools as gs

    if len(split.y) > 6000:
        raise MemoryError("GSTools kriges with all the stations at once: more than 6,000 are not tried")
    places, tests = (split.X[:, ::-1].T, split.X_test[:, ::-1].T) if lonlat else (split.X.T, split.X_test.T)
    options = {"latlon": True, "geo_scale": gs.KM_SCALE} if lonlat else {"dim": 2}
    unit = {"latlon": True, "geo_scale": gs.KM_SCALE} if lonlat else {}
    lags, gamma = gs.vario_estimate(places, split.y, sampling_size=2000, sampling_seed=1, **unit)
    model = gs.Exponential(**options)
    model.fit_variogram(lags, gamma, nugget=True)
    krige = gs.krige.Ordinary(model, places, split.y, exact=False)
    mean, variance = krige(tests, mesh_type="unstructured")
    return scores(mean, np.sqrt(np.maximum(variance + model.nugget, 0)), split.y_test)


def run_verde(split: Split, lonlat: bool) -> dict[str, float]:
    """Its spline has no error bars; of more than 5,000 stations it takes means over blocks."""
    import verde as vd

    places, tests, y = split.X.copy(), split.X_test.copy(), split.y
    if lonlat:
        scale = np.cos(np.radians(places[:, 1].mean()))
        places[:, 0], tests[:, 0] = places[:, 0] * scale, tests[:, 0] * scale
    if len(y) > 5000:
        spacing = float(np.sqrt(np.ptp(places[:, 0]) * np.ptp(places[:, 1]) / 5000))
        (east, north), y = vd.BlockReduce(np.mean, spacing=spacing).filter((places[:, 0], places[:, 1]), y)
        places = np.column_stack([east, north])
    dampings = [1e-6, 1e-4, 1e-2]
    spline = vd.SplineCV(dampings=dampings, cv=vd.BlockKFold(spacing=np.ptp(places, axis=0).max() / 20, n_splits=3))
    spline.fit((places[:, 0], places[:, 1]), y)
    return scores(spline.predict((tests[:, 0], tests[:, 1])), None, split.y_test)


def peers(names: list[str], limit: float) -> None:
    print(f"{header('pykrige', 'gstools', 'verde')}. The other libraries: `{INSTALL}`.\n")
    print("| task | method | seconds | MB | RMSE | CRPS | in 50, 80, 95, 99 % |\n|---|---|---|---|---|---|---|")
    for name in names:
        for method in METHODS:
            command = [sys.executable, __file__, "one", name, method]
            began = time.perf_counter()
            done, peak = watch(command, limit)
            seconds = time.perf_counter() - began
            if done is None:
                print(f"| {name} | {method} | over {limit:.0f} | {peak:.0f} | | | |", flush=True)
                continue
            if done.returncode:
                reason = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "failed"
                print(f"| {name} | {method} | — | | {reason[:90]} | | |", flush=True)
                continue
            found = json.loads(done.stdout.splitlines()[-1])
            inside = ", ".join(f"{found[f'in {100 * level:g} %']:.3f}" for level in LEVELS if "CRPS" in found)
            crps = f"{found['CRPS']:.3f}" if "CRPS" in found else ""
            told = f"| {name} | {method} | {seconds:.0f} | {peak:.0f} | {found['RMSE']:.3f} | {crps} | {inside} |"
            print(told, flush=True)


def one(name: str, method: str) -> None:
    split = task(name)
    if split is None:
        raise SystemExit("no data")
    if (name, method) == ("satellite", "compositegp"):
        method = "fill"
    print(json.dumps(globals()[f"run_{method}"](split, name in ("satellite", "precipitation"))))


def fill_satellite(limit: float, picture: Path | None) -> None:
    """The whole way from a NetCDF file to layers and a picture, by the command line, and its scores."""
    import xarray as xr

    split = satellite()
    if split is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "lst.nc", Path(folder) / "filled.nc"
        image_of(split).to_netcdf(source)
        # CRPS is twice the integral of the quantile loss over levels: by Gauss and Legendre.
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        nodes = np.round(0.5 + nodes / 2, 6)
        levels = sorted({round(0.5 + sign * level / 2, 6) for level in LEVELS for sign in (-1, 1)} | set(nodes))
        quantiles = [option for level in levels for option in ("--quantile", f"{level:.6f}")]
        command = [sys.executable, "-m", "compositegp", "fill", str(source), "--out", str(out), *quantiles]
        began = time.perf_counter()
        drawn = picture or Path(folder) / "filled.png"
        done, peak = watch([*command, "--picture", str(drawn)], limit)
        seconds = time.perf_counter() - began
        if done is None or done.returncode:
            raise SystemExit("over the limit" if done is None else done.stderr)
        print(header("xarray") + "\n")
        print(done.stdout)
        filled = xr.open_dataset(out)
        cells = {
            "lon": xr.DataArray(split.X_test[:, 0], dims="p"),
            "lat": xr.DataArray(split.X_test[:, 1], dims="p"),
        }
        there = filled.sel(cells, method="nearest")
        y = split.y_test
        values = there["quantiles"].sel(quantile=nodes, method="nearest").to_numpy()
        loss = np.where(y > values, nodes[:, None], nodes[:, None] - 1) * (y - values)
        crps = float(weights @ loss.mean(axis=1))  # weights of (−1, 1) are twice those of (0, 1)
        print(f"{seconds:.1f} s, {peak:.0f} MB, load {os.getloadavg()[0]:.1f}")
        print(f"RMSE {np.sqrt(np.mean((there['mean'].to_numpy() - y) ** 2)):.3f}, CRPS {crps:.3f}")
        for level in LEVELS:
            low, high = (
                there["quantiles"].sel(quantile=0.5 + sign * level / 2, method="nearest").to_numpy()
                for sign in (-1, 1)
            )
            print(f"in {100 * level:g} %: {np.mean((low <= y) & (y <= high)):.3f}")


def fill_mirrored() -> None:
    """Gaps of the image, mirrored and laid over observed cells: what learning in gaps gains, on training data alone."""
    from sklearn.base import clone
    from sklearn.exceptions import ConvergenceWarning

    from compositegp.spatial import learn_raster

    split = satellite()
    if split is None:
        return
    image = image_of(split)
    missing = image.isnull().to_numpy()
    print(header("xarray") + "\n")
    print("| mirrored | learned | CPU seconds | kernel | RMSE | CRPS | in 50, 80, 95, 99 % |")
    print("|---|---|---|---|---|---|---|")
    for name, mirror in MIRRORS.items():
        hidden = missing[mirror] & ~missing
        gappy = image.where(~hidden)
        cells = np.argwhere(hidden)
        cells = cells[np.sort(np.random.default_rng(0).permutation(len(cells))[:MIRRORED])]
        Z = np.column_stack([image.lon.to_numpy()[cells[:, 1]], image.lat.to_numpy()[cells[:, 0]]])
        y = image.to_numpy()[tuple(cells.T)]
        began = time.process_time()
        model = learn_raster(gappy)
        middle = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of a parameter that does not matter
            plain = clone(model.regressor).fit(model.X, model.y)
        seconds = middle - began, time.process_time() - middle
        for how, one, spent in zip(("in gaps", "among the data"), (model.regressor, plain), seconds, strict=True):
            found = scored(one.predict_distribution(Z), y)
            inside = ", ".join(f"{found[f'in {100 * level:g} %']:.3f}" for level in LEVELS)
            kernel = one.kernel_comparison_.best.name
            told = f"| {name} | {how} | {spent:.0f} | {kernel} | {found['RMSE']:.3f} | {found['CRPS']:.3f} | {inside} |"
            print(told, flush=True)


def map_stations(limit: float, picture: Path | None) -> None:
    """From a table of stations to a map and a page, by the command line; `peers` scores it on a tenth left out."""
    import pandas as pd

    split = precipitation()
    if split is None:
        return
    frame = pd.DataFrame(np.concatenate([split.X, split.X_test]), columns=["lon", "lat"])
    frame["precipitation anomaly"] = np.concatenate([split.y, split.y_test])
    with tempfile.TemporaryDirectory() as folder:
        frame.to_csv(Path(folder) / "stations.csv", index=False)
        command = [sys.executable, "-m", "compositegp", "map", f"{folder}/stations.csv"]
        command += ["--target", "precipitation anomaly", "--unit", "standardized"]
        began = time.perf_counter()
        done, peak = watch([*command, "--grid", "0.25", "--out", f"{folder}/map", "--report"], limit)
        seconds = time.perf_counter() - began
        if done is None or done.returncode:
            raise SystemExit("over the limit" if done is None else done.stderr)
        print(header("xarray") + "\n")
        print(done.stdout)
        print(f"{seconds:.1f} s, {peak:.0f} MB, load {os.getloadavg()[0]:.1f}")
        if picture is not None:
            picture.write_bytes((Path(folder) / "map" / "map.png").read_bytes())


def million(sides: list[int]) -> None:
    """Rasters of growing size, half of each missing, filled in chunks: seconds, and memory that does not grow."""
    print(header("xarray", "dask", "zarr") + "\n")
    print("| cells | observed | filled | seconds | cells a second | peak MB |\n|---|---|---|---|---|---|")
    for side in sides:
        with tempfile.TemporaryDirectory() as folder:
            made, _ = watch([sys.executable, __file__, "make", folder, str(side)], HOUR)
            if made is None or made.returncode:
                raise SystemExit("making the raster took over an hour" if made is None else made.stderr)
            observed = int(made.stdout)
            began = time.perf_counter()
            done, peak = watch([sys.executable, __file__, "raster", folder], HOUR)
            seconds = time.perf_counter() - began
        filled = side * side - observed
        head = f"| {side * side:,} | {observed:,} | {filled:,} |"
        if done is None or done.returncode:
            print(
                head,
                "over an hour" if done is None else done.stderr.splitlines()[-1],
                f"| | {peak:.0f} |",
                flush=True,
            )
        else:
            print(head, f"{seconds:.0f} | {filled / seconds:.0f} | {peak:.0f} |", flush=True)


def make(folder: str, side: int) -> None:
    """Write a raster to Zarr in strips, waves with noise and clouds over half of it; print how many cells are seen."""
    import dask.array as da
    import xarray as xr

    rng = np.random.default_rng(0)
    waves = rng.uniform([8, 8, 0], [60, 60, 6], size=(12, 3))
    clouds = rng.uniform([5, 5, 0], [25, 25, 6], size=(9, 3)) * rng.choice([-1, 1], size=(9, 3))

    def strip(start: int) -> np.ndarray:
        rows, columns = np.mgrid[start : min(start + CHUNK, side), 0:side]
        values, cover = (sum(np.sin(rows / a + columns / b + c) for a, b, c in some) for some in (waves, clouds))
        values = values + 0.2 * np.random.default_rng(start).normal(size=rows.shape)
        return np.where(cover > 0, np.nan, values).astype(np.float32)

    data = da.full((side, side), np.nan, dtype=np.float32, chunks=(CHUNK, CHUNK))
    xr.DataArray(data, dims=("y", "x"), name="field").to_dataset().to_zarr(
        f"{folder}/in.zarr", compute=False, consolidated=False
    )
    observed = 0
    for start in range(0, side, CHUNK):
        part = strip(start)
        observed += int(np.isfinite(part).sum())
        region = {"y": slice(start, start + len(part)), "x": slice(0, side)}
        xr.DataArray(part, dims=("y", "x"), name="field").to_dataset().to_zarr(
            f"{folder}/in.zarr", region=region, consolidated=False
        )
    print(observed)


def raster(folder: str) -> None:
    """Fill one raster from the 64 nearest cells: read from Zarr in chunks, written to Zarr in chunks."""
    import dask
    import xarray as xr

    from compositegp import Nearest
    from compositegp.spatial import fill

    data = xr.open_zarr(f"{folder}/in.zarr", consolidated=False)
    filled = fill(data, "field", prediction=Nearest(64), quantiles=())
    with dask.config.set(scheduler="threads", num_workers=2):
        filled.to_zarr(f"{folder}/out.zarr", consolidated=False)
    if bool(xr.open_zarr(f"{folder}/out.zarr", consolidated=False)["mean"].isnull().any().compute()):
        raise SystemExit("some cells were not filled")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "what", choices=["satellite", "mirrored", "stations", "million", "peers", "one", "make", "raster"]
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for each method")
    parser.add_argument("--picture", type=Path, help="where to keep the picture of the map")
    given = parser.parse_args()
    if given.what == "peers":
        peers(given.names or list(TASKS), given.limit)
    elif given.what == "one":
        one(*given.names)
    elif given.what == "million":
        million([int(side) for side in given.names] or list(SIDES))
    elif given.what == "mirrored":
        fill_mirrored()
    elif given.what == "make":
        make(given.names[0], int(given.names[1]))
    elif given.what == "raster":
        raster(given.names[0])
    else:
        {"satellite": fill_satellite, "stations": map_stations}[given.what](given.limit, given.picture)


if __name__ == "__main__":
    main()
