"""The parts of a forecast: what each effect and each kind of memory contributes, with error bars.

On the model's scale a value is center + Σ_e φ_e β_e + Σ_p f_p + noise, with coefficients β ~ N(β̂, C) of the effects and
independent processes f_p, the parts of the kernel. With K the covariance of the past, noise included, and
A_p = k_p(ahead, past) K⁻¹, part p has the mean A_p (y − center − Φ β̂). The error of β moves it by S_p = −A_p Φ, and an
effect by S_e = φ_e. So the covariance of two parts is k_p [p = q] − A_p k_q(past, ahead) + S_p C S_qᵀ.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from compositegp.backend import Floats
from compositegp.forecasting.fitted_series import FittedSeries
from compositegp.forecasting.horizon_terms import covariances


@dataclass(frozen=True, eq=False)
class ForecastParts:
    """Parts of a forecast, whose means add up to it, on the scale of the model.

    Attributes
    ----------
    names : list of str
        Of the effects, then of the parts of the kernel; the noise is none of them.
    times : pandas DatetimeIndex of length M
    mean : array of shape (P, M)
    covariance : array of shape (P, P, M)
        Of the parts at each time. The sum over all pairs is the squared ``scale`` of the forecast without noise. That
        is its variance, unless errors have heavy tails: then the variance is larger.

    Examples
    --------
    >>> from compositegp.forecasting import CompositeGPForecaster
    >>> index = pd.date_range("2024-01-01", periods=240, freq="h")
    >>> noise = np.random.default_rng(0).normal(size=240)
    >>> series = pd.Series(5 + np.sin(2 * np.pi * np.arange(240) / 24) + 0.1 * noise, index=index)
    >>> model = CompositeGPForecaster(None, seasons=["day"], search=False).fit(series)
    >>> parts = model.parts("3h")
    >>> parts.names[:3], parts.table.shape == (3, 2 * len(parts.names))
    (['level', 'trend', 'day'], True)
    >>> bool(np.allclose(parts.mean.sum(axis=0), model.predict("3h")["mean"]))
    True
    """

    names: list[str]
    times: pd.DatetimeIndex
    mean: Floats
    covariance: Floats

    @property
    def std(self) -> Floats:
        """Standard deviations, shape (P, M)."""
        return np.asarray(np.sqrt(np.maximum(np.einsum("ppm->pm", self.covariance), 0.0)))

    @property
    def table(self) -> pd.DataFrame:
        """Means and standard deviations, a column for each: (name, "mean") and (name, "std")."""
        columns = pd.MultiIndex.from_product([self.names, ["mean", "std"]], names=["part", ""])
        values = np.stack([self.mean, self.std], axis=1).reshape(-1, len(self.times)).T
        return pd.DataFrame(values, index=self.times, columns=columns)


def find_parts(series: FittedSeries, points: Floats) -> ForecastParts:
    """The parts of a forecast of later points (M, …).

    Parameters
    ----------
    series : FittedSeries
    points : array
        As `FittedSeries.points_at` gives them.
    """
    geometry, rows = series.ahead(points).geometry, series.observed
    estimate, past = series.estimate, series.effects(series.grid.points[rows])
    residuals = series.transform.forward(series.grid.values[rows]) - series.center - past @ estimate.mean
    k = covariances(series.kernel, geometry.reach)
    functions = series.effects(points)
    names, means, sensitivities, weights, own = [], [], [], [], []
    for name, columns in series.effects.columns.items():
        alone = np.zeros_like(functions)
        alone[:, columns] = functions[:, columns]
        names.append(name)
        means.append(alone @ estimate.mean)
        sensitivities.append(alone)
    means[0] = means[0] + series.center  # of the level
    for name, part in series.parts.items():
        if name != "noise":
            own.append(covariances(part, geometry.reach))
            weights.append(geometry.weights(k, own[-1]))
            names.append(name)
            means.append(weights[-1] @ residuals)
            sensitivities.append(-weights[-1] @ past)
    moved = np.stack(sensitivities)
    covariance = np.einsum("pmi,ij,qmj->pqm", moved, estimate.covariance, moved, optimize=True)
    first = len(names) - len(own)
    for p, (A, k_p) in enumerate(zip(weights, own, strict=True)):
        covariance[first + p, first + p] += k_p[0]
        for q, k_q in enumerate(own):
            covariance[first + p, first + q] -= np.einsum("mn,nm->m", A, k_q[geometry.outer])
    covariance *= series.factors(points) ** 2
    times = series.timeline.stamps(points[:, 0])
    return ForecastParts(names, times, np.stack(means), 0.5 * (covariance + covariance.swapaxes(0, 1)))
