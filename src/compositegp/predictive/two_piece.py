"""Student's t with a scale of its own on each side: errors that are larger above the mean than below, or smaller.

With γ > 0, scale γ above the mode and 1/γ below it (Fernández and Steel, 1998), the density of X is

    f(x) = 2 / (γ + 1/γ) · t_df(x / γ)  for x ≥ 0,      2 / (γ + 1/γ) · t_df(x γ)  for x < 0.

With m = E|T|, T of the t distribution, E X = m (γ − 1/γ) and E X² = E T² (γ² − 1 + γ⁻²). The family here is X − E X:
its mean is zero, so that a mean prediction stays what it is. γ = 1 is Student's t.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaln, digamma, gammaln, stdtr, stdtrit

from compositegp.backend import Floats
from compositegp.predictive.families import StudentT

_FARTHEST = 1e150  # of an error, in scales: its square is a number


@dataclass(frozen=True, eq=False)
class TwoPieceT:
    """Student's t distribution, skewed by a factor γ, of mean zero.

    Attributes
    ----------
    df : array of shape (M,), or (1,) for all the points
        Degrees of freedom, above 2.
    skew : float
        γ: the scale above the mode, over one; below it the scale is 1/γ.

    Examples
    --------
    >>> skewed = TwoPieceT(np.array([5.0]), 1.5)
    >>> skewed.quantile(0.05).round(2), skewed.quantile(0.95).round(2)
    (array([-1.88]), array([2.62]))
    """

    df: Floats
    skew: float

    @property
    def std(self) -> Floats:
        """Standard deviation."""
        square = self.df / (self.df - 2) * (self.skew**2 - 1 + self.skew**-2)
        return np.sqrt(square - self._mode**2)

    @property
    def _mode(self) -> Floats:
        """E X: how far below the mean the mode is."""
        return mean_size(self.df) * (self.skew - 1 / self.skew)

    @property
    def _above(self) -> float:
        """Probability of a value above the mode."""
        return self.skew**2 / (1 + self.skew**2)

    def cdf(self, z: Floats) -> Floats:
        """Probability of a value of at most z."""
        x = z + self._mode
        below = 2 * (1 - self._above) * stdtr(self.df, np.minimum(x, 0.0) * self.skew)
        return np.asarray(below + 2 * self._above * (stdtr(self.df, np.maximum(x, 0.0) / self.skew) - 0.5))

    def quantile(self, q: Any) -> Floats:
        """The value that is exceeded with probability 1 − q."""
        above, levels = self._above, np.asarray(q, dtype=np.float64)
        below = stdtrit(self.df, np.minimum(levels / (2 * (1 - above)), 0.5)) / self.skew
        # From the other end, so that levels near one keep their digits.
        beyond = -stdtrit(self.df, np.minimum((1 - levels) / (2 * above), 0.5)) * self.skew
        return np.asarray(np.where(levels < 1 - above, below, beyond) - self._mode)

    def logpdf(self, z: Floats) -> Floats:
        """Logarithm of the density."""
        x = z + self._mode
        side = np.where(x >= 0, 1 / self.skew, self.skew)
        return np.asarray(StudentT(self.df).logpdf(x * side) + np.log(2 / (self.skew + 1 / self.skew)))

    def crps(self, z: Floats) -> Floats:
        """Continuous ranked probability score of the outcome z: ``E|X − x| − ½ E|X − X′|``, X of two halves."""
        x, above, skew, m = z + self._mode, self._above, self.skew, mean_size(self.df)
        over = skew * _distance_of_size(np.maximum(x, 0.0) / skew, self.df)
        under = _distance_of_size(np.maximum(-x, 0.0) * skew, self.df) / skew
        distance = np.where(
            x >= 0, above * over + (1 - above) * (x + m / skew), (1 - above) * under + above * (skew * m - x)
        )
        pairs = 2 * (_mean_difference(self.df) - m)  # E| |T| − |T′| |
        halves = 0.5 * pairs * (above**2 * skew + (1 - above) ** 2 / skew)
        return np.asarray(distance - halves - above * (1 - above) * (skew + 1 / skew) * m)

    def sample(self, shape: tuple[int, ...], generator: Any) -> Floats:
        """Factors by which standard normal draws become draws of Student's t; `bent` makes them skewed."""
        return StudentT(self.df).sample(shape, generator)

    def bent(self, t: Floats) -> Floats:
        """Values that have the same probabilities as `t` under Student's t."""
        above = self._above
        levels = stdtr(self.df, -np.abs(t))  # of the nearer end, so that tails keep their digits
        below = np.where(t < 0, levels, 1 - levels)
        beyond = np.where(t < 0, 1 - levels, levels)
        left = stdtrit(self.df, np.minimum(below / (2 * (1 - above)), 0.5)) / self.skew
        right = -stdtrit(self.df, np.minimum(beyond / (2 * above), 0.5)) * self.skew
        return np.asarray(np.where(below < 1 - above, left, right) - self._mode)

    def take(self, points: Any) -> "TwoPieceT":
        """The family at some of the points."""
        return self if self.df.size == 1 else TwoPieceT(self.df[points], self.skew)

    def shared(self) -> "TwoPieceT":
        """One family for all the points: the geometric mean of the degrees of freedom."""
        return TwoPieceT(StudentT(self.df).shared().df, self.skew)

    def shaped(self, ndim: int) -> "TwoPieceT":
        """The family for arrays with that many axes, of which the first are the points."""
        return TwoPieceT(StudentT(self.df).shaped(ndim).df, self.skew)


