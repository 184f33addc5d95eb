"""What is compared: this library's ways to predict, and other libraries where they are installed.

Each is a function of a Task that returns what it predicts of the test observations, and calls `task.fitted()` between
learning and prediction. A prediction is means and standard deviations, a `PredictiveDistribution`, or `Quantiles`.
"""

import importlib.util
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from compositegp import Committee, CompositeGPRegressor, CompositeSum, FisherAverage, Inducing
from compositegp.predictive import PredictiveDistribution, score_predictions

LEVELS = (0.5, 0.95)
INTERVAL_SCORE = f"interval score {100 * LEVELS[-1]:.4g} %"


def interval_score(low: np.ndarray, high: np.ndarray, y: np.ndarray, level: float = LEVELS[-1]) -> float:
    """Mean width of intervals, and 2 / (1 − level) times how far an observation is outside; smaller is better.

    Gneiting and Raftery (2007), equation 43. The right interval of a Gaussian scores 4.68 standard deviations at 95 %.
    """
    outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return float((high - low + 2 / (1 - level) * outside).mean())


@dataclass
class Quantiles:
    """Means, and quantiles (M, k) at some levels: for methods that have no density."""

    mean: np.ndarray
    levels: np.ndarray
    values: np.ndarray

    def scores(self, y: np.ndarray) -> dict[str, float]:
        """Scores as of other predictions; there is no log score. The CRPS is twice the integral of the pinball loss.

        The integral is that of straight lines between the levels, down to zero at both ends: 0.3 % too small at 21
        levels of a Gaussian.
        """
        values = np.sort(self.values, axis=1)
        below = y[:, None] - values
        pinball = np.maximum(self.levels * below, (self.levels - 1) * below).mean(axis=0)
        ends = np.concatenate([[0.0], self.levels, [1.0]])
        found = {
            "RMSE": float(np.sqrt(np.mean((self.mean - y) ** 2))),
            "MAE": float(np.abs(self.mean - y).mean()),
            "CRPS": float((ends[2:] - ends[:-2]) @ pinball),
            "log score": float("nan"),
        }
        for level in LEVELS:
            low, high = (
                values[:, int(np.argmin(np.abs(self.levels - q)))] for q in (0.5 - level / 2, 0.5 + level / 2)
            )
            found[f"coverage {100 * level:.4g} %"] = float(((y >= low) & (y <= high)).mean())
        found[INTERVAL_SCORE] = interval_score(low, high, y)
        return found


Prediction = tuple[np.ndarray, np.ndarray] | PredictiveDistribution | Quantiles


@dataclass
class Task:
    """Training and test data, the smoothness of the kernel and the mean function to use."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    nu: float
    mean: str | None
    began: float = field(default_factory=time.perf_counter)
    fit_seconds: float = 0.0

    def fitted(self) -> None:
        """Note that learning is over."""
        self.fit_seconds = time.perf_counter() - self.began

    def kernel(self):
        """One length scale for each column, a variance and noise."""
        return ConstantKernel() * Matern(np.ones(self.X.shape[1]), nu=self.nu) + WhiteKernel()


def scores(found: Prediction, y: np.ndarray) -> dict[str, float]:
    """Scores of predictions: RMSE, MAE, CRPS, log score, coverage of 50 and 95 % intervals, and score of the latter."""
    if isinstance(found, Quantiles):
        return found.scores(y)
    if isinstance(found, tuple):
        found = PredictiveDistribution(*found)
    interval = interval_score(*found.interval(LEVELS[-1]), y)
    return score_predictions(found, y, levels=LEVELS) | {INTERVAL_SCORE: interval}


def default(task: Task) -> Prediction:
    """`CompositeGPRegressor()` with nothing passed."""
    model = CompositeGPRegressor().fit(task.X, task.y)
    task.fitted()
    return model.predict_distribution(task.X_test)


def gradient_boosting(task: Task) -> Prediction:
    """scikit-learn's HistGradientBoostingRegressor: one model for the mean, one for each of 21 quantiles."""
    levels = np.concatenate([[0.025], np.linspace(0.05, 0.95, 19), [0.975]])
    mean = HistGradientBoostingRegressor(random_state=0).fit(task.X, task.y)
    models = [
        HistGradientBoostingRegressor(loss="quantile", quantile=level, random_state=0).fit(task.X, task.y)
        for level in levels
    ]
    task.fitted()
    values = np.stack([model.predict(task.X_test) for model in models], axis=1)
    return Quantiles(mean.predict(task.X_test), levels, values)


