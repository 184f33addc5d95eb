"""The paper's time series, 4,096 observed and the 128 that follow predicted, at known hyper-parameters.

Seconds are of one prediction, scores means over five draws of the series.
"""

import time
import warnings
from collections.abc import Callable

import numpy as np
from competitors import scores
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, WhiteKernel

from compositegp import Composite, conditioning_sets, posterior, segment
from compositegp.simulate import stationary_field

OBSERVED, TESTS, DRAWS, NOISE = 4096, 128, 5, 0.1
PERIOD, RANGE = 128.0, 20 / np.sqrt(2)
KERNEL = ExpSineSquared(1.0, PERIOD) + RBF(RANGE) + WhiteKernel(NOISE)
TIMES = np.arange(OBSERVED + TESTS, dtype=float)[:, None]
X, Z = TIMES[:OBSERVED], TIMES[OBSERVED:]

Prediction = tuple[np.ndarray, np.ndarray]


def composite(kind: str) -> Callable[[np.ndarray], Prediction]:
    def predict(y: np.ndarray) -> Prediction:
        segments = segment(X, 1024, "sequential")[::-1]
        terms = {
            "exact": lambda: Composite.full(OBSERVED),
            "plain": lambda: Composite.marginal(segments),
            "given": lambda: Composite.conditional(segments, conditioning_sets(X, segments, 256)),
        }[kind]()
        belief = posterior(KERNEL, X, y, Z, terms)
        return belief.mean, np.sqrt(belief.variance + NOISE)

    return predict


def scikit_learn(y: np.ndarray) -> Prediction:
    return GaussianProcessRegressor(KERNEL, optimizer=None).fit(X, y).predict(Z, return_std=True)


def _gpytorch_parts():
    import gpytorch
    import torch

    kernel = gpytorch.kernels.PeriodicKernel() + gpytorch.kernels.RBFKernel()
    kernel.kernels[0].initialize(period_length=PERIOD, lengthscale=1.0)
    kernel.kernels[1].initialize(lengthscale=RANGE)
    likelihood = gpytorch.likelihoods.GaussianLikelihood().initialize(noise=NOISE)
    return gpytorch, torch, kernel.double(), likelihood.double()


def gpytorch_exact(y: np.ndarray) -> Prediction:
    gpytorch, torch, kernel, likelihood = _gpytorch_parts()

    class Model(gpytorch.models.ExactGP):
        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(torch.zeros(len(x), dtype=x.dtype), kernel(x))

    model = Model(torch.tensor(X), torch.tensor(y), likelihood).eval()
    likelihood.eval()
    with torch.no_grad():
        found = likelihood(model(torch.tensor(Z)))
    return found.mean.numpy(), np.sqrt(found.variance.numpy())


def gpytorch_svgp(y: np.ndarray) -> Prediction:
    """512 inducing points spread evenly; 40 epochs of batches of 1,024 for the variational distribution alone."""
    gpytorch, torch, kernel, likelihood = _gpytorch_parts()
    torch.manual_seed(0)
    inputs, targets = torch.tensor(X), torch.tensor(y)

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self, inducing):
            distribution = gpytorch.variational.CholeskyVariationalDistribution(len(inducing))
            super().__init__(gpytorch.variational.VariationalStrategy(self, inducing, distribution, False))

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(torch.zeros(len(x), dtype=x.dtype), kernel(x))

    model = Model(inputs[:: OBSERVED // 512].clone()).double()
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=OBSERVED)
    optimiser = torch.optim.Adam(model.variational_strategy.parameters(), lr=0.01)
    for _ in range(40):
        for rows in torch.randperm(OBSERVED).split(1024):
            optimiser.zero_grad()
            loss = -objective(model(inputs[rows]), targets[rows])
            loss.backward()
            optimiser.step()
    model.eval(), likelihood.eval()
    with torch.no_grad():
        found = likelihood(model(torch.tensor(Z)))
    return found.mean.numpy(), np.sqrt(found.variance.numpy())


METHODS: dict[str, Callable[[np.ndarray], Prediction]] = {
    "compositegp, exact": composite("exact"),
    "compositegp, CGP of 4": composite("plain"),
    "compositegp, block Vecchia": composite("given"),
    "scikit-learn, exact": scikit_learn,
    "GPyTorch, exact": gpytorch_exact,
    "GPyTorch, SVGP 512": gpytorch_svgp,
}


def measure(method: str) -> dict[str, float]:
    """Mean scores and the median seconds of one prediction."""
    series = stationary_field(KERNEL, OBSERVED + TESTS, n_draws=DRAWS, random_state=0)
    found, seconds = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for y in series:
            began = time.perf_counter()
            mean, std = METHODS[method](y[:OBSERVED])
            seconds.append(time.perf_counter() - began)
            found.append(scores((mean, std), y[OBSERVED:]))
    means = {name: float(np.mean([each[name] for each in found])) for name in found[0]}
    return {**means, "fit": 0.0, "predict": float(np.median(seconds))}
