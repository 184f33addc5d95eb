"""The estimator for data in partitions."""

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import dask
import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from compositegp.backend import Floats, warn_caller
from compositegp.composite import SCHEMES, Observations
from compositegp.distributed.partitioned_prediction import Model
from compositegp.distributed.partitioned_terms import PartitionedTerms
from compositegp.distributed.partitions import check_numeric, parts_of, sample_of, summarise
from compositegp.estimators import at_scale, default_kernel
from compositegp.kernels import diagonal
from compositegp.learning import SCALE_SEGMENTS, LearningResult, Reporter, run, task_of
from compositegp.means import Estimated, as_mean
from compositegp.validation import check_kernel, check_points


class DistributedGPRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Gaussian-process regression on a Dask data frame or arrays, whose rows stay where they are.

    Each partition is split into segments of its own. Learning sums scores and Fisher information over the partitions,
    in a tree; prediction sends test points to the partitions, and what these say about them comes back. Results do
    not depend on the number of workers, nor on any that die on the way.

    Partitions of rows that are near each other (sorted by time, or by tile) make good segments; a partition is worked
    on by one worker, which has to hold it.

    Parameters
    ----------
    kernel : scikit-learn kernel, optional
        As in `CompositeGPRegressor`.
    segment_size : int
    segmentation : {"tree", "sequential", "interleaved", "random"}
    conditioning_size : int
        Earlier points of its own partition, the nearest, that each segment is conditioned on.
    learn : bool
        Whether hyper-parameters, and coefficients of the mean, are learned.
    tolerance : float or None
        As in `CompositeGPRegressor`: no more segments are read than it takes.
    mean : None, number, callable, "constant", "linear" or Basis
    prediction : {"nearest", "composite"}
        ``nearest``: each test point from the observations nearest to it, whatever partition they are in. ``composite``:
        the evidence of every segment about a group of test points, added up (the paper).
    n_neighbors : int
        For ``nearest``.
    group_size : int
        For ``composite``: test points that are predicted together.
    persist : bool
        Keep the partitions, as arrays, in the workers' memory from one pass to the next. Otherwise every pass reads
        them again.
    random_state : int, RandomState or None

    Attributes
    ----------
    kernel_ : scikit-learn kernel
    mean_ : as `mean`, with the coefficients that were learned
    learning_result_ : LearningResult or None
    n_samples_, n_features_in_ : int
    feature_names_in_ : array
        Where the data had names for their columns.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [None, Kernel],
        "segment_size": [Interval(Integral, 1, None, closed="left")],
        "segmentation": [StrOptions(set(SCHEMES))],
        "conditioning_size": [Interval(Integral, 0, None, closed="left")],
        "learn": ["boolean"],
        "tolerance": [Interval(Real, 0, None, closed="neither"), None],
        "mean": "no_validation",
        "prediction": [StrOptions({"nearest", "composite"})],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "group_size": [Interval(Integral, 1, None, closed="left")],
        "persist": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        segment_size: int = 512,
        segmentation: str = "tree",
        conditioning_size: int = 0,
        learn: bool = True,
        tolerance: float | None = 0.03,
        mean: Any = None,
        prediction: str = "nearest",
        n_neighbors: int = 256,
        group_size: int = 128,
        persist: bool = True,
        random_state: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.segment_size = segment_size
        self.segmentation = segmentation
        self.conditioning_size = conditioning_size
        self.learn = learn
        self.tolerance = tolerance
        self.mean = mean
        self.prediction = prediction
        self.n_neighbors = n_neighbors
        self.group_size = group_size
        self.persist = persist
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, target: str | None = None) -> "DistributedGPRegressor":
        """Learn from a Dask data frame (`target` names a column) or from Dask arrays X (n, d) and y (n,).

        Rows whose target is missing are left out, with a warning.

        Returns
        -------
        self
        """
        self._validate_params()
        if hasattr(self.mean, "fit"):
            raise ValueError(
                f"mean {self.mean!r} would have to be fitted to data that are elsewhere. Give a Basis of a fitted one."
            )
        if self.learn and isinstance(as_mean(self.mean).coefficients, Estimated):
            raise ValueError(
                "mean is an Estimated: its coefficients are known already. Give its functions as a Basis."
            )
        lazy, names = parts_of(X, y, target, self.segment_size, self.segmentation)
        parts = list(dask.persist(*lazy)) if self.persist else lazy
        summaries = list(dask.compute(*[dask.delayed(summarise)(part) for part in parts]))
        n = sum(summary.n_points for summary in summaries)
        if not n:
            raise ValueError("There is no row with a target: nothing to learn from.")
        missing = sum(summary.n_missing for summary in summaries)
        if missing:
            warn_caller(
                f"The target is missing in {missing} of {n + missing} rows, which are left out.", UserWarning
            )
        kernel, mean = self.kernel, self.mean
        if kernel is None:
            kernel, mean = default_kernel(len(summaries[0].least)), "constant" if mean is None else mean
        terms = PartitionedTerms(parts, summaries, mean, self.conditioning_size)
        result = None
        if self.learn and len(check_kernel(kernel).theta):
            result = self._learned(kernel, mean, terms)
            kernel, mean = result.kernel, result.mean
        elif self.kernel is None:
            points, targets = self._sample(terms, check_random_state(self.random_state).permutation(len(terms)))
            kernel = at_scale(kernel, np.concatenate(points), np.concatenate(targets))
        self._model = Model(kernel, mean, parts, summaries, self.conditioning_size)
        self._lazy_parts = lazy
        self.learning_result_ = result
        self.n_samples_, self.n_features_in_ = n, len(summaries[0].least)
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        return self

    def _sample(self, terms: PartitionedTerms, order: Any) -> tuple[list[Floats], list[Floats]]:
        """Points and targets of the first few segments in an order."""
        places = terms.places(order[:SCALE_SEGMENTS])
        chosen = [dask.delayed(sample_of)(terms.parts[owner], numbers) for owner, numbers in places.items()]
        drawn = dask.compute(*chosen)
        return [array for some in drawn for array in some[0]], [array for some in drawn for array in some[1]]

    def _learned(self, kernel: Kernel, mean: Any, terms: PartitionedTerms) -> LearningResult:
        generator = check_random_state(self.random_state)
        order = generator.permutation(len(terms))
        points, targets = self._sample(terms, order)
        data = Observations.checked(
            kernel, np.concatenate(points), np.concatenate(targets), mean=mean, noise_variance=None
        )
        stops = np.cumsum([len(part) for part in points])
        task = task_of(
            data,
            np.split(np.arange(stops[-1]), stops[:-1]),
            terms,
            order,
            start="data",
            tolerance=self.tolerance,
            seed=int(generator.randint(2**31)),
            n_restarts=0,
            n_jobs=None,
            reporter=Reporter(None, False, len(terms)),
        )
        result = run(task, "composite_likelihood", mean, "raise")
        for message in result.messages:
            if not (self.kernel is None and message.parameters):
                warn_caller(message.text, message.category)
        return result

    def predict(self, Z: Any, return_std: bool = False, *, latent: bool = False) -> Any:
        """Predict the target at test points.

        Parameters
        ----------
        Z : array or data frame of shape (M, d), in memory or a Dask collection
            Of a data frame the columns that the model was fitted to are taken.
        return_std : bool
        latent : bool
            Error bars of the noise-free f rather than of a new observation.

        Returns
        -------
        mean : array of shape (M,)
        std : array of shape (M,)
            With `return_std`.
        """
        model = self._fitted()
        self._validate_params()
        points = check_points(self._points(Z), "Z", self.n_features_in_)
        if self.prediction == "composite":
            found = model.by_composite(points, self.group_size)
        else:
            found = model.by_nearest(points, self.n_neighbors)
        if not return_std:
            return found.mean
        variance = found.variance
        if not latent:
            noise = diagonal(model.kernel, points) - diagonal(model.kernel, points, noise=False)
            variance = variance + np.maximum(noise, 0.0)
        return found.mean, np.sqrt(variance)

    @property
    def kernel_(self) -> Kernel:
        """The kernel with its learned hyper-parameters."""
        return self._fitted().kernel

    @property
    def mean_(self) -> Any:
        """The mean, with its coefficients where they were learned."""
        return self._fitted().mean

    def _points(self, Z: Any) -> Any:
        names = getattr(self, "feature_names_in_", None)
        if names is not None and hasattr(Z, "columns"):
            absent = [str(name) for name in names if name not in Z.columns]
            if absent:
                raise ValueError(f"Z lacks the columns {', '.join(absent)} that the model was fitted to.")
            check_numeric(Z, list(names), "Z")
            Z = Z[list(names)]
        return Z.compute() if hasattr(Z, "compute") else Z

    def __getstate__(self) -> dict[str, Any]:
        """Without what a cluster holds: a copy elsewhere reads the partitions again from where they came."""
        state = dict(super().__getstate__())
        if "_model" in state:
            state["_model"] = replace(state["_model"], parts=state["_lazy_parts"])
        return state

    def _fitted(self) -> Model:
        if not hasattr(self, "_model"):
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet. Call fit first.")
        return self._model
