"""
The paper in one page
=====================

Liu, Zachariah and Ngai (2018) split a series into segments and treat each by an exact GP. Learning averages what the segments say about
the hyper-parameters; prediction adds up what they say about the test points. The cost is that of short segments. What it costs in
accuracy can be computed before any data are seen. ``compositegp reproduce all`` runs the paper's own experiments.

**Learning** (Section 4.1): each segment has its own maximum-likelihood estimate, and the running average weighs it by its Fisher information.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, ExpSineSquared, Matern, WhiteKernel

from compositegp import Composite, FisherAverage, analysis, learn, posterior, prior, segment
from compositegp.datasets import nox_emissions
from compositegp.kernels import noise_variance
from compositegp.simulate import stationary_field

truth = ConstantKernel(1.0) * RBF(5.0) + WhiteKernel(0.1)
steps = np.arange(5_000.0)[:, None]
y = stationary_field(truth, len(steps), random_state=1)[0]
averaging = FisherAverage(tolerance=None, start="kernel")
segments = segment(steps, 200, "sequential")
learned = learn(1.0 * RBF(1.0) + WhiteKernel(1.0), steps, y, segments, learning=averaging)
estimates = np.array([step.theta[1] for step in learned.history[:-1]])  # of log length scale, after each segment
errors = np.array([step.standard_errors[1] for step in learned.history[:-1]])

# %%
# **Error bars** (Section 6.1): all segments show the same periodic pattern, and the composite counts it once for each. It claims less error
# than the exact GP has, and has more.

kernel = 1.0 * RBF(2000.0) * ExpSineSquared(1.0, 24.0) + 0.3 * RBF(3.0) + WhiteKernel(0.5)
X = np.arange(480.0)[:, None]
Z = 480.0 + np.arange(0.5, 24.0)[:, None]
report = analysis.compare(kernel, X, Z, Composite.marginal(segment(X, 120, "sequential")))
print(report)

# %%
# **Analysis** (Section 5): the same, averaged over the test points, for segments of many sizes. One segment of 480 is the exact GP.

sizes = [30, 48, 60, 80, 120, 160, 240, 480]
reports = [analysis.compare(kernel, X, Z, Composite.marginal(segment(X, size, "sequential"))) for size in sizes]

# %%
# **Nitrogen oxides** (Section 6.3): a day is forecast from eight weeks of hourly values, with a kernel learned from the likelihood of the
# same weeks. The study has Stockholm's NOx; this is a Swiss motorway, whose data install with pip. All weeks show the same day, so the
# composite, which counts it eight times, overshoots where the exact GP does not.

series = nox_emissions()["2004-04-29":"2004-06-24"]
hours = ((series.index - series.index[0]).total_seconds() / 3600).to_numpy()[:, None]
logs = np.log(series.to_numpy())
past = series.index < "2004-06-24"
weeks = segment(hours[past], 168, "sequential")
day = ExpSineSquared(1.0, 24.0, periodicity_bounds="fixed") * RBF(672.0, "fixed")
start = 0.5 * Matern(10.0, nu=0.5) + 0.5 * day + WhiteKernel(0.05)
nox = learn(start, hours[past], logs[past], weeks, mean="constant").kernel
print(nox)
beliefs = {
    name: posterior(nox, hours[past], logs[past], hours[~past], composite, mean="constant")
    for name, composite in (
        ("exact GP", Composite.full(past.sum())),
        ("composite of 8 weeks", Composite.marginal(weeks)),
    )
}

# %%
# All four in one picture:

figure, ((learning, bars), (costs, forecast)) = plt.subplots(2, 2, figsize=(10, 6.5), layout="constrained")

count = np.arange(1, len(estimates) + 1)
band = np.exp(estimates - 2 * errors), np.exp(estimates + 2 * errors)
learning.fill_between(count, *band, alpha=0.25, label="± 2 standard errors")
learning.plot(count, np.exp(estimates), label="running average")
learning.axhline(5.0, color="black", linestyle="--", label="truth")
learning.set(title="learning", xlabel="segments of 200 read", ylabel="length scale")

ahead = Z[:, 0] - 479
bars.plot(ahead, np.sqrt(report.actual_mse), color="C1", label="composite: actual")
bars.plot(ahead, np.sqrt(report.exact_variance), color="black", label="exact GP: claimed and actual")
bars.plot(ahead, np.sqrt(report.claimed_variance), "--", color="C1", label="composite: claimed")
bars.set(title="error bars", xlabel="steps ahead", ylabel="standard error of f", ylim=(0, None))

exact = report.exact_variance.mean()
costs.plot(sizes, [found.actual_mse.mean() / exact for found in reports], "o-", color="C1", label="actual")
costs.plot(sizes, [found.claimed_variance.mean() / exact for found in reports], "s--", color="C1", label="claimed")
costs.axhline(1.0, color="black", label="exact GP")
costs.set(title="analysis", xlabel="size of a segment", ylabel="squared error / the exact GP's", xscale="log")
costs.set_xticks(sizes, [str(size) for size in sizes])
costs.minorticks_off()

hour = series.index[~past].hour
forecast.plot(hour, series[~past], ".", color="black", label="what came")
for (name, found), color in zip(beliefs.items(), ("black", "C1"), strict=True):
    spread = 2 * np.sqrt(found.variance + noise_variance(nox, hours[~past]))
    forecast.plot(hour, np.exp(found.mean), color=color, label=name)
    band = np.exp(found.mean - spread), np.exp(found.mean + spread)
    forecast.fill_between(hour, *band, alpha=0.15, color=color, linewidth=0)
forecast.set(title="24 June 2004, with 95 % bands", xlabel="hour of the day", ylabel="NOx, ppb")
for panel in (learning, bars, costs, forecast):
    panel.legend(frameon=False)
plt.show()

# %%
# **The recursion** (Section 4.2): segments may come one at a time, in any order. The belief is the same.

belief = prior(nox, hours[~past], mean=4.0)
for part in weeks[::-1]:
    belief = belief.update(hours[past][part], logs[past][part])
at_once = posterior(nox, hours[past], logs[past], hours[~past], Composite.marginal(weeks), mean=4.0)
print(np.allclose(belief.mean, at_once.mean), np.allclose(belief.covariance, at_once.covariance))