def mean_size(df: Floats) -> Floats:
    """E|T| of Student's t."""
    return _mean_size(df, _log_ratio(df))


def _mean_size(df: Floats, log_ratio: Floats) -> Floats:
    return np.asarray(2 * np.sqrt(df / np.pi) * np.exp(log_ratio) / (df - 1))


def _log_ratio(df: Floats) -> Floats:
    """Logarithm of Γ((df + 1) / 2) / Γ(df / 2)."""
    return np.asarray(gammaln(0.5 * (df + 1)) - gammaln(0.5 * df))


def two_piece_log_density(
    errors: Floats, log_scale: Floats, log_df: Floats, log_skew: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Logarithm of the density of s (X − E X) at z, and its derivatives in log s, log df and log γ."""
    df, skew = np.exp(log_df), np.exp(log_skew)
    log_ratio = _log_ratio(df)
    m = _mean_size(df, log_ratio)
    r = errors * np.exp(-log_scale)
    x = r + m * (skew - 1 / skew)
    side = np.where(x >= 0, 1 / skew, skew)
    w = np.clip(x * side, -_FARTHEST, _FARTHEST)
    ratio = w**2 / df
    share, log_tail = ratio / (1 + ratio), np.log1p(ratio)
    value = log_ratio - 0.5 * (log_df + np.log(np.pi)) - (df + 1) / 2 * log_tail
    value = value - log_scale + np.log(2 / (skew + 1 / skew))
    by_x = -(df + 1) / df * w / (1 + ratio) * side
    psi = digamma((df + 1) / 2) - digamma(df / 2)
    m_by_df = m * (0.5 + 0.5 * df * psi - df / (df - 1))
    by_df = 0.5 * (df * (psi - log_tail) - 1 + (df + 1) * share) + by_x * (skew - 1 / skew) * m_by_df
    by_skew = -np.tanh(log_skew) + by_x * (m * (skew + 1 / skew) - np.where(x >= 0, x, -x))
    return value, -1 - by_x * r, by_df, by_skew


def _distance_of_size(h: Floats, df: Floats) -> Floats:
    """E| |T| − h | for h ≥ 0: E|T| − h + 2 ∫₀ʰ P(|T| ≤ u) du."""
    density, peak = (np.exp(StudentT(df).logpdf(at)) for at in (h, np.zeros(())))
    integral = h * stdtr(df, h) + ((df + h**2) * density - df * peak) / (df - 1)  # of the distribution function
    return np.asarray(mean_size(df) - h + 2 * (2 * integral - h))


def _mean_difference(df: Floats) -> Floats:
    """E|T − T′| of Student's t."""
    log_ratio = betaln(0.5, df - 0.5) - 2 * betaln(0.5, 0.5 * df)
    return np.asarray(4 * np.sqrt(df) / (df - 1) * np.exp(log_ratio))
