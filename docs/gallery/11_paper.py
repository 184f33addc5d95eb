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

figure, panels = plt.subplots(2, 2, figsize=(10, 6.5), layout="constrained")

truth = ConstantKernel(1.0) * RBF(5.0) + WhiteKernel(0.1)
steps = np.arange(5_000.0)[:, None]
y = stationary_field(truth, len(steps), random_state=1)[0]
averaging = FisherAverage(tolerance=None, start="kernel")
segments = segment(steps, 200, "sequential")
learned = learn(1.0 * RBF(1.0) + WhiteKernel(1.0), steps, y, segments, learning=averaging)
estimates = np.array([step.theta[1] for step in learned.history[:-1]])  # of log length scale, after each segment
errors = np.array([step.standard_errors[1] for step in learned.history[:-1]])
count = np.arange(1, len(estimates) + 1)
panels[0, 0].fill_between(
    count, np.exp(estimates - 2 * errors), np.exp(estimates + 2 * errors), alpha=0.25, label="± 2 standard errors"
)
panels[0, 0].plot(count, np.exp(estimates), label="running average")
panels[0, 0].axhline(5.0, color="black", linestyle="--", label="truth")
panels[0, 0].set(title="learning", xlabel="segments of 200 read", ylabel="length scale")
panels[0, 0].legend(frameon=False)

# %%
# **Error bars** (Section 6.1): all segments show the same periodic pattern, and the composite counts it once for each. It claims less error
# than the exact GP has, and has more.

kernel = 1.0 * RBF(2000.0) * ExpSineSquared(1.0, 24.0) + 0.3 * RBF(3.0) + WhiteKernel(0.5)
X = np.arange(480.0)[:, None]
Z = 480.0 + np.arange(0.5, 24.0)[:, None]
report = analysis.compare(kernel, X, Z, Composite.marginal(segment(X, 120, "sequential")))
ahead = Z[:, 0] - 479
panels[0, 1].plot(ahead, np.sqrt(report.actual_mse), color="C1", label="composite: actual")
panels[0, 1].plot(ahead, np.sqrt(report.exact_variance), color="black", label="exact GP: claimed and actual")
panels[0, 1].plot(ahead, np.sqrt(report.claimed_variance), "--", color="C1", label="composite: claimed")
panels[0, 1].set(title="error bars", xlabel="steps ahead", ylabel="standard error of f", ylim=(0, None))
panels[0, 1].legend(frameon=False, loc="lower right")

# %%
# **Analysis** (Section 5): the same, averaged over the test points, for segments of many sizes. One segment of 480 is the exact GP.

sizes = [30, 48, 60, 80, 120, 160, 240, 480]
reports = [analysis.compare(kernel, X, Z, Composite.marginal(segment(X, size, "sequential"))) for size in sizes]
exact = np.mean(report.exact_variance)
panels[1, 0].plot(sizes, [found.actual_mse.mean() / exact for found in reports], "o-", color="C1", label="actual")
panels[1, 0].plot(
    sizes, [found.claimed_variance.mean() / exact for found in reports], "s--", color="C1", label="claimed"
)
panels[1, 0].axhline(1.0, color="black", label="exact GP")
panels[1, 0].set(title="analysis", xlabel="size of a segment", ylabel="squared error / the exact GP's", xscale="log")
panels[1, 0].set_xticks(sizes, [str(size) for size in sizes])
panels[1, 0].minorticks_off()
panels[1, 0].legend(frameon=False)

# %%
# **Nitrogen oxides** (Section 6.3): a day is forecast from eight weeks of hourly values, with a kernel learned from the likelihood of the same weeks.
# The study has Stockholm's NOx; this is a Swiss motorway, whose data install with pip. All weeks show the same day, so the composite, which counts
# it eight times, overshoots where the exact GP does not.

series = nox_emissions()["2004-04-29":"2004-06-24"]
hours = ((series.index - series.index[0]).total_seconds() / 3600).to_numpy()[:, None]
start = 0.5 * Matern(10.0, nu=0.5) + 0.5 * ExpSineSquared(1.0, 24.0, periodicity_bounds="fixed") * RBF(
    336.0, (72.0, 5000.0)
)
logs = np.log(series.to_numpy())
past = series.index < "2004-06-24"
weeks = segment(hours[past], 168, "sequential")
nox = learn(start + WhiteKernel(0.05), hours[past], logs[past], weeks, mean="constant")
print(nox.kernel)
axes = panels[1, 1]
axes.plot(hours[~past] - hours[~past][0], series[~past], ".", color="black", label="what came")
for name, color, composite in (
    ("exact GP", "black", Composite.full(past.sum())),
    ("composite of 8 weeks", "C1", Composite.marginal(weeks)),
):
    found = posterior(nox.kernel, hours[past], logs[past], hours[~past], composite, mean="constant")
    spread = np.sqrt(found.variance + noise_variance(nox.kernel, hours[~past]))
    hour = hours[~past][:, 0] - hours[~past][0]
    axes.plot(hour, np.exp(found.mean), color=color, label=name)
    axes.fill_between(
        hour, np.exp(found.mean - 2 * spread), np.exp(found.mean + 2 * spread), alpha=0.15, color=color, linewidth=0
    )
axes.set(title="nitrogen oxides, 24 June 2004, with 95 % bands", xlabel="hour of the day", ylabel="NOx, ppb")
axes.legend(frameon=False)
plt.show()

# %%
# **The recursion** (Section 4.2): segments may come one at a time, in any order. The belief is the same.

belief = prior(nox.kernel, Z, mean=4.0)
values = logs[past]
for part in weeks[::-1]:
    belief = belief.update(hours[past][part], values[part])
at_once = posterior(nox.kernel, hours[past], values, Z, Composite.marginal(weeks), mean=4.0)
print(np.allclose(belief.mean, at_once.mean), np.allclose(belief.covariance, at_once.covariance))
