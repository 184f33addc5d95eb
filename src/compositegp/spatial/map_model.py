"""A model of a field: a regressor of places, and what the places are."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from compositegp.backend import Floats
from compositegp.estimators import CompositeGPRegressor, ValidationReport
from compositegp.learning import CompositeLikelihood
from compositegp.means import Basis, LinearIn
from compositegp.posteriors import Gaps
from compositegp.prediction import PredictionMethod
from compositegp.predictive import LogTarget
from compositegp.spatial.description import describe, length_scales
from compositegp.spatial.families import map_kernels

_NATS = 0.005  # log score that errors of hyper-parameters may cost a cell (benchmarks/results/maps.md)


@dataclass(frozen=True, eq=False)
class MapModel:
    """A fitted model of a field; `fill` and `krige` take it in the place of learning a new one.

    Attributes
    ----------
    regressor : CompositeGPRegressor
        Of points (x, y, time where there is one, covariates).
    sphere : bool
        Whether x and y are longitude and latitude, and length scales of space are in kilometers.
    has_time : bool
    covariates : tuple of str
        Names of the columns whose linear drift is part of the mean.
    target : str
        Name of what is mapped.
    unit : str
        Of the target; may be empty.
    n_observed : int
        Observations of the field.
    X, y : arrays of shape (n, d) and (n,)
        The observations that were learned from.
    noise_variance : array of shape (n,) or None
        Known variances of their errors.
    notes : tuple of str
        What is to be known about the data, a sentence each.
    time_unit : str
        Of time, where there is one; empty where it is not known.
    """

    regressor: CompositeGPRegressor
    sphere: bool
    has_time: bool
    covariates: tuple[str, ...]
    target: str
    unit: str
    n_observed: int
    X: Floats
    y: Floats
    noise_variance: Floats | None = None
    notes: tuple[str, ...] = field(default=())
    time_unit: str = ""

    @property
    def latitude(self) -> float:
        """The mean latitude of the observations, where they are on the sphere; else the mean of y."""
        return float(self.X[:, 1].mean())

    @property
    def has_logarithm(self) -> bool:
        """Whether the logarithm of the target is modeled."""
        return bool(self.regressor.target_transform == "log")

    def check_arguments(self, *, log: bool, kernel: Any, prediction: Any) -> None:
        """Check that nothing is asked for that was decided when the model was learned."""
        given = {"log": log and not self.has_logarithm, "kernel": kernel is not None}
        given["prediction"] = not (isinstance(prediction, str) and prediction == "nearest")
        for name, asked in given.items():
            if asked:
                raise ValueError(
                    f"{name} is part of the model, which was learned otherwise: give {name} where it is learned, or do "
                    "without model."
                )

    def check_places(self, sphere: bool, has_time: bool, covariates: Iterable[str], time_unit: str = "") -> None:
        """Check that a model can predict at places of some kind: their sphere, time and covariates."""
        names = tuple(covariates)
        if (self.sphere, self.has_time) != (sphere, has_time) or (has_time and self.time_unit != time_unit):
            of = _kind(self.sphere, self.has_time, self.time_unit)
            raise ValueError(
                f"model was learned from places of another kind: {of}. Here they are "
                f"{_kind(sphere, has_time, time_unit)}."
            )
        if self.covariates != names:
            raise ValueError(
                f"model was learned with {_listed(self.covariates)}, but here there are {_listed(names)}. Give the "
                "same, in the same order."
            )

    def describe(self) -> list[str]:
        """What was learned, a sentence each."""
        return describe(
            self.regressor,
            self.sphere,
            self.has_time,
            self.covariates,
            self.unit,
            len(self.y),
            self.latitude,
            self.time_unit,
        )

    def validate(self, *, random_state: int = 0) -> ValidationReport:
        """How good predictions are, near the data and in gaps: see `CompositeGPRegressor.validate`.

        Distances are in length scales; `length_scales` tells how long these are.
        """
        return self.regressor.validate(random_state=random_state)

    @property
    def length_scales(self) -> dict[str, str]:
        """How long a length scale of the kernel is, with its unit, by the names of directions."""
        return length_scales(self.regressor, self.sphere, self.has_time, self.latitude, self.time_unit)


def _kind(sphere: bool, has_time: bool, time_unit: str) -> str:
    places = "longitude and latitude" if sphere else "x and y in the plane"
    return places + (f", with time{f' in {time_unit}' if time_unit else ''}" if has_time else ", without time")


def _listed(covariates: tuple[str, ...]) -> str:
    return f"the covariates {', '.join(covariates)}" if covariates else "no covariates"


def new_regressor(
    X: Floats,
    y: Floats,
    *,
    sphere: bool,
    has_time: bool,
    n_covariates: int,
    log: bool,
    kernel: Any = None,
    prediction: PredictionMethod | str = "nearest",
    random_state: int = 0,
    n_jobs: int | None = None,
) -> CompositeGPRegressor:
    """The regressor of a field before it is fitted: kernels that fit its places, and a drift in its covariates.

    Parameters
    ----------
    X : array of shape (n, d)
        Places, by which the kernels are chosen that are compared.
    y : array of shape (n,)
        Targets, by whose variance amplitudes are bounded.
    sphere, has_time : bool
    n_covariates : int
        Columns after the places.
    log : bool
        Model the logarithm of the target.
    kernel : scikit-learn kernel, list or dict of kernels, optional
        In the place of `map_kernels`.
    prediction, random_state, n_jobs
        As for `CompositeGPRegressor`.
    """
    targets = LogTarget().forward(y) if log else y
    if kernel is None:
        kernel = map_kernels(X, sphere=sphere, time=has_time, variance=float(targets.var()) or 1.0)
    n_places = 3 if has_time else 2
    drift = tuple(range(n_places, n_places + n_covariates))
    return CompositeGPRegressor(
        kernel,
        mean=Basis(LinearIn(drift)) if drift else "constant",
        target_transform="log" if log else None,
        learning=CompositeLikelihood(nats=_NATS),
        prediction=prediction,
        random_state=random_state,
        n_jobs=n_jobs,
    )


def fit_regressor(
    regressor: CompositeGPRegressor,
    X: Floats,
    y: Floats,
    noise_variance: Floats | None,
    automatic: bool,
    gaps: Gaps | None = None,
) -> None:
    """Fit a regressor of a field.

    Where a user has chosen no kernel (`automatic`), what there is to say about its hyper-parameters is no warning: it
    is among the map's cautions. With `gaps` the model is learned in gaps like those that are to be filled: see
    `CompositeGPRegressor.fit`.
    """
    with warnings.catch_warnings():
        if automatic:
            warnings.simplefilter("ignore", ConvergenceWarning)
        regressor.fit(X, y, noise_variance, gaps=gaps)


def check_targets(y: Floats, log: bool, what: str) -> None:
    """Check that there is something to learn from; a ValueError says in one sentence what is wrong."""
    if len(y) == 0:
        raise ValueError(f"{what} has no observed value: there is nothing to learn from.")
    if len(y) < 3:
        raise ValueError(f"{what} has {len(y)} observed value(s): a map needs at least three.")
    if not np.isfinite(y).all():
        raise ValueError(f"{what} has {int((~np.isfinite(y)).sum())} infinite value(s). Mark them as missing.")
    if np.ptp(y) == 0:
        raise ValueError(f"{what} is {y[0]:g} wherever it is observed: there is no variation to learn.")
    if log and y.min() <= 0:
        raise ValueError(f"{what} has values that are not positive (the smallest is {y.min():g}): do without log.")
