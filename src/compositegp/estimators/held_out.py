"""How good predictions are, from training data alone: training points predicted without their nearest neighbors."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from compositegp.backend import Floats
from compositegp.predictive import PredictiveDistribution, score_predictions

LEVELS = (0.5, 0.8, 0.95, 0.99)


class HeldOut(NamedTuple):
    """Training points predicted at one distance.

    Attributes
    ----------
    n_skipped : int
        How many of the nearest observations they were predicted without.
    distance : array of shape (m,)
        From each to the nearest observation that it was predicted from, in length scales of the kernel.
    predicted : PredictiveDistribution
    y : array of shape (m,), or (m, t) for t outputs
        What was observed.
    """

    n_skipped: int
    distance: Floats
    predicted: PredictiveDistribution
    y: Floats


@dataclass(frozen=True, eq=False, repr=False)
class ValidationReport:
    """Scores of predictions of training points, by the distance to the nearest data that they were made from.

    Attributes
    ----------
    parts : list of HeldOut
        One for each distance, the nearest first.
    """

    parts: list[HeldOut]

    @property
    def table(self) -> dict[str, Any]:
        """Scores as columns, one row for each distance: for ``pandas.DataFrame(report.table)``."""
        rows = [
            {
                "skipped": part.n_skipped,
                "distance": float(np.median(part.distance)),
                "points": len(part.predicted),
                **score_predictions(part.predicted, part.y, LEVELS),
            }
            for part in self.parts
        ]
        return {name: [row[name] for row in rows] for name in rows[0]}

    @property
    def pit(self) -> Floats:
        """Probability integral transforms of all that was observed: uniform on [0, 1] where predictions are right."""
        return np.concatenate([part.predicted.cdf(part.y).ravel() for part in self.parts])

    def reliability(self, levels: Floats) -> Floats:
        """Share of what was observed inside the central intervals of each level, over all the distances."""
        # A value is inside the central interval of level p where |2 PIT − 1| ≤ p.
        depth = np.abs(2 * self.pit - 1)
        return np.array([(depth <= level).mean() for level in np.asarray(levels)])

    def __repr__(self) -> str:
        table = self.table
        lines = [
            "training points predicted without themselves and their nearest neighbors:",
            f"{'without':>8s} {'distance':>9s} {'RMSE':>10s} {'CRPS':>10s} {'log score':>10s}"
            + "".join(f"{f'in {100 * level:.4g} %':>10s}" for level in LEVELS),
        ]
        for row in range(len(self.parts)):
            covered = "".join(f"{table[f'coverage {100 * level:.4g} %'][row]:10.3f}" for level in LEVELS)
            lines.append(
                f"{table['skipped'][row]:8d} {table['distance'][row]:9.3g} {table['RMSE'][row]:10.4g} "
                f"{table['CRPS'][row]:10.4g} {table['log score'][row]:10.4g}{covered}"
            )
        return "\n".join(lines)
