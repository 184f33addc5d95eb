"""The scales on which a series may be modeled: as it is, a root of it, or its logarithm."""

from compositegp.backend import Floats
from compositegp.predictive import IdentityTarget, LogTarget, PowerTarget, TargetTransform

TARGET_SCALES: dict[str | None, TargetTransform] = {
    None: IdentityTarget(),
    "sqrt": PowerTarget(0.5),
    "fourth_root": PowerTarget(0.25),
    "log": LogTarget(),
}
"""By the value of `target_transform`; the more a scale draws large values together, the later it comes."""

_WORDS = {None: "as it is", "sqrt": "square root", "fourth_root": "fourth root", "log": "logarithm"}


def scale_name(transform: TargetTransform) -> str | None:
    """The value of `target_transform` that stands for a scale.

    Examples
    --------
    >>> scale_name(PowerTarget(0.25))
    'fourth_root'
    """
    own = type(transform), vars(transform)
    return next(name for name, one in TARGET_SCALES.items() if (type(one), vars(one)) == own)


def scale_in_words(name: str | None) -> str:
    """A scale as readers are told of it.

    Parameters
    ----------
    name : {None, "sqrt", "fourth_root", "log"}
        A value of `target_transform`.

    Returns
    -------
    words : str

    Examples
    --------
    >>> scale_in_words("fourth_root")
    'fourth root'
    """
    return _WORDS[name]


def takes(scale: TargetTransform, values: Floats) -> bool:
    """Whether a scale is for such values: a logarithm for positive ones, a root also for zeros among them.

    Examples
    --------
    >>> import numpy as np
    >>> [takes(scale, np.array([0.0, 3.0])) for scale in TARGET_SCALES.values()]
    [True, True, True, False]
    """
    if isinstance(scale, IdentityTarget):
        return True
    least = float(values.min())
    return least > 0 or (least == 0 < float(values.max()) and isinstance(scale, PowerTarget))
