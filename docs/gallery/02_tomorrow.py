"""
Tomorrow's air pollution
========================

Hourly NOx beside a Swiss motorway, in parts per billion, a year of it: what will tomorrow be, and how sure is that? The same from the command line is
``compositegp forecast nox.csv --time time --target nox --horizon 24h --log``.
"""

import matplotlib.pyplot as plt

from compositegp.datasets import nox_emissions
from compositegp.forecasting import CompositeGPForecaster

series = nox_emissions()
past, future = series[:-24], series[-24:]
model = CompositeGPForecaster("log").fit(past)
table = model.predict("24h", quantiles=[0.025, 0.25, 0.5, 0.75, 0.975])
print(table.head().round(1).to_string())

# %%
# The target is positive and skewed, so it is modeled by its logarithm; the bands are not symmetric.

figure, axes = plt.subplots(figsize=(8, 3.5), layout="constrained")
shown = past[-96:]
axes.plot(shown.index, shown, color="black", linewidth=1, label="observed")
quantiles = [column for column in table.columns if column.startswith("q")]
axes.fill_between(table.index, table[quantiles[0]], table[quantiles[-1]], alpha=0.2, color="C0", label="95 %")
axes.fill_between(table.index, table[quantiles[1]], table[quantiles[-2]], alpha=0.3, color="C0", label="50 %")
axes.plot(table.index, table[quantiles[2]], color="C0", label="median")
axes.plot(future.index, future, ".", color="black", markersize=4, label="what came")
axes.set(xlabel="time", ylabel="NOx, ppb", ylim=(0, None))
axes.legend(ncols=5, fontsize="small")
figure.autofmt_xdate()
plt.show()
