"""Which columns matter: average slopes of f by column, with error bars, and length scales in words."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from compositegp import functionals
from compositegp.backend import Floats
from compositegp.estimators.fitted_model import FittedModel
from compositegp.estimators.functional_prediction import predict_functionals
from compositegp.functionals import Functionals, plain_kernel, plain_points
from compositegp.kernels import derivative, metric
from compositegp.prediction import Committee
from compositegp.predictive import PredictiveDistribution

_POINTS = 200  # training points at which slopes are predicted
_JOINT = 1000  # with up to this many observations the slopes at all points are predicted jointly
_NEGLIGIBLE = 0.01  # effect of a column that hardly matters, over the largest
_STEP = 0.5  # width of differences, in standard deviations of a column, where f has no derivative


@dataclass(frozen=True, eq=False, repr=False)
class Importances:
    """How much f changes with each column, on average over training points.

    Attributes
    ----------
    names : list of str
        Of the d columns.
    effects : array of shape (d,), or (d, t) for t outputs
        Average size of the predicted slopes times the standard deviation of the column: how much f changes when the
        column changes by one standard deviation, in the unit of the target.
    standard_errors : array of the same shape
        Of the effects: what the data leave uncertain about the slopes, and the choice of the points.
    slopes : array of the same shape
        Average of ``|E ∂f/∂x|``, in units of target by column.
    spreads : array of shape (d,)
        Standard deviations of the columns.
    length_scales : array of shape (d,)
        Distance over which f changes, in the unit of the column; infinite where nearness in it does not matter.
    is_derivative : bool
        Whether slopes are derivatives. Where the kernel is too rough to have them, they are differences over half a
        standard deviation of the column.
    """

    names: list[str]
    effects: Floats
    standard_errors: Floats
    slopes: Floats
    spreads: Floats
    length_scales: Floats
    is_derivative: bool

    @property
    def order(self) -> Any:
        """Columns from the most to the least important; of several outputs by the mean of their effects."""
        return np.argsort(-self.effects.reshape(len(self.names), -1).mean(axis=1), kind="stable")

    @property
    def table(self) -> dict[str, Any]:
        """One row for each column, in the order of the data: for ``pandas.DataFrame(importances.table)``."""
        return {
            "column": self.names,
            "effect": self.effects,
            "standard_error": self.standard_errors,
            "slope": self.slopes,
            "length_scale": self.length_scales,
            "in_words": self.words,
        }

    @property
    def words(self) -> list[str]:
        """What effect and length scale of each column say about f."""
        effects = self.effects.reshape(len(self.names), -1).mean(axis=1)
        ratios = self.length_scales / np.where(self.spreads > 0, self.spreads, 1.0)
        return [_in_words(*pair) for pair in zip(effects / (effects.max() or 1.0), ratios, strict=True)]

    def __repr__(self) -> str:
        what = "slope" if self.is_derivative else "difference over half a standard deviation"
        lines = [f"average change of f for one standard deviation of a column, by its {what}:"]
        width = max(len(name) for name in self.names)
        shown = (part.reshape(len(self.names), -1).mean(axis=1) for part in (self.effects, self.standard_errors))
        effects, errors = shown
        for column in self.order:
            lines.append(
                f"{self.names[column]:>{width}s} {effects[column]:10.4g} ± {errors[column]:<9.2g} length scale "
                f"{self.length_scales[column]:9.3g}: {self.words[column]}"
            )
        return "\n".join(lines)


def find_importances(model: FittedModel, names: list[str], seed: int, n_jobs: int | None) -> Importances:
    """Average slopes at some training points, chosen at random."""
    points = plain_points(model.kernel, model.X)
    n, d = points.shape
    chosen = points[np.sort(np.random.default_rng(seed).permutation(n)[:_POINTS])]
    spreads = points.std(axis=0)
    smooth = _has_derivatives(model, chosen[:1])
    joint = n <= _JOINT and not isinstance(model.prediction, Committee)
    found = [np.zeros((2, *model.y.shape[1:]))] * d
    varying = np.flatnonzero(spreads > 0)
    if not len(varying):
        raise ValueError("importances needs columns that vary, and X is the same in every row.")
    asked = [_slopes(chosen, int(column), spreads[column], smooth) for column in varying]
    options: Any = {"latent": True, "extra_noise": None, "joint": joint, "variance": "claimed", "n_jobs": n_jobs}
    if joint:  # column by column: only points of the same column have to be joint
        beliefs = [predict_functionals(model, one, **options) for one in asked]
    else:
        together = predict_functionals(model, functionals.join(asked), **options)
        beliefs = [together[k * len(chosen) : (k + 1) * len(chosen)] for k in range(len(asked))]
    for column, belief in zip(varying, beliefs, strict=True):
        found[column] = _average_size(belief, 1 - len(chosen) / n)
    slopes, errors = np.moveaxis(np.stack(found), 1, 0)
    scale = spreads.reshape(-1, *(1,) * (slopes.ndim - 1))
    _, inverse_squares = metric(plain_kernel(model.kernel), d)
    with np.errstate(divide="ignore"):
        length_scales = 1 / np.sqrt(inverse_squares)
    return Importances(names, slopes * scale, errors * scale, slopes, spreads, length_scales, smooth)


def _slopes(points: Floats, column: int, spread: float, smooth: bool) -> Functionals:
    if smooth:
        return functionals.derivative(points, column)
    step = np.zeros(points.shape[1])
    step[column] = 0.5 * _STEP * spread
    ends = functionals.at(np.concatenate([points + step, points - step]))
    weights = np.concatenate([np.eye(len(points)), -np.eye(len(points))], axis=1) / (_STEP * spread)
    return functionals.combine(ends, weights)


def _average_size(belief: PredictiveDistribution, left_out: float) -> Floats:
    """Mean of the sizes of predicted slopes, and its standard error: shape (2,), or (2, t) for t outputs.

    With the signs as they are predicted it is a weighted sum of slopes, whose variance follows from their covariance.
    Without a joint belief the errors at different points count as independent: the points are few among many.
    """
    m, count = belief.location, len(belief.location)
    signs = np.sign(m)
    if belief.covariance is None:
        uncertain = ((signs * belief.scale) ** 2).sum(axis=0) / count**2
    else:
        sizes = signs * belief.output_scale
        uncertain = (sizes * (belief.covariance @ sizes)).sum(axis=0) / count**2
    by_choice = left_out * np.abs(m).var(axis=0) / count
    return np.stack([np.abs(m).mean(axis=0), np.sqrt(np.maximum(uncertain, 0.0) + by_choice)])


def _has_derivatives(model: FittedModel, point: Floats) -> bool:
    try:
        for column in range(point.shape[1]):
            derivative(plain_kernel(model.kernel), point, point, column, column)
    except ValueError:
        return False
    return True


def _in_words(effect: float, ratio: float) -> str:
    """Words for an effect, as a share of the largest, and a length scale, in standard deviations of its column."""
    if effect < _NEGLIGIBLE:
        return "hardly matters"
    if not np.isfinite(ratio):
        return "matters, but not by nearness"
    if ratio > 5:
        return "bends little over the data"
    if ratio > 1:
        return "bends slowly over the data"
    if ratio > 0.2:
        return "bends several times over the data"
    return "varies quickly: neighbors say little beyond a short distance"