def ours(**options) -> Callable[[Task], Prediction]:
    def run(task: Task) -> Prediction:
        model = CompositeGPRegressor(task.kernel(), mean=task.mean, **options).fit(task.X, task.y)
        task.fitted()
        return model.predict_distribution(task.X_test)

    return run


def scikit_learn_subset(task: Task) -> Prediction:
    """The exact Gaussian process on 3,000 of the observations."""
    rows = np.random.default_rng(0).permutation(len(task.y))[:3000]
    X, y = task.X[rows], task.y[rows]
    trend = _trend(task, X, y)
    scale = X.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    model = GaussianProcessRegressor(task.kernel(), normalize_y=True).fit(X / scale, y - trend(X))
    task.fitted()
    mean, std = (
        np.concatenate(parts)
        for parts in zip(
            *(model.predict(part / scale, return_std=True) for part in np.array_split(task.X_test, 20)), strict=True
        )
    )
    return mean + trend(task.X_test), std


def scikit_learn_exact(task: Task) -> Prediction:
    """The exact Gaussian process on all the observations."""
    trend, scaled = _trend(task, task.X, task.y), Standardised(task)
    model = GaussianProcessRegressor(task.kernel(), normalize_y=True).fit(scaled.points(task.X), scaled.y)
    task.fitted()
    mean, std = model.predict(scaled.points(task.X_test), return_std=True)
    return scaled.offset + scaled.unit * mean + trend(task.X_test), scaled.unit * std


def gpboost(approximation: str, **options) -> Callable[[Task], Prediction]:
    """One of GPBoost's approximations, one range for each column; predictions as by default, by twice the neighbors."""

    def run(task: Task) -> Prediction:
        import gpboost

        def functions(X):
            return np.column_stack([np.ones(len(X)), X]) if task.mean == "linear" else np.ones((len(X), 1))

        model = gpboost.GPModel(
            gp_coords=task.X,
            cov_function="matern_ard",
            cov_fct_shape=task.nu,
            gp_approx=approximation,
            likelihood="gaussian",
            seed=1,
            **options,
        )
        model.fit(y=task.y, X=functions(task.X))
        task.fitted()
        found = model.predict(gp_coords_pred=task.X_test, X_pred=functions(task.X_test), predict_var=True)
        return found["mu"], np.sqrt(found["var"])

    return run


class Standardised:
    """Columns and residuals in units of their spread, for libraries that begin at length scales of one."""

    def __init__(self, task: Task) -> None:
        residuals = task.y - _trend(task, task.X, task.y)(task.X)
        self.centre, spread = task.X.mean(axis=0), task.X.std(axis=0)
        self.spread = np.where(spread > 0, spread, 1.0)
        self.offset, self.unit = residuals.mean(), residuals.std()
        self.y = (residuals - self.offset) / self.unit

    def points(self, X: np.ndarray) -> np.ndarray:
        """Points in those units."""
        return (X - self.centre) / self.spread


def gpytorch_exact(task: Task) -> Prediction:
    """GPyTorch's exact Gaussian process, by Cholesky factors in double precision: L-BFGS until it has converged."""
    import gpytorch
    import torch

    torch.manual_seed(0)
    trend, scaled = _trend(task, task.X, task.y), Standardised(task)
    X, y = (torch.tensor(part, dtype=torch.float64) for part in (scaled.points(task.X), scaled.y))

    class Model(gpytorch.models.ExactGP):
        def __init__(self, likelihood):
            super().__init__(X, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            base = gpytorch.kernels.MaternKernel(nu=task.nu, ard_num_dims=X.shape[1])
            self.covar_module = gpytorch.kernels.ScaleKernel(base)

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    constraint = gpytorch.constraints.GreaterThan(1e-8)
    likelihood = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=constraint).double()
    model = Model(likelihood).double()
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimiser = torch.optim.LBFGS(
        model.parameters(), max_iter=200, tolerance_grad=1e-5, tolerance_change=1e-9, line_search_fn="strong_wolfe"
    )

    def closure():
        optimiser.zero_grad()
        loss = -objective(model(X), y)
        loss.backward()
        return loss

    with gpytorch.settings.max_cholesky_size(len(X) + 1):
        optimiser.step(closure)
    task.fitted()
    model.eval(), likelihood.eval()
    means, variances = [], []
    with torch.no_grad(), gpytorch.settings.max_cholesky_size(len(X) + 1):
        for part in torch.tensor(scaled.points(task.X_test), dtype=torch.float64).split(1024):
            found = likelihood(model(part))
            means.append(found.mean.numpy().astype(float))
            variances.append(found.variance.numpy().astype(float))
    mean, std = np.concatenate(means), np.sqrt(np.concatenate(variances))
    return scaled.offset + scaled.unit * mean + trend(task.X_test), scaled.unit * std


