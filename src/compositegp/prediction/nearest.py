"""Prediction from the nearest observations: one term for each group of test points, made for that group."""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from compositegp.backend import Floats, Indices
from compositegp.composite import Composite, Observations
from compositegp.functionals import Functionals
from compositegp.means import Estimated, MeanModel, as_mean, inflated
from compositegp.posteriors import (
    N_NEIGHBORS,
    WINDOWS,
    Belief,
    Gaps,
    Marginals,
    NearestPredictor,
    Neighborhood,
    Neighbors,
    Precision,
    Surrounded,
    default_group_size,
    exact_belief,
    exact_marginals,
    exact_means,
    join_surrounded,
    leave_one_out,
    predict_prefixes,
)
from compositegp.prediction.composite_sum import Factors
from compositegp.prediction.fitted_terms import FittedTerms, HeldOutPart
from compositegp.prediction.method import PredictionMethod, Predictor
from compositegp.prediction.neighborhood_tuning import (
    FEWEST_POINTS,
    NeighborhoodTuning,
    calibrated_crps,
    chosen_neighbors,
    exact_held_out_predictions,
    held_out_predictions,
    learn_errors,
    learn_errors_by,
    mean_that_varies,
    neighbor_curve,
    spread_of,
    varying_mean,
)
from compositegp.predictive import Family
from compositegp.storage import storable
from compositegp.validation import check_count

MOST_MIXED = 500
"""Observations up to which ``theta_uncertainty="auto"`` mixes over θ. With more the effect is small."""
MOST_EXACT = 2048
"""Observations up to which ``n_neighbors="auto"`` is the exact Gaussian process: quicker than neighborhoods."""
_OUTGROWN = 1.25  # times as many observations as errors were learned from, at which they are learned anew
_HELD_NEIGHBORS = 2**22  # indices of neighbors held at once
_MOST_JOINT = 8192  # observations in the one term of a joint prediction, at most
_LOCAL_FREEDOM = 100.0  # prior error of a coefficient in a neighborhood, over that of the estimate from all data


