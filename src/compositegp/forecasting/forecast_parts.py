"""The parts of a forecast: what each effect and each kind of memory contributes, with error bars.

On the model's scale a value is center + Σ_e φ_e β_e + Σ_p f_p + noise, with coefficients β ~ N(β̂, C) of the effects and
independent processes f_p, the parts of the kernel. With K the covariance of the past, noise included, and
A_p = k_p(ahead, past) K⁻¹, part p has the mean A_p (y − center − Φ β̂). The error of β moves it by S_p = −A_p Φ, and an
effect by S_e = φ_e. So the covariance of two parts is k_p [p = q] − A_p k_q(past, ahead) + S_p C S_qᵀ.

A forecast that is averaged over kernels has the parts of all of them. A part that a kernel lacks is zero under it, and
with the weights w_i the parts have the means m = Σ w_i m_i and the covariances Σ w_i (C_i + (m_i − m)(m_i − m)ᵀ).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats
from compositegp.forecasting.fitted_series import FittedSeries
from compositegp.forecasting.horizon_terms import covariances

_CHUNK = 256  # steps whose parts are found at a time


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
    """The parts of a forecast of later points (M, …), in memory of P² numbers a point.

    Parameters
    ----------
    series : FittedSeries
    points : array
        As `FittedSeries.points_at` gives them.
    """
    models = series.alternatives() or [series]
    weights = [one.weight for one in series.members] or [1.0]
    pasts = [_Past.of(one) for one in models]
    effects = list(series.effects.columns)
    names = [*effects, *dict.fromkeys(name for past in pasts for name in past.kernels)]
    places = [np.array([names.index(name) for name in (*effects, *past.kernels)]) for past in pasts]
    mean = np.zeros((len(names), len(points)))
    covariance = np.zeros((len(names), len(names), len(points)))
    for start in range(0, len(points), _CHUNK):
        rows = slice(start, start + _CHUNK)
        found = [past.parts(points[rows]) for past in pasts]
        means = np.zeros((len(models), len(names), len(points[rows])))
        for one, place, (own, _) in zip(means, places, found, strict=True):
            one[place] = own
        mean[:, rows] = np.tensordot(weights, means, axes=1)
        away = means - mean[:, rows]
        covariance[..., rows] = np.einsum("i,ipm,iqm->pqm", weights, away, away)
        for weight, place, (_, own) in zip(weights, places, found, strict=True):
            covariance[np.ix_(place, place, np.arange(len(points))[rows])] += weight * own
    covariance *= series.factors(points) ** 2
    return ForecastParts(names, series.timeline.stamps(points[:, 0]), mean, covariance)


@dataclass(frozen=True, eq=False)
class _Past:
    """The known values as they forecast the parts: n of them, q basis functions of the effects.

    Attributes
    ----------
    series : FittedSeries
    kernels : dict
        The parts of the kernel besides the noise, by name.
    functions : array of shape (n, q)
    residuals : array of shape (n,)
        The values less the effects.
    """

    series: FittedSeries
    kernels: dict[str, Kernel]
    functions: Floats
    residuals: Floats

    @classmethod
    def of(cls, series: FittedSeries) -> "_Past":
        rows = series.observed
        functions = series.effects(series.grid.points[rows])
        residuals = series.targets[rows] - functions @ series.estimate.mean
        kernels = {name: part for name, part in series.parts.items() if name != "noise"}
        return cls(series, kernels, functions, residuals)

    @cached_property
    def _coefficients(self) -> Floats:
        """Covariance of the coefficients, shape (q, q)."""
        return self.series.estimate.covariance

    def parts(self, points: Floats) -> tuple[Floats, Floats]:
        """Means (P, m) and covariances (P, P, m) of the parts at some points; past errors have no say in them."""
        series, geometry = self.series, self.series.geometry(points)
        functions = series.effects(points)
        k = covariances(series.kernel, geometry.reach)
        own = [covariances(part, geometry.reach) for part in self.kernels.values()]
        weights = geometry.weights(k, own)
        effects = series.effects.columns.values()
        moved = np.zeros((len(effects) + len(own), *functions.shape))
        means = np.empty(moved.shape[:2])
        for p, columns in enumerate(effects):
            moved[p, :, columns] = functions[:, columns]
            means[p] = functions[:, columns] @ series.estimate.mean[columns]
        means[0] += series.center  # of the level
        first = len(effects)
        for p, A in enumerate(weights):
            moved[first + p] = -A @ self.functions
            means[first + p] = A @ self.residuals
        covariance = np.einsum("pmi,qmi->pqm", moved @ self._coefficients, moved, optimize=True)
        for p, (A, k_p) in enumerate(zip(weights, own, strict=True)):
            covariance[first + p, first + p] += k_p[0]
            for q, k_q in enumerate(own):
                covariance[first + p, first + q] -= np.einsum("mn,nm->m", A, k_q[geometry.outer])
        return means, 0.5 * (covariance + covariance.swapaxes(0, 1))
