"""A weak prior of log θ: it decides only what the data leave open."""

from typing import NamedTuple

import numpy as np

from compositegp.backend import Floats
from compositegp.composite import Score


class LogScalePrior(NamedTuple):
    """Independent normal distributions of log θ around the scale of the data.

    The length scale of a column that does not matter, and an amplitude that grows with the length scales of a smooth
    function, have a likelihood that is nearly flat to infinity. An amplitude there makes predictions far from the data
    useless. With a standard deviation of 3 in log θ, a factor of 20, the prior costs a parameter that the data know
    next to nothing.

    Attributes
    ----------
    center : array of shape (p,)
        Of log θ.
    spread : float
        Standard deviation of log θ.
    """

    center: Floats
    spread: float

    def applied(self, score: Score, theta: Floats) -> Score:
        """The score of the posterior density: its logarithm, up to a constant, its gradient and information."""
        return self._times(1.0, score, theta)

    def removed(self, score: Score, theta: Floats) -> Score:
        """The score of the likelihood, from that of the posterior density."""
        return self._times(-1.0, score, theta)

    def _times(self, sign: float, score: Score, theta: Floats) -> Score:
        away = (theta - self.center) / self.spread
        return score._replace(
            log_likelihood=score.log_likelihood - sign * 0.5 * float(away @ away),
            gradient=score.gradient - sign * away / self.spread,
            fisher=score.fisher + sign * np.eye(len(theta)) / self.spread**2,
        )
