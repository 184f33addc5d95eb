"""The scales on which a series may be modeled: as it is, a root of it, or its logarithm."""

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
