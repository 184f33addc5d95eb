"""
Over-confidence, seen before it bites
=====================================

A composite adds up what its segments say. Where the segments share a pattern, it counts the pattern once for each of them, and claims
too small an error. ``analysis.compare`` computes claimed and actual error before any data are seen.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, WhiteKernel

from compositegp import Composite, analysis, conditioning_sets, segment
from compositegp.plotting import plot_confidence

kernel = 1.0 * RBF(2000.0) * ExpSineSquared(1.0, 24.0) + 0.3 * RBF(3.0) + WhiteKernel(0.5)
X = np.arange(400.0)[:, None]
Z = 400.0 + np.arange(1.0, 13.0)[:, None]
segments = segment(X, 100, "sequential")


def below(report):
    """By which share the claimed variance is below the actual error, on average over the test points."""
    return 1 - report.claimed_variance.mean() / report.actual_mse.mean()


plain = analysis.compare(kernel, X, Z, Composite.marginal(segments))
print(plain)
print(f"The claim is {below(plain):.0%} below the truth.")

# %%
# Segments can be conditioned on points before them. Then they count less of the pattern twice, and the more such points there are, the less
# they do. A test point is called over-confident if its claimed variance is more than 10 % below the actual one.

conditional = {}
for size in (100, 200):
    given = conditioning_sets(X, segments, size, kernel=kernel)
    conditional[size] = analysis.compare(kernel, X, Z, Composite.conditional(segments, given))
    print(conditional[size])
    print(f"Each given {size} points, the claim is {below(conditional[size]):.0%} below the truth.", end="\n\n")

# %%
# Given 100 points each, all test points are still called over-confident, but by much less. Given 200, none is:

called = {size: np.mean(report.confidence == "over-confident") for size, report in conditional.items()}
for size, share in called.items():
    print(f"given {size}: {share:.0%} of the test points are over-confident")
assert called == {100: 1.0, 200: 0.0}
assert below(conditional[200]) < below(conditional[100]) < below(plain) / 2

# %%
# On the line, claim and truth are the same; below it a composite is over-confident.

figure, axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained", sharex=True, sharey=True)
reports = {"plain composite": plain} | {f"each given {size} points": found for size, found in conditional.items()}
for panel, (title, report) in zip(axes, reports.items(), strict=True):
    plot_confidence(report, axes=panel)
    panel.set_title(f"{title}: {below(report):.0%} below")
plt.show()
