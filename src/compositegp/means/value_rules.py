"""What a mean may be made of, if it is to be written to a file and read again."""

from compositegp.means.functions import Basis, Constant, Estimated, Linear, PeriodicLevels
from compositegp.validation import are_finite


def check_mean_values(mean: Constant | Linear | PeriodicLevels | Basis | Estimated) -> None:
    """Check the values inside a mean: finite numbers, and basis functions with a name.

    Parameters
    ----------
    mean : Constant, Linear, PeriodicLevels, Basis or Estimated

    Examples
    --------
    >>> check_mean_values(Constant(float("nan")))
    Traceback (most recent call last):
    ValueError: value of mean Constant must be finite numbers; found nan
    """
    if isinstance(mean, PeriodicLevels):
        return  # checked when it was made
    for name, value in vars(mean).items():
        if name == "functions":
            named = isinstance(value, PeriodicLevels) or value in ("constant", "linear")
            if not named:
                raise ValueError(f"functions of mean {type(mean).__name__} must have a name; found {value!r:.60}")
        elif not are_finite(value) and not (value is None and isinstance(mean, Basis)):
            raise ValueError(f"{name} of mean {type(mean).__name__} must be finite numbers; found {value!r:.60}")
