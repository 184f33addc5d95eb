"""The layers of a map: mean, standard error, quantiles, and probabilities of exceeding thresholds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from compositegp.backend import Floats
from compositegp.predictive import PredictiveDistribution

if TYPE_CHECKING:
    import xarray as xr


class Layers(NamedTuple):
    """Which layers a map has.

    Attributes
    ----------
    quantiles : tuple of float
        Ascending.
    above : tuple of float
        Thresholds.
    """

    quantiles: tuple[float, ...]
    above: tuple[float, ...]

    @classmethod
    def checked(cls, quantiles: Sequence[float], above: float | Sequence[float] | None) -> "Layers":
        """From a user's arguments."""
        levels = tuple(sorted({float(level) for level in quantiles}))
        if not all(0 < level < 1 for level in levels):
            raise ValueError(f"quantiles must be between 0 and 1; found {quantiles!r}.")
        thresholds = (
            () if above is None else tuple(float(one) for one in np.atleast_1d(np.asarray(above, dtype=float)))
        )
        if not np.isfinite(thresholds).all():
            raise ValueError(f"above must be finite thresholds in the unit of the target; found {above!r}.")
        return cls(levels, thresholds)

    def __len__(self) -> int:
        return 2 + len(self.quantiles) + len(self.above)

    def of_distribution(self, found: PredictiveDistribution) -> Floats:
        """The layers of predictions at M points: shape (layers, M)."""
        quantiles = [found.quantile(level) for level in self.quantiles]
        return np.stack([found.mean, found.std, *quantiles, *(1 - found.cdf(one) for one in self.above)])

    def of_values(self, values: Any) -> Any:
        """The layers of what was observed, an array of NumPy or of Dask: itself, with no error."""
        exceeds = [np.where(np.isnan(values), np.nan, values > one) for one in self.above]
        zero = np.where(np.isnan(values), np.nan, 0.0)
        return np.stack([values, zero, *([values] * len(self.quantiles)), *exceeds])

    def dataset(
        self, stacked: Any, template: "xr.DataArray", dims: tuple[str, ...], attributes: dict[str, Any]
    ) -> "xr.Dataset":
        """A Dataset with the coordinates of a template from the layers, shape (layers, cells along each axis).

        Parameters
        ----------
        stacked : array of NumPy or of Dask
        template : DataArray
            Whose coordinates are kept.
        dims : tuple of str
            Axes of the cells, in the order of `stacked`.
        attributes : dict
            Attributes of the target, such as its units.
        """
        import xarray as xr

        first = 2 + len(self.quantiles)
        name = attributes.get("long_name", template.name)
        kept = {key: value for key, value in attributes.items() if key not in _OF_OBSERVATIONS}
        described = {**kept, "long_name": f"{name}, mean"}
        layers: dict[str, Any] = {"mean": (dims, stacked[0], described)}
        layers["std"] = (dims, stacked[1], {**_unit(kept), "long_name": f"{name}, standard error"})
        if self.quantiles:
            layers["quantiles"] = (
                ("quantile", *dims),
                stacked[2:first],
                {**kept, "long_name": f"{name}, quantiles"},
            )
        if self.above:
            text = f"probability that {name} is over the threshold"
            layers["exceedance"] = (("threshold", *dims), stacked[first:], {"long_name": text, "units": "1"})
        coordinates: dict[Any, Any] = dict(template.coords)
        if self.quantiles:
            coordinates["quantile"] = ("quantile", list(self.quantiles))
        if self.above:
            coordinates["threshold"] = ("threshold", list(self.above), _unit(kept))
        found = xr.Dataset(layers, coordinates)
        mapping = template.attrs.get("grid_mapping", template.encoding.get("grid_mapping"))
        if mapping is not None:
            for layer in found.data_vars.values():
                layer.attrs.pop("grid_mapping", None)
                layer.encoding["grid_mapping"] = mapping
        return found


def check_samples(samples: Any) -> None:
    """Check the number of joint draws."""
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < 0:
        raise ValueError(f"samples must be a whole number of draws, 0 or more; found {samples!r}.")


def sample_layer(drawn: Any, dims: tuple[str, ...], attributes: dict[str, Any]) -> Any:
    """Joint draws, shape (samples, cells along each axis), as a layer with a first axis ``sample``.

    Parameters
    ----------
    drawn : array
    dims : tuple of str
        Axes of the map.
    attributes : dict
        Of the target.
    """
    name = attributes.get("long_name", "field")
    return (("sample", *dims), drawn, {**_unit(attributes), "long_name": f"{name}, joint draws"})


_OF_OBSERVATIONS = (
    "standard_name",
    "valid_min",
    "valid_max",
    "valid_range",
    "actual_range",
    "cell_methods",
    "_FillValue",
)


def _unit(attributes: dict[str, Any]) -> dict[str, Any]:
    return {"units": attributes["units"]} if "units" in attributes else {}
