"""What works with the core dependencies alone: run by `make dist` in a clean environment, with the wheel installed."""

import importlib.util
import tempfile
from pathlib import Path

import numpy as np

from compositegp import Composite, CompositeGPRegressor, posterior


def main() -> None:
    """Fit, predict, save and read a model."""
    for heavy in ("pandas", "matplotlib", "torch", "dask", "xarray"):
        assert importlib.util.find_spec(heavy) is None, f"{heavy} is installed: this environment is not clean"

    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, size=(700, 2))
    y = np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=700)
    model = CompositeGPRegressor(random_state=0).fit(X, y)
    found = model.predict_distribution([[5.0, 5.0], [1.0, 2.0]])
    assert np.abs(found.mean - np.sin([[5.0, 5.0], [1.0, 2.0]]).sum(axis=1)).max() < 0.2
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.cgp")
        again = CompositeGPRegressor.load(Path(folder) / "model.cgp")
    assert np.array_equal(again.predict(X[:5]), model.predict(X[:5]))
    belief = posterior(model.kernel_, X[:50], y[:50], X[:3], Composite.full(50))
    assert np.isfinite(belief.mean).all()
    print("works with the core dependencies alone")


if __name__ == "__main__":
    main()
