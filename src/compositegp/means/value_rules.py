"""What a mean may be made of, if it is to be written to a file and read again."""

import numpy as np

from compositegp.means.functions import Basis, Constant, Estimated, Linear, LinearIn, PeriodicLevels
from compositegp.means.units import InUnitsOfData
from compositegp.validation import are_finite


def check_mean_values(
    mean: Constant | Linear | LinearIn | PeriodicLevels | Basis | Estimated | InUnitsOfData,
) -> None:
    """Check the values inside a mean: finite numbers, and basis functions with a name.

    Parameters
    ----------
    mean : Constant, Linear, LinearIn, PeriodicLevels, Basis, Estimated or InUnitsOfData

    Examples
    --------
    >>> check_mean_values(Constant(float("nan")))
    Traceback (most recent call last):
    ValueError: value of mean Constant must be finite numbers; found nan
    """
    if isinstance(mean, PeriodicLevels | LinearIn):
        return  # checked when it was made
    kind = type(mean).__name__
    for name, value in vars(mean).items():
        if name == "functions":
            in_units = isinstance(value, InUnitsOfData) and not isinstance(mean, InUnitsOfData)
            if (
                not in_units
                and not isinstance(value, PeriodicLevels | LinearIn)
                and value not in ("constant", "linear")
            ):
                raise ValueError(f"functions of mean {kind} must have a name; found {value!r:.60}")
        elif not are_finite(value) and not (value is None and isinstance(mean, Basis)):
            raise ValueError(f"{name} of mean {kind} must be finite numbers; found {value!r:.60}")
    if isinstance(mean, InUnitsOfData):
        q = len(np.atleast_1d(mean.scales))
        same = np.shape(mean.centers) == np.shape(mean.scales) == (q,)
        if (
            not same
            or not np.all(mean.scales)
            or not -1 <= mean.constant < q
            or mean.constant != int(mean.constant)
        ):
            raise ValueError(f"centers, scales and constant of mean {kind} do not fit together")
