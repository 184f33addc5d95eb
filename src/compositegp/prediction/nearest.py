"""Prediction from the nearest observations: one term for each group of test points, made for that group."""

from functools import cached_property

import numpy as np

from compositegp.backend import Floats, Indices
from compositegp.composite import Composite, Observations
from compositegp.means import Basis, Estimated, as_mean, inflated
from compositegp.posteriors import (
    N_NEIGHBORS,
    Belief,
    Marginals,
    NearestPredictor,
    default_group_size,
    exact_belief,
    exact_marginals,
)
from compositegp.prediction.composite_sum import Factors
from compositegp.prediction.fitted_terms import FittedTerms
from compositegp.prediction.method import PredictionMethod, Predictor
from compositegp.storage import storable
from compositegp.validation import check_count

_MOST_JOINT = 8192  # observations in the one term of a joint prediction, at most
_LOCAL_SHARE = 32  # neighbors for each coefficient of the mean, at least, to estimate it from them
_LOCAL_FREEDOM = (
    100.0  # prior error of a coefficient in a neighborhood, over that of the estimate from all the data
)


@storable
class Nearest(PredictionMethod):
    """The observations nearest to a group of test points are its one term: the exact Gaussian process given them.

    With no more observations than `n_neighbors` it is the exact Gaussian process.

    Parameters
    ----------
    n_neighbors : int
        Observations in the term.
    group_size : int, optional
        Test points that share their nearest observations, at most. By default 32 in up to four columns (fewer where
        they are not close together), and 1 in more.
    local_mean : bool or "auto"
        For a mean whose coefficients are learned: whether each term estimates them from its own observations (universal
        kriging in a moving neighborhood) or takes those of all the data. ``auto`` does where there are 32 observations
        or more for each coefficient. It is robust to a mean that is not the same everywhere.
    theta_uncertainty : bool or "auto"
        Whether predictions take into account that learned hyper-parameters θ are uncertain. They are then a mixture
        over 32 values of θ, weighted by their posterior under a weak prior: log θ has a standard deviation of 2 around
        values of the data's own scale. Standard deviations, covariances and draws are those of a normal distribution
        with the mixture's mean and covariance; the noise of new observations is averaged over θ. ``auto``: with up to
        500 observations. True: with any number, which takes memory for up to 32 covariance matrices. It has an effect
        only if all the observations are one term and θ was learned.

    Examples
    --------
    >>> Nearest(256)
    Nearest(n_neighbors=256)
    """

    def __init__(
        self,
        n_neighbors: int = N_NEIGHBORS,
        group_size: int | None = None,
        local_mean: bool | str = "auto",
        theta_uncertainty: bool | str = "auto",
    ) -> None:
        self.n_neighbors = n_neighbors
        self.group_size = group_size
        self.local_mean = local_mean
        self.theta_uncertainty = theta_uncertainty

    def check(self) -> None:
        """Check the parameters."""
        check_count(self.n_neighbors, "n_neighbors")
        if self.group_size is not None:
            check_count(self.group_size, "group_size")
        if not isinstance(self.local_mean, bool) and self.local_mean != "auto":
            raise ValueError(f'local_mean must be True, False or "auto"; found {self.local_mean!r}.')
        if not isinstance(self.theta_uncertainty, bool) and self.theta_uncertainty != "auto":
            raise ValueError(f'theta_uncertainty must be True, False or "auto"; found {self.theta_uncertainty!r}.')

    def bind(self, fitted: FittedTerms) -> Predictor:
        """The predictor for fitted data."""
        if self.n_neighbors >= len(fitted.data.X):
            return ExactPredictor(self, fitted)
        return NeighborhoodPredictor(self, fitted)

    def local_data(self, fitted: FittedTerms) -> Observations:
        """Data whose mean has coefficients that are free in every neighborhood, if it is large enough for that."""
        mean = fitted.data.mean.coefficients
        if not fitted.estimated_from_data or not isinstance(mean, Estimated):
            return fitted.data
        return fitted.data.with_mean(as_mean(self.mean_in_neighborhood(mean, len(fitted.data.X))))

    def mean_in_neighborhood(self, estimate: Estimated, n_samples: int) -> Estimated | Basis:
        """The mean in a neighborhood: as estimated from all the data, or with coefficients that are free there."""
        local = self.local_mean
        if local == "auto":
            local = len(np.asarray(estimate.coefficients)) * _LOCAL_SHARE <= self.n_neighbors < n_samples
        return inflated(estimate, _LOCAL_FREEDOM) if local else estimate


class ExactPredictor(Predictor):
    """All the observations are one term: the exact Gaussian process."""

    def __init__(self, method: Nearest, fitted: FittedTerms) -> None:
        self.method = method
        self._data = method.local_data(fitted)
        self._factors = Factors(self._data)

    @property
    def _whole(self) -> Composite:
        return Composite.full(len(self._data.X))

    def prepare(self) -> None:
        """Factorise the covariance of all the data."""
        self._factors.of(self._whole)

    def marginals(self, Z: Floats, n_jobs: int | None) -> Marginals:
        """Predict each point; groups do not matter to an exact Gaussian process."""
        return exact_marginals(self._data, self._factors.one_block(self._whole), Z)

    def joint(self, Z: Floats) -> Belief:
        """Predict all the points jointly."""
        return exact_belief(self._data, self._factors.one_block(self._whole), Z)

    def terms(self, Z: Floats) -> tuple[Composite, Floats | None]:
        """One term."""
        return self._whole, None

    def honest_variance(self, Z: Floats, claimed: Marginals) -> Floats:
        """What is claimed: the exact Gaussian process is as good as it says."""
        return claimed.variance


class NeighborhoodPredictor(Predictor):
    """The nearest observations of each group of test points are its one term."""

    def __init__(self, method: Nearest, fitted: FittedTerms) -> None:
        self.method = method
        self._data = method.local_data(fitted)
        self._size = method.n_neighbors
        self._group_size = method.group_size or default_group_size(self._data.X.shape[1])

    @cached_property
    def _cached_search(self) -> NearestPredictor:
        return NearestPredictor(self._data)

    def prepare(self) -> None:
        """Build the search tree."""
        _ = self._cached_search

    def marginals(self, Z: Floats, n_jobs: int | None) -> Marginals:
        """Predict in groups."""
        return self._cached_search.predict(Z, self._size, self._group_size, n_jobs=n_jobs)

    def joint(self, Z: Floats) -> Belief:
        """Predict all the points from the union of what their groups are predicted from."""
        data = self._data.take(self._union(Z))
        return exact_belief(data, Factors(data).one_block(Composite.full(len(data.X))), Z)

    def terms(self, Z: Floats) -> tuple[Composite, Floats | None]:
        """One term."""
        return Composite([(self._union(Z), 1.0)]), None

    def honest_variance(self, Z: Floats, claimed: Marginals) -> Floats:
        """What is claimed: given its neighbors a prediction is as good as it says."""
        return claimed.variance

    def _union(self, Z: Floats) -> Indices:
        near = self._cached_search.union(Z, self._size, self._group_size)
        if len(near) > _MOST_JOINT:
            raise ValueError(
                f"A joint prediction at these {len(Z)} points is from {len(near)} observations near them, more than "
                f"{_MOST_JOINT}. Ask for fewer points at a time, lower n_neighbors, or use prediction=CompositeSum()."
            )
        return near