@storable
class Nearest(PredictionMethod):
    """The observations nearest to a group of test points are its one term: the exact Gaussian process given them.

    With no more observations than `n_neighbors` (``auto``: 2,048) it is the exact Gaussian process.

    Parameters
    ----------
    n_neighbors : int or "auto"
        Observations in the term. ``auto``: the smallest number, up to 512, whose expected log score is within 0.0005
        nats of that of 1,024, near the data and in gaps; 1,024 where 512 would lose 0.02 (in more than two columns
        near the data alone). In one or two columns a quarter of them are farther away, up to eight times as far down
        the list of the nearest, where that is expected to be better: it is in gaps, with a long range.
    group_size : int, optional
        Test points that share their nearest observations, at most. By default 128 in up to four columns (fewer where
        they are not close together). In more columns 8 or 16, with up to twice as many observations, where a few groups
        show that sharing costs no more than 0.001 nats of log score, else 1.
    local_mean : bool or "auto"
        For a mean whose coefficients are learned: whether they vary from one neighborhood to another. ``auto``: as much
        as the data say; the coefficients of a neighborhood are N(β₀, T), with T learned (0 is the same mean
        everywhere). True: each neighborhood estimates them from its own observations alone (universal kriging in a
        moving neighborhood). False: they are those of all the data.
    calibration : "local" or None
        ``local``: scale and tails of the predictive distribution are learned from training points that are predicted
        at many distances, and depend on the errors made nearby (see `Calibration`). None: the Gaussian of the model.
    theta_uncertainty : bool or "auto"
        Whether predictions take into account that learned hyper-parameters θ are uncertain. They are then a mixture
        over 32 values of θ, weighted by their posterior under a weak prior: log θ has a standard deviation of 1.5
        around values of the data's own scale. Standard deviations, covariances and draws are those of a normal
        distribution with the mixture's mean and covariance; the noise of new observations is averaged over θ. ``auto``:
        with up to 500 observations. True: with any number, which takes memory for up to 32 covariance matrices. It has
        an effect
        only if all the observations are one term and θ was learned.

    Examples
    --------
    >>> Nearest(256)
    Nearest(n_neighbors=256)
    """

    def __init__(
        self,
        n_neighbors: int | str = "auto",
        group_size: int | None = None,
        local_mean: bool | str = "auto",
        calibration: str | None = "local",
        theta_uncertainty: bool | str = "auto",
    ) -> None:
        self.n_neighbors = n_neighbors
        self.group_size = group_size
        self.local_mean = local_mean
        self.calibration = calibration
        self.theta_uncertainty = theta_uncertainty

    def check(self) -> None:
        """Check the parameters."""
        if self.n_neighbors != "auto":
            check_count(self.n_neighbors, "n_neighbors")
        if self.group_size is not None:
            check_count(self.group_size, "group_size")
        if not isinstance(self.local_mean, bool) and self.local_mean != "auto":
            raise ValueError(f'local_mean must be True, False or "auto"; found {self.local_mean!r}.')
        if self.calibration not in ("local", None):
            raise ValueError(f'calibration must be "local" or None; found {self.calibration!r}.')
        if not isinstance(self.theta_uncertainty, bool) and self.theta_uncertainty != "auto":
            raise ValueError(f'theta_uncertainty must be True, False or "auto"; found {self.theta_uncertainty!r}.')

    def tune(
        self,
        fitted: FittedTerms,
        *,
        heavy_tails: bool,
        n_jobs: int | None,
        gaps: Gaps | None = None,
        spread: bool = True,
    ) -> NeighborhoodTuning | None:
        """Learn which neighbors are enough, how much the mean varies, and how large errors are.

        With `gaps` errors are those of training points in such gaps; an exact Gaussian process does without them.
        Neighbors are the nearest alone where `spread` is False.
        """
        n = len(fitted.data.X)
        if self.is_exact(n):
            return ExactPredictor(self, fitted).tune(heavy_tails=heavy_tails, n_jobs=n_jobs)
        curve = neighbor_curve(fitted.search, n_jobs, spread=spread) if self.n_neighbors == "auto" else None
        if curve is not None:
            neighbors = chosen_neighbors(curve)
        else:
            neighbors = Neighbors(min(N_NEIGHBORS, n) if self.n_neighbors == "auto" else int(self.n_neighbors))
        tuning = NeighborhoodTuning(neighbors.size, neighbors.far, curve)
        estimate = fitted.data.mean.coefficients
        if self.local_mean == "auto" and fitted.estimated_from_data and isinstance(estimate, Estimated):
            search = fitted.search.with_data(fitted.undetermined)
            varies = varying_mean(search, min(neighbors.size, N_NEIGHBORS), n_jobs)
            if varies is not None:
                tuning = replace(tuning, coefficients=varies[0], spread=varies[1])
        if self.calibration is None:
            return tuning
        search = fitted.search.with_data(self.local_data(fitted, tuning))
        return replace(tuning, **learn_errors(search, neighbors, heavy_tails, n_jobs, gaps)._asdict())

    def learns_errors_exactly(self, n_samples: int) -> bool:
        """Whether an exact Gaussian process of that many observations learns how large its errors are."""
        return self.calibration is not None and n_samples >= FEWEST_POINTS and self.n_neighbors == "auto"

    def outgrows(self, tuning: Any, n_samples: int) -> bool:
        """Whether an exact Gaussian process has become so much larger, is one no more, or mixes over θ no more."""
        if self.n_neighbors != "auto" or not isinstance(tuning, NeighborhoodTuning) or tuning.curve is not None:
            return False
        before = tuning.n_neighbors
        if not self.is_exact(n_samples) or self.mixes_theta(before) != self.mixes_theta(n_samples):
            return True
        return n_samples > _OUTGROWN * before

    def predicts_in_gaps(self, n_samples: int) -> bool:
        """Whether there are more observations than an exact Gaussian process takes."""
        return not self.is_exact(n_samples) and n_samples > MOST_EXACT

    def held_out_crps(
        self, candidates: Sequence[Observations], *, heavy_tails: bool, n_jobs: int | None
    ) -> list[Floats] | None:
        """CRPS of some training points, predicted with calibrated errors; None for an exact Gaussian process."""
        if self.calibration is None or not self.predicts_in_gaps(len(candidates[0].X)):
            return None
        return calibrated_crps(candidates, heavy_tails, n_jobs)

    def check_tuning(self, tuning: Any, n_functions: int, outputs: tuple[int, ...]) -> None:
        """Check a tuning from a file."""
        if tuning is None:
            return
        if not isinstance(tuning, NeighborhoodTuning):
            raise ValueError(f"the tuning of Nearest must be a NeighborhoodTuning; found {type(tuning).__name__}")
        if tuning.coefficients is not None:
            shapes = np.shape(tuning.coefficients), np.asarray(tuning.spread).shape
            if shapes != ((n_functions, *(outputs or (1,))), (n_functions, n_functions)):
                raise ValueError(f"the coefficients of a tuning have the shapes {shapes}")

    def bind(self, fitted: FittedTerms, tuning: Any = None) -> Predictor:
        """The predictor for fitted data."""
        if self.is_exact(len(fitted.data.X)):
            return ExactPredictor(self, fitted, tuning)
        tuning = self.tune(fitted, heavy_tails=True, n_jobs=None) if tuning is None else tuning
        assert isinstance(tuning, NeighborhoodTuning)
        return NeighborhoodPredictor(self, fitted, tuning)

    def local_data(self, fitted: FittedTerms, tuning: NeighborhoodTuning | None) -> Observations:
        """Data under the mean of a neighborhood: that of all the data, or one whose coefficients vary."""
        estimate = fitted.data.mean.coefficients
        if not fitted.estimated_from_data or not isinstance(estimate, Estimated):
            return fitted.data
        mean = self.mean_in_neighborhood(estimate, tuning, fitted.data.outputs)
        return fitted.data if mean is None else fitted.data.with_mean(mean)

    def mean_in_neighborhood(
        self, estimate: Estimated, tuning: NeighborhoodTuning | None, outputs: tuple[int, ...]
    ) -> MeanModel | None:
        """The mean of a neighborhood; None where it is that of all the data."""
        if self.local_mean is True:
            return as_mean(inflated(estimate, _LOCAL_FREEDOM))
        if tuning is None or tuning.coefficients is None or tuning.spread is None:
            return None
        return mean_that_varies(estimate, tuning.coefficients, tuning.spread, outputs)

    def is_exact(self, n_samples: int) -> bool:
        """Whether that many observations are all one term."""
        return n_samples <= (MOST_EXACT if self.n_neighbors == "auto" else int(self.n_neighbors))

    def mixes_theta(self, n_samples: int) -> bool:
        """Whether predictions from that many observations, from which θ was learned, are averaged over θ."""
        if not self.is_exact(n_samples):
            return False
        return n_samples <= MOST_MIXED if self.theta_uncertainty == "auto" else bool(self.theta_uncertainty)


