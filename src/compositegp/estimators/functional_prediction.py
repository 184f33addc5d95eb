"""Predictions of functionals by a fitted model, in the unit of the target."""

from typing import Any

import numpy as np

from compositegp.backend import Floats
from compositegp.estimators.fitted_model import FittedModel, new_noise
from compositegp.functionals import Functionals, OnFunctionals, lift
from compositegp.posteriors import Belief
from compositegp.prediction import functional_spread
from compositegp.predictive import Family, IdentityTarget, PredictiveDistribution


def predict_functionals(
    model: FittedModel,
    asked: Functionals,
    *,
    latent: bool,
    extra_noise: Floats | None,
    joint: bool,
    variance: str,
    n_jobs: int | None,
) -> PredictiveDistribution:
    """Predictive distribution of functionals.

    An observation of a functional is made of one observation of f at each of its points, each with noise of its own;
    derivatives and parts have no noise. Where points are calibrated, a functional has a normal distribution whose
    standard deviation is multiplied by what calibration does to that of its points (`functional_spread`).

    Parameters
    ----------
    model : FittedModel
    asked : Functionals
    latent, extra_noise, joint, variance, n_jobs
        As in `FittedModel.predict`.

    Returns
    -------
    PredictiveDistribution
    """
    if model.watched is not None:
        return _predict_watched(model, model.watched, asked, latent, extra_noise, variance)
    if variance == "honest" and joint:
        raise ValueError("variance='honest' is for each functional alone, not for a joint prediction.")
    if not isinstance(model.target.transform, IdentityTarget):
        _check_behind_transform(asked)
    kernel, (rows,) = lift(model.kernel, X=asked)
    assert isinstance(kernel, OnFunctionals)
    predictor = model.predictor.lifted(kernel.functionals)
    noise = new_noise(kernel, rows, latent, extra_noise, predictor.noise_variance)
    unit = {**_unit(model, asked), **_spread(model, asked, n_jobs)}
    if joint:
        return PredictiveDistribution.of_belief(predictor.joint(rows), noise, **unit)
    found = predictor.marginals(rows, n_jobs)
    variances = found.variance if variance == "claimed" else predictor.honest_variance(rows, found)
    return PredictiveDistribution.of_marginals(found.mean, variances + noise, **unit)


def _check_behind_transform(asked: Functionals) -> None:
    """Refuse functionals that have no meaning, or another unit than the others, where the target is transformed."""
    first = asked.starts[:-1]
    if ((asked.counts > 1) | (asked.has_noise[first] & (asked.weights[first] != 1))).any():
        raise ValueError(
            "the target is transformed, and the sum, average or multiple of a target is not that of its transform. "
            "Draw from the joint distribution at the points with sample_y, and average the draws."
        )
    if asked.is_point.any() and not asked.is_point.all():
        raise ValueError(
            "the target is transformed: values at points are in its unit, and derivatives and parts are those of the "
            "transformed target. Predict the two one after the other."
        )


def _unit(model: FittedModel, asked: Functionals) -> dict[str, Any]:
    constants = asked.constants.reshape(-1, *(1,) * (model.y.ndim - 1))
    return {
        "transform": IdentityTarget(),
        "offset": constants * model.target.offset,
        "output_scale": model.target.scale,
    }


def _predict_watched(
    model: FittedModel, belief: Belief, asked: Functionals, latent: bool, extra_noise: Floats | None, variance: str
) -> PredictiveDistribution:
    """Predictions of functionals that are watched, from the belief about them."""
    if variance == "honest":
        raise ValueError("variance='honest' needs the data, of which a model with watch keeps none.")
    known: dict[bytes, int] = {}
    assert belief.whitened is not None
    rows = belief.whitened.latent.points
    if isinstance(model.kernel, OnFunctionals):
        table = model.kernel.functionals[rows[:, -1].astype(np.intp)]
        known = {key: number for number, key in enumerate(table.keys)}
    chosen = [known.get(key, -1) for key in asked.keys]
    if -1 in chosen:
        raise ValueError(
            f"X has functionals (the first is number {chosen.index(-1)}) that are not among those in watch, and "
            "nothing is kept that could predict them."
        )
    found = Belief(belief.mean[chosen], belief.root[chosen])
    noise = new_noise(model.kernel, rows[chosen], latent, extra_noise)
    unit = _unit(model, asked)
    if asked.is_point.all():
        unit["transform"] = model.target.transform
    return PredictiveDistribution.of_belief(found, noise, **unit)


def _spread(model: FittedModel, asked: Functionals, n_jobs: int | None) -> dict[str, Any]:
    if model.tuning is None:
        return {}
    predictor = model.predictor

    def spread_at(points: Floats) -> tuple[Any, Family]:
        noise = new_noise(model.kernel, points, False, None)
        return predictor.spread(points, predictor.marginals(points, n_jobs), noise)

    return functional_spread(asked, spread_at)