def gpytorch_svgp(task: Task) -> Prediction:
    """Stochastic variational inference with 512 inducing points: Adam, batches of 1,024, 40 epochs or 500 steps."""
    import gpytorch
    import torch

    torch.manual_seed(0)
    trend, scaled = _trend(task, task.X, task.y), Standardised(task)
    X, y = (torch.tensor(part, dtype=torch.float32) for part in (scaled.points(task.X), scaled.y))

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self, inducing):
            distribution = gpytorch.variational.CholeskyVariationalDistribution(len(inducing))
            super().__init__(gpytorch.variational.VariationalStrategy(self, inducing, distribution))
            self.mean_module = gpytorch.means.ConstantMean()
            base = gpytorch.kernels.MaternKernel(nu=task.nu, ard_num_dims=X.shape[1])
            self.covar_module = gpytorch.kernels.ScaleKernel(base)

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    model = Model(X[torch.randperm(len(X))[:512]].clone())
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(y))
    optimiser = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.01)
    epochs = max(40, 500 // -(-len(X) // 1024))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    for _ in range(epochs):
        for rows in torch.randperm(len(X)).split(1024):
            optimiser.zero_grad()
            loss = -objective(model(X[rows]), y[rows])
            loss.backward()
            optimiser.step()
        schedule.step()
    task.fitted()
    model.eval(), likelihood.eval()
    means, variances = [], []
    with torch.no_grad():
        for part in torch.tensor(scaled.points(task.X_test), dtype=torch.float32).split(4096):
            found = likelihood(model(part))
            means.append(found.mean.numpy().astype(float))
            variances.append(found.variance.numpy().astype(float))
    mean, std = np.concatenate(means), np.sqrt(np.concatenate(variances))
    return scaled.offset + scaled.unit * mean + trend(task.X_test), scaled.unit * std


def _trend(task: Task, X: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """A linear mean by least squares, for libraries that have none."""
    if task.mean != "linear":
        return lambda points: np.zeros(len(points))
    coefficients = np.linalg.lstsq(np.column_stack([np.ones(len(X)), X]), y, rcond=None)[0]
    return lambda points: coefficients[0] + points @ coefficients[1:]


PLAIN = {"conditioning_size": 0, "segment_size": 512, "prediction": CompositeSum(group_size=512)}
CONDITIONAL = {"conditioning_size": 256, "segment_size": 256, "prediction": CompositeSum(group_size=512)}

COMPETITORS: dict[str, Callable[[Task], Prediction]] = {
    "compositegp (default)": ours(),
    "compositegp, plain CGP": ours(**PLAIN),
    "compositegp, fisher_average + CGP": ours(**PLAIN, learning=FisherAverage()),
    "compositegp, conditional composite": ours(**CONDITIONAL),
    "compositegp, rBCM": ours(**PLAIN | {"prediction": Committee("rbcm")}),
    "compositegp, GRBCM": ours(**PLAIN | {"prediction": Committee("grbcm")}),
    "compositegp, FITC 512": ours(prediction=Inducing(512)),
    "compositegp, PITC 512": ours(prediction=Inducing(512, "pitc")),
    "GPBoost, Vecchia 20": gpboost("vecchia", num_neighbors=20),
    "GPyTorch, SVGP 512": gpytorch_svgp,
    "scikit-learn, exact on 3,000": scikit_learn_subset,
}
PEERS: dict[str, Callable[[Task], Prediction]] = {
    "compositegp": default,
    "GPBoost, Vecchia 20": COMPETITORS["GPBoost, Vecchia 20"],
    "GPBoost, Vecchia 40": gpboost("vecchia", num_neighbors=40),
    "GPyTorch, SVGP 512": gpytorch_svgp,
    "GPyTorch, exact": gpytorch_exact,
    "scikit-learn, exact": scikit_learn_exact,
    "scikit-learn, HistGradientBoosting": gradient_boosting,
}
REQUIRES = {"GPBoost": "gpboost", "GPyTorch": "gpytorch"}


def missing(method: str) -> bool:
    """Whether a method's library is not installed."""
    library = REQUIRES.get(method.split(",")[0])
    return library is not None and importlib.util.find_spec(library) is None


def run(method: Callable[[Task], Prediction], task: Task) -> Prediction:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method(task)
