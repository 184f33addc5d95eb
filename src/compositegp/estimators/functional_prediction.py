"""Predictions of functionals by a fitted model, in the unit of the target."""

from typing import Any

import numpy as np

from compositegp.backend import Floats
from compositegp.estimators.fitted_model import FittedModel, new_noise
from compositegp.functionals import Functionals, OnFunctionals, lift
from compositegp.predictive import IdentityTarget, Normal, PredictiveDistribution

_REFERENCES = 8  # points of a functional whose calibration it takes, at most


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
    standard deviation is multiplied by what calibration does to that of its points (their geometric mean).

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
        raise ValueError("a model with watch keeps a belief about the points it watches, and no other functionals.")
    if variance == "honest" and joint:
        raise ValueError("variance='honest' is for each functional alone, not for a joint prediction.")
    if not isinstance(model.target.transform, IdentityTarget) and (asked.counts > 1).any():
        raise ValueError(
            "the target is transformed, and the sum or average of a target is not that of its transform. Draw from the "
            "joint distribution at the points with sample_y, and average the draws."
        )
    kernel, (rows,) = lift(model.kernel, X=asked)
    assert isinstance(kernel, OnFunctionals)
    predictor = model.predictor.lifted(kernel.functionals)
    noise = new_noise(kernel, rows, latent, extra_noise, predictor.noise_variance)
    constants = asked.constants.reshape(-1, *(1,) * (model.y.ndim - 1))
    unit: dict[str, Any] = {
        "transform": IdentityTarget(),
        "offset": constants * model.target.offset,
        "output_scale": model.target.scale,
        **_spread(model, asked, n_jobs),
    }
    if joint:
        return PredictiveDistribution.of_belief(predictor.joint(rows), noise, **unit)
    found = predictor.marginals(rows, n_jobs)
    variances = found.variance if variance == "claimed" else predictor.honest_variance(rows, found)
    return PredictiveDistribution.of_marginals(found.mean, variances + noise, **unit)


def _spread(model: FittedModel, asked: Functionals, n_jobs: int | None) -> dict[str, Any]:
    """Factors (M, t) on standard deviations: those of some of the points, scale and tails together."""
    if model.tuning is None:
        return {}
    ranks = np.arange(len(asked.points)) - asked.starts[asked.owners]
    steps = np.maximum(asked.counts // _REFERENCES, 1)[asked.owners]
    chosen = np.flatnonzero((ranks % steps == 0) & (ranks // steps < _REFERENCES))
    points, place = np.unique(asked.points[chosen], axis=0, return_inverse=True)
    predictor = model.predictor
    found = predictor.marginals(points, n_jobs)
    factors, family = predictor.spread(points, found, new_noise(model.kernel, points, False, None))
    if not np.ndim(factors) and isinstance(family, Normal):
        return {}
    tails = np.broadcast_to(np.reshape(family.std, (-1, 1)), (len(points), 1))
    logs = np.log(np.broadcast_to(factors, (len(points), np.shape(factors)[-1] if np.ndim(factors) else 1)) * tails)
    owners = asked.owners[chosen]
    sums = [np.bincount(owners, column, len(asked)) for column in logs[place.ravel()].T]
    return {"factors": np.exp(np.stack(sums, axis=1) / np.bincount(owners, minlength=len(asked))[:, None])}