class ExactPredictor(Predictor):
    """All the observations are one term: the exact Gaussian process.

    It takes them in an order of places, so that nothing depends on the order in which they were given: neither which
    of them errors are learned from, nor the last digits.
    """

    method: Nearest

    def __init__(self, method: Nearest, fitted: FittedTerms, tuning: NeighborhoodTuning | None = None) -> None:
        self.method = method
        self.order = fitted.order_of_places
        self._given = fitted.data
        self._fitted = fitted.in_order_of_places()
        self.data = method.local_data(self._fitted, None)
        self._factors = Factors(self.data)
        self._undetermined = self.data if method.local_mean is True else self._fitted.undetermined
        self._calibration = None if tuning is None else tuning.active_calibration

    def tune(self, *, heavy_tails: bool, n_jobs: int | None) -> NeighborhoodTuning | None:
        """Learn how large errors are; with fewer than 100 observations they are the Gaussian's: None."""
        n = len(self.data.X)
        if not self.method.learns_errors_exactly(n):
            return None
        learned = learn_errors_by(self._given, self.held_out_thinned(n_jobs), heavy_tails)
        return NeighborhoodTuning(n, calibration=learned.calibration, gross=learned.gross)

    def tuned(self, tuning: NeighborhoodTuning) -> "ExactPredictor":
        """The same factors, with what was learned of errors."""
        found = copy(self)
        found._calibration = tuning.active_calibration
        if found.is_calibrated:
            found._cached_precision, found._cached_search = self._cached_precision, self._cached_search
        return found

    def lifted(self, functionals: Functionals) -> "ExactPredictor":
        """The same factors, under the model lifted to functionals; calibration is of points, and left to them."""
        found = copy(self)
        found.data = self.data.lifted(functionals)
        found._calibration = None
        return found

    @property
    def _whole(self) -> Composite:
        return Composite.full(len(self.data.X))

    @property
    def is_calibrated(self) -> bool:
        """Whether errors are not as the Gaussian says."""
        return self._calibration is not None

    @property
    def precision(self) -> Precision:
        """The inverse of the covariance of all the data."""
        return Precision.of(self.data, self._factors.one_block(self._whole))

    @cached_property
    def _cached_precision(self) -> Precision:
        return self.precision

    @cached_property
    def _cached_search(self) -> NearestPredictor:
        return self._fitted.search.with_data(self.data)

    @cached_property
    def in_own_order(self) -> Indices:
        """Where each of the observations, as they were given, is among those in an order of places."""
        return np.argsort(self.order)

    def prepare(self) -> None:
        """Factorize the covariance of all the data."""
        self._factors.of(self._whole)

    def marginals(self, Z: Floats, n_jobs: int | None) -> Marginals | Surrounded:
        """Predict each point; groups do not matter to an exact Gaussian process."""
        found = exact_marginals(self.data, self._factors.one_block(self._whole), Z)
        return Surrounded(*found, self.surroundings(Z, n_jobs)) if self.is_calibrated else found

    def surroundings(self, Z: Floats, n_jobs: int | None) -> Neighborhood:
        """What the observations around test points say about errors there."""
        assert self._calibration is not None
        near = self._fitted.search.nearest(Z, min(len(self.data.X), self._calibration.reach), n_jobs)
        return self._cached_precision.around(near, n_jobs)

    def means(self, Z: Floats, n_jobs: int | None) -> Floats:
        """Means alone, which need no solve."""
        return exact_means(self.data, self._factors.one_block(self._whole), Z)

    def spread(self, Z: Floats, found: Any, noise: Floats) -> tuple[Any, Family]:
        """Factors and family by what was learned of errors at training points."""
        return spread_of(self._calibration, self.data.kernel, Z, found, noise)

    def joint(self, Z: Floats) -> Belief:
        """Predict all the points jointly."""
        return exact_belief(self.data, self._factors.one_block(self._whole), Z)

    def terms(self, Z: Floats) -> tuple[Composite, Floats | None]:
        """One term."""
        return self._whole, None

    def honest_variance(self, Z: Floats, claimed: Marginals | Surrounded) -> Floats:
        """What is claimed: the exact Gaussian process is as good as it says."""
        return claimed.variance

    def held_out(self, n_jobs: int | None, seed: int) -> list[HeldOutPart]:
        """Training points predicted without themselves and their K nearest, for several K."""
        n = len(self.data.X)
        if n < 3:
            raise ValueError(f"validate needs at least three observations; found {n}.")
        search = self._cached_search
        if n <= N_NEIGHBORS:
            parts = held_out_predictions(search, Neighbors(n - 1), n_jobs, seed=seed)
        else:
            parts = exact_held_out_predictions(self._cached_precision, search, n_jobs, seed=seed)
        numbered = [self._as_numbered(part) for part in parts]
        return [part.take(np.argsort(part.rows)) for part in numbered]

    def held_out_thinned(self, n_jobs: int | None) -> list[HeldOutPart]:
        """The same for fewer points at the larger distances, in an order of places: enough to learn of errors."""
        parts = exact_held_out_predictions(self._cached_precision, self._cached_search, n_jobs, thinned=True)
        return [self._as_numbered(part) for part in parts]

    def left_out_surroundings(self, n_jobs: int | None) -> HeldOutPart:
        """Every training point predicted from all the others, with what the observations around it say of errors."""
        rows, search = self.in_own_order, self._cached_search
        sets = search.around(rows, 0, Neighbors(min(len(rows) - 1, max(WINDOWS))), n_jobs)[:, ::-1]
        (found,) = self._cached_precision.without(rows, sets, (0,), n_jobs)
        part = HeldOutPart(rows, 0, search.distances(rows, sets[:, 0]), found, self.data.noise[rows])
        return self._as_numbered(part)

    def left_out(self, n_jobs: int | None) -> tuple[Marginals | Surrounded, Floats]:
        """Every training point predicted from all the others, from one factorization."""
        data, given = self._undetermined, self.in_own_order
        mean, variance = leave_one_out(data, Factors(data).one_block(self._whole))
        return self.surrounded(Marginals(mean[given], variance[given]), n_jobs), data.noise[given]

    def _as_numbered(self, part: HeldOutPart) -> HeldOutPart:
        """Training points by the numbers that they were given with."""
        return part._replace(rows=self.order[part.rows])

    def surrounded(self, left_out: Marginals, n_jobs: int | None) -> Marginals | Surrounded:
        """Predictions of all training points with what is around each, where that says how large errors are."""
        if not self.is_calibrated:
            return left_out
        return Surrounded(*left_out, self.left_out_surroundings(n_jobs).predicted.surroundings)


