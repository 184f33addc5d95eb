"""Maps: the satellite image filled, a million cells from a million observations, and other libraries beside us.

    python benchmarks/maps.py satellite            # fill the image of Heaton et al. by the command line, and score it
    python benchmarks/maps.py million              # 10⁶ cells filled from 10⁶ observed ones, in chunks
    python benchmarks/maps.py peers [TASK ...]     # PyKrige, GSTools and verde (pip install pykrige gstools verde)

Every measurement is a process of its own, one at a time; memory is the peak of it and all that it starts.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from data import Split, precipitation, satellite
from isolation import watch

LEVELS = (0.5, 0.8, 0.95, 0.99)
TASKS = ("1000", "5000", "precipitation", "satellite")
METHODS = ("compositegp", "pykrige", "gstools", "verde")
LIMIT = 900.0


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
    model, _ = learn_stations(frame, target="value", n_jobs=-1)
    found = model.regressor.predict_distribution(split.X_test)
    coverage = {f"in {100 * level:g} %": float(found.coverage(split.y_test, level)) for level in LEVELS}
    rmse = float(np.sqrt(np.mean((found.mean - split.y_test) ** 2)))
    return {"RMSE": rmse, "CRPS": float(found.crps(split.y_test).mean()), **coverage}


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
    spline = vd.SplineCV(dampings=dampings, cv=vd.BlockKFold(spacing=np.ptp(places) / 20, n_splits=3))
    spline.fit((places[:, 0], places[:, 1]), y)
    return scores(spline.predict((tests[:, 0], tests[:, 1])), None, split.y_test)


def peers(names: list[str]) -> None:
    print("| task | method | seconds | MB | RMSE | CRPS | in 50, 80, 95, 99 % |\n|---|---|---|---|---|---|---|")
    for name in names:
        for method in METHODS:
            command = [sys.executable, __file__, "one", name, method]
            began = time.perf_counter()
            done, peak = watch(command, LIMIT)
            seconds = time.perf_counter() - began
            if done is None:
                print(f"| {name} | {method} | over {LIMIT:.0f} | {peak:.0f} | | | |", flush=True)
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
    print(json.dumps(globals()[f"run_{method}"](split, name in ("satellite", "precipitation"))))


def fill_satellite() -> None:
    """The whole way from a NetCDF file to layers and a picture, by the command line, and its scores."""
    import pandas as pd
    import xarray as xr

    split = satellite()
    if split is None:
        return
    points = pd.DataFrame(np.concatenate([split.X, split.X_test]), columns=["lon", "lat"])
    points["lst"] = np.concatenate([split.y, np.full(len(split.y_test), np.nan)])
    table = points.pivot(index="lat", columns="lon", values="lst")
    raster = xr.DataArray(table.to_numpy(), coords={"lat": table.index, "lon": table.columns}, dims=("lat", "lon"))
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "lst.nc", Path(folder) / "filled.nc"
        raster.rename("lst").assign_attrs(units="°C").to_netcdf(source)
        levels = sorted(
            {0.5 + sign * level / 2 for level in LEVELS for sign in (-1, 1)} | set(np.arange(1, 100) / 100)
        )
        quantiles = [option for level in levels for option in ("--quantile", f"{level:.4f}")]
        command = [sys.executable, "-m", "compositegp", "fill", str(source), "--out", str(out), *quantiles]
        began = time.perf_counter()
        done, peak = watch([*command, "--picture", str(Path(folder) / "filled.png")], LIMIT)
        seconds = time.perf_counter() - began
        if done is None or done.returncode:
            raise SystemExit("over the limit" if done is None else done.stderr)
        print(done.stdout)
        filled = xr.open_dataset(out)
        cells = {
            "lon": xr.DataArray(split.X_test[:, 0], dims="p"),
            "lat": xr.DataArray(split.X_test[:, 1], dims="p"),
        }
        there = filled.sel(cells, method="nearest")
        y = split.y_test
        hundredths = there["quantiles"].sel(quantile=np.arange(1, 100) / 100, method="nearest").to_numpy()
        shares = np.arange(1, 100)[:, None] / 100
        loss = np.where(y > hundredths, shares, shares - 1) * (y - hundredths)
        print(f"{seconds:.1f} s, {peak:.0f} MB, load {os.getloadavg()[0]:.1f}")
        print(f"RMSE {np.sqrt(np.mean((there['mean'].to_numpy() - y) ** 2)):.3f}, CRPS {2 * loss.mean():.3f}")
        for level in LEVELS:
            low, high = (
                there["quantiles"].sel(quantile=0.5 + sign * level / 2, method="nearest").to_numpy()
                for sign in (-1, 1)
            )
            print(f"in {100 * level:g} %: {np.mean((low <= y) & (y <= high)):.3f}")


def million() -> None:
    """Rasters of growing size, half of each missing, filled in chunks: memory and seconds a cell."""
    print("| cells | observed | seconds | peak MB |\n|---|---|---|---|")
    for side in (500, 1000, 1420):
        began = time.perf_counter()
        done, peak = watch([sys.executable, __file__, "raster", str(side)], 3600)
        if done is None or done.returncode:
            reason = "over an hour" if done is None else done.stderr.splitlines()[-1]
            print(f"| {side * side:,} | | {reason} | {peak:.0f} |")
            continue
        observed = done.stdout.split()[-1]
        print(
            f"| {side * side:,} | {int(observed):,} | {time.perf_counter() - began:.0f} | {peak:.0f} |", flush=True
        )


def raster(side: int) -> None:
    """Fill one raster: read from Zarr in chunks, written to Zarr in chunks."""
    import dask
    import xarray as xr

    from compositegp import Nearest
    from compositegp.spatial import fill

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        rows, columns = np.mgrid[0:side, 0:side]
        values = sum(
            np.sin(rows / a + columns / b + c) for a, b, c in rng.uniform([8, 8, 0], [60, 60, 6], size=(12, 3))
        ) + 0.2 * rng.normal(size=(side, side))
        values[rng.uniform(size=values.shape) < 0.5] = np.nan
        source = xr.DataArray(values.astype(np.float32), dims=("y", "x"), name="field")
        source.chunk({"y": 250, "x": 250}).to_dataset().to_zarr(f"{folder}/in.zarr", consolidated=False)
        observed = int(np.isfinite(values).sum())
        del values, rows, columns, source
        data = xr.open_zarr(f"{folder}/in.zarr", consolidated=False)
        filled = fill(data, "field", prediction=Nearest(64), quantiles=(), n_jobs=-1)
        with dask.config.set(scheduler="threads", num_workers=2):
            filled.to_zarr(f"{folder}/out.zarr", consolidated=False)
    print(observed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["satellite", "million", "peers", "one", "raster"])
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    if given.what == "peers":
        peers(given.names or list(TASKS))
    elif given.what == "one":
        one(*given.names)
    elif given.what == "raster":
        raster(int(given.names[0]))
    else:
        {"satellite": fill_satellite, "million": million}[given.what]()


if __name__ == "__main__":
    main()