class NeighborhoodPredictor(Predictor):
    """The nearest observations of each group of test points are its one term."""

    def __init__(self, method: Nearest, fitted: FittedTerms, tuning: NeighborhoodTuning) -> None:
        self.method = method
        self.tuning = tuning
        self._data = method.local_data(fitted, tuning)
        self._neighbors = tuning.neighbors
        self._group_size = method.group_size
        self._calibration = tuning.active_calibration
        self._fitted = fitted

    def lifted(self, functionals: Functionals) -> "NeighborhoodPredictor":
        """The same search tree, under the model lifted to functionals; calibration is of points, and left to them."""
        found = copy(self)
        found._data = self._data.lifted(functionals)
        found._cached_search = self._cached_search.lifted(functionals)
        found.tuning, found._calibration = replace(self.tuning, calibration=None), None
        return found

    @cached_property
    def _cached_search(self) -> NearestPredictor:
        return self._fitted.search.with_data(self._data)

    def prepare(self) -> None:
        """Build the search tree."""
        _ = self._cached_search

    def marginals(self, Z: Floats, n_jobs: int | None) -> Marginals | Surrounded:
        """Predict in groups."""
        predict = self._cached_search.predict_surrounded if self._calibration else self._cached_search.predict
        return predict(Z, self._neighbors, self._group_size, n_jobs=n_jobs)

    def means(self, Z: Floats, n_jobs: int | None) -> Floats:
        """Means alone, without the solves and the neighborhoods that error bars need."""
        return self._cached_search.means(Z, self._neighbors, self._group_size, n_jobs=n_jobs)

    def spread(self, Z: Floats, found: Any, noise: Floats) -> tuple[Any, Family]:
        """Factors and family by what was learned of errors at training points."""
        return spread_of(self._calibration, self._data.kernel, Z, found, noise)

    def held_out(self, n_jobs: int | None, seed: int) -> list[HeldOutPart]:
        """Training points predicted without themselves and their K nearest, for several K."""
        return held_out_predictions(self._cached_search, self._neighbors, n_jobs, seed=seed)

    def left_out(self, n_jobs: int | None) -> tuple[Marginals | Surrounded, Floats]:
        """Every training point predicted from its nearest neighbors without itself."""
        data, parts = self._data, []
        for rows in np.array_split(
            np.arange(len(data.X)), -(-len(data.X) * self._neighbors.size // _HELD_NEIGHBORS)
        ):
            sets = self._cached_search.around(rows, 0, self._neighbors, n_jobs)
            parts += predict_prefixes(data, sets, rows, (0,), n_jobs=n_jobs)
        return join_surrounded(parts, data.outputs), data.noise

    def joint(self, Z: Floats) -> Belief:
        """Predict all the points from the union of what their groups are predicted from."""
        data = self._data.take(self._union(Z))
        return exact_belief(data, Factors(data).one_block(Composite.full(len(data.X))), Z)

    def terms(self, Z: Floats) -> tuple[Composite, Floats | None]:
        """One term."""
        return Composite([(self._union(Z), 1.0)]), None

    def honest_variance(self, Z: Floats, claimed: Marginals | Surrounded) -> Floats:
        """What is claimed: given its neighbors a prediction is as good as it says."""
        return claimed.variance

    def _union(self, Z: Floats) -> Indices:
        shared = self._group_size or default_group_size(self._data.X.shape[1])
        near = self._cached_search.union(Z, self._neighbors, shared)
        if len(near) > _MOST_JOINT:
            raise ValueError(
                f"A joint prediction at these {len(Z)} points is from {len(near)} observations near them, more than "
                f"{_MOST_JOINT}. Ask for fewer points at a time, lower n_neighbors, or use prediction=CompositeSum()."
            )
        return near
