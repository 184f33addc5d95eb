"""The estimator for data in partitions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import dask
import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import check_random_state

from compositegp.backend import Floats, warn_caller
from compositegp.composite import CONDITIONING_SIZE, SCHEMES, SEGMENT_SIZE, Composite, Observations
from compositegp.distributed.lazy_prediction import add_evidence_lazily, predict_lazily
from compositegp.distributed.partitioned_prediction import PartitionedModel
from compositegp.distributed.partitioned_terms import PartitionedTerms
from compositegp.distributed.partitions import Part, check_numeric, parts_of, points_of, sample_of, summarize
from compositegp.functionals import Functionals, find_functionals, lift
from compositegp.kernels import noise_variance
from compositegp.learning import (
    SCALE_SEGMENTS,
    KernelComparison,
    LearningMethod,
    LearningResult,
    Reporter,
    as_learning_method,
    at_scale,
    candidates_of,
    check_kernel_choice,
    choose_kernel_from,
    default_kernel,
    is_automatic,
    problem_of,
    single_kernel,
    solve,
)
from compositegp.means import Basis, Estimated, MeanModel, as_given, as_mean, in_units_of
from compositegp.posteriors import N_NEIGHBORS
from compositegp.prediction import (
    CompositeSum,
    FittedTerms,
    Nearest,
    NeighborhoodTuning,
    PredictionMethod,
    as_prediction_method,
    functional_spread,
    spread_of,
)
from compositegp.predictive import Calibration, Family, IdentityTarget, PredictiveDistribution, as_target_transform
from compositegp.validation import check_count, check_points

_TUNING_POINTS = 50_000  # rows that the prediction method learns from: whole partitions, at least one


class DistributedGPRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Gaussian-process regression on a Dask data frame or arrays, whose rows stay where they are.

    Each partition is split into segments of its own. Learning sums scores and Fisher information over the partitions,
    in a tree; prediction sends test points to the partitions, and what these say about them comes back. Results do
    not depend on the number of workers, nor on workers that die on the way.

    Partitions of rows that are near each other (sorted by time, or by tile) make good segments; a partition is worked
    on by one worker, which has to hold it.

    Parameters
    ----------
    kernel, mean, learning, segment_size, segmentation, random_state, verbose
        As in `CompositeGPRegressor`; `learning` by composite likelihood, or None.
    target_transform : None or "log"
        As in `CompositeGPRegressor`.
    prediction : Nearest, CompositeSum, "nearest" or "composite"
        `Nearest`: each test point from the observations nearest to it, whatever partition they are in. `CompositeSum`:
        the evidence of every segment about a group of test points, added up (the paper).
    conditioning_size : int
        Earlier points of its own partition, the nearest, that each segment is conditioned on.
    persist : bool
        Keep the partitions, as arrays, in the workers' memory from one pass to the next. Otherwise every pass reads
        them again.

    Attributes
    ----------
    kernel_ : scikit-learn kernel
    mean_ : as `mean`, with the coefficients that were learned
    learning_result_ : LearningResult or None
    kernel_comparison_ : KernelComparison or None
        How the kernel was chosen; None where none were compared.
    n_samples_, n_features_in_ : int
    feature_names_in_ : array
        Where the data had names for their columns.

    Examples
    --------
    >>> import dask.array as da
    >>> X = np.linspace(0, 10, 400)[:, None]
    >>> model = DistributedGPRegressor()
    >>> model = model.fit(da.from_array(X, chunks=(200, 1)), da.from_array(np.sin(X[:, 0]), chunks=200))
    >>> model.predict([[2.0], [3.0]]).round(2)
    array([0.91, 0.14])
    """

    def __init__(
        self,
        kernel: Kernel | Sequence[Kernel] | Mapping[str, Kernel] | str | None = None,
        *,
        mean: Any = None,
        target_transform: str | None = None,
        prediction: PredictionMethod | str = "nearest",
        learning: LearningMethod | str | None = "composite_likelihood",
        segment_size: int = SEGMENT_SIZE,
        segmentation: str = "tree",
        conditioning_size: int = CONDITIONING_SIZE,
        persist: bool = True,
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.mean = mean
        self.target_transform = target_transform
        self.prediction = prediction
        self.learning = learning
        self.segment_size = segment_size
        self.segmentation = segmentation
        self.conditioning_size = conditioning_size
        self.persist = persist
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, target: Any = None) -> "DistributedGPRegressor":
        """Learn from a Dask data frame (`target` names a column) or from Dask arrays X (n, d) and y (n,).

        Rows whose target is missing are left out, with a warning.

        Returns
        -------
        self
        """
        self._check_parameters()
        transform = as_target_transform(self.target_transform, np.ones(1))
        lazy, names = parts_of(X, y, target, self.segment_size, self.segmentation, transform)
        parts = list(dask.persist(*lazy)) if self.persist else lazy
        summaries = list(dask.compute(*[dask.delayed(summarize)(part) for part in parts]))
        n = sum(summary.n_points for summary in summaries)
        if not n:
            raise ValueError("There is no row with a target: nothing to learn from.")
        missing = sum(summary.n_missing for summary in summaries)
        if missing:
            warn_caller(
                f"The target is missing in {missing} of {n + missing} rows, which are left out.", UserWarning
            )
        kernel, mean = single_kernel(self.kernel), as_mean(self.mean)
        if kernel is None:
            kernel = default_kernel(len(summaries[0].least))
            mean = as_mean("constant") if self.mean is None else mean
        ends = [np.min([one.least for one in summaries], axis=0), np.max([one.most for one in summaries], axis=0)]
        mean = in_units_of(mean, np.stack(ends))
        terms = PartitionedTerms(parts, summaries, mean, self.conditioning_size)
        result, comparison = None, None
        if self.learning is not None and len(kernel.theta) and self._can_learn(parts, mean, n):
            result, comparison = self._learned(kernel, terms, n)
            kernel, mean = result.kernel, as_mean(result.mean)
        elif is_automatic(self.kernel):
            points, targets = self._sample(terms, check_random_state(self.random_state).permutation(len(terms)))
            kernel = at_scale(kernel, np.concatenate(points), np.concatenate(targets))
        self._given_mean = terms.mean
        self._model = PartitionedModel(kernel, mean, parts, summaries, self.conditioning_size)
        self._lazy_parts = lazy
        self._transform = transform
        self._tunings: dict[str, NeighborhoodTuning] = {}
        self._estimated = isinstance(as_mean(self.mean).coefficients, Basis) or is_automatic(self.kernel)
        self.learning_result_, self.kernel_comparison_ = result, comparison
        self.n_samples_, self.n_features_in_ = n, len(summaries[0].least)
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        return self

    def _can_learn(self, parts: list[Any], mean: MeanModel, n: int) -> bool:
        """Whether the target varies; a warning if it does not, as from `CompositeGPRegressor`."""
        bounds = [bound for bound in dask.compute(*[dask.delayed(_bounds)(part, mean) for part in parts]) if bound]
        if n > 1 and max(high for _, high in bounds) > min(low for low, _ in bounds):
            return True
        what = "one observation" if n == 1 else "a constant target"
        warn_caller(f"There is {what}: hyper-parameters stay where the kernel has them.", ConvergenceWarning)
        return False

    def _sample(self, terms: PartitionedTerms, order: Any) -> tuple[list[Floats], list[Floats]]:
        """Points and targets of the first few segments in an order."""
        places = terms.places(order[:SCALE_SEGMENTS])
        chosen = [dask.delayed(sample_of)(terms.parts[owner], numbers) for owner, numbers in places.items()]
        drawn = dask.compute(*chosen)
        return [array for some in drawn for array in some[0]], [array for some in drawn for array in some[1]]

    def _learned(
        self, kernel: Kernel, terms: PartitionedTerms, n: int
    ) -> tuple[LearningResult, KernelComparison | None]:
        method = as_learning_method(self.learning)
        generator = check_random_state(self.random_state)
        order = generator.permutation(len(terms))
        points, targets = self._sample(terms, order)
        data = Observations.of(kernel, terms.mean, np.concatenate(points), np.concatenate(targets), None)
        stops = np.cumsum([len(part) for part in points])
        sample = np.split(np.arange(stops[-1]), stops[:-1])
        seed, show = int(generator.randint(2**31)), bool(self.verbose)
        candidates, comparison = candidates_of(self.kernel, data, method, n), None
        if candidates:
            result, comparison = choose_kernel_from(
                candidates, data, sample, terms, order, method, seed=seed, n_jobs=None, verbose=show
            )
        else:
            reporter = Reporter(None, show, len(terms))
            problem = problem_of(
                data, sample, terms, order, start=method.start, seed=seed, n_jobs=None, reporter=reporter
            )
            result = solve(problem, method)
        for message in result.messages:
            if not (is_automatic(self.kernel) and message.parameters):
                warn_caller(message.text, message.category)
        return result, comparison

    def predict_distribution(self, X: Any, *, latent: bool = False) -> PredictiveDistribution:
        """Predict the target as distributions, which are in memory.

        For more test points than memory holds: `predict`, `predict_interval` and `predict_quantiles` of a Dask
        collection are Dask arrays.

        Parameters
        ----------
        X : array or data frame of shape (M, d), in memory or a Dask collection, or functionals
            Of a data frame the columns that the model was fitted to are taken. Functionals: see
            `compositegp.functionals`.
        latent : bool
            Error bars of the noise-free f rather than of a new observation.

        Returns
        -------
        PredictiveDistribution
        """
        model = self._fitted()
        asked = find_functionals(X)
        if asked is not None and not asked.is_point.all():
            return self._predict_functionals(asked, latent)
        points = check_points(self._points(X) if asked is None else asked.points, "X", self.n_features_in_)
        method = self._method()
        noise = np.asarray(noise_variance(model.kernel, points))
        shown = np.zeros(len(points)) if latent else noise
        if isinstance(method, CompositeSum):
            found = model.by_composite(points, method.group_size)
            return PredictiveDistribution.of_marginals(
                found.mean, found.variance + shown, transform=self._transform
            )
        assert isinstance(method, Nearest)
        tuning = self._tuned(method)
        near = replace(model, mean=self._local_mean(model, method, tuning)).by_nearest(points, tuning.n_neighbors)
        return _distribution(points, near, model.kernel, tuning.calibration, latent, self._transform)

    def _predict_functionals(self, asked: Functionals, latent: bool) -> PredictiveDistribution:
        if asked.n_columns != self.n_features_in_:
            raise ValueError(
                f"X has functionals of points with {asked.n_columns} column(s), but the model was fitted to "
                f"{self.n_features_in_}. Give the same columns in the same order."
            )
        if not isinstance(self._transform, IdentityTarget) and (asked.counts > 1).any():
            raise ValueError(
                "the target is transformed, and the sum or average of a target is not that of its transform."
            )
        model, method = self._fitted(), self._method()
        kernel, (rows,) = lift(model.kernel, X=asked)
        noise = np.zeros(len(asked)) if latent else np.asarray(noise_variance(kernel, rows))
        if isinstance(method, CompositeSum):
            found = model.lifted(kernel.functionals).by_composite(rows, method.group_size)
            return PredictiveDistribution.of_marginals(
                found.mean, found.variance + noise, transform=IdentityTarget()
            )
        assert isinstance(method, Nearest)
        tuning = self._tuned(method)
        local = replace(model, mean=self._local_mean(model, method, tuning))
        found = local.lifted(kernel.functionals).functionals_by_nearest(rows, tuning.n_neighbors)

        def spread_at(points: Floats) -> tuple[Any, Family]:
            near, own = (
                local.by_nearest(points, tuning.n_neighbors),
                np.asarray(noise_variance(model.kernel, points)),
            )
            return spread_of(tuning.calibration, model.kernel, points, near, own)

        spread = functional_spread(asked, spread_at) if tuning.calibration is not None else {}
        return PredictiveDistribution.of_marginals(
            found.mean, found.variance + noise, transform=IdentityTarget(), **spread
        )

    def _tuned(self, method: Nearest) -> NeighborhoodTuning:
        """What `Nearest` learns: from some of the partitions, brought together."""
        key = repr(method)
        if self._tunings.get(key) is None:
            points, targets = self._tuning_sample()
            model = self._fitted()
            data = Observations.of(model.kernel, model.mean, points, targets, None)
            fitted = FittedTerms(data, self._given_mean, lambda: [], lambda _: Composite.full(len(points)))
            heavy_tails = isinstance(self._transform, IdentityTarget)
            found = method.tune(fitted, heavy_tails=heavy_tails, n_jobs=None, spread=False)
            size = N_NEIGHBORS if method.n_neighbors == "auto" else int(method.n_neighbors)
            if found is None:
                found = NeighborhoodTuning(size)
            elif (
                found.curve is None and method.n_neighbors == "auto"
            ):  # exact, in memory; here each point has its own
                found = replace(found, n_neighbors=size)
            self._tunings[key] = found
        return self._tunings[key]

    def _local_mean(self, model: PartitionedModel, method: Nearest, tuning: NeighborhoodTuning) -> MeanModel:
        estimate = model.mean.coefficients
        if not self._estimated or not isinstance(estimate, Estimated):
            return model.mean
        return method.mean_in_neighborhood(estimate, tuning, ()) or model.mean

    def _tuning_sample(self) -> tuple[Floats, Floats]:
        """Points and targets of whole partitions, chosen at random, up to a number that one machine holds easily."""
        model = self._fitted()
        order = np.random.default_rng(0).permutation(len(model.parts))
        sizes = np.cumsum([model.summaries[number].n_points for number in order])
        chosen = order[: 1 + int(np.searchsorted(sizes, _TUNING_POINTS))]
        parts = dask.compute(*[dask.delayed(points_of)(model.parts[number]) for number in chosen])
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def predict(self, X: Any, return_std: bool = False, *, latent: bool = False) -> Any:
        """Predict the target: its mean (M,) and, with `return_std`, its standard deviation (M,).

        Of a Dask collection the results are Dask arrays: test points and predictions stay in partitions.
        """
        lazy = self._lazily(X, latent, _mean_and_std, 2)
        if lazy is not None:
            return (lazy[:, 0], lazy[:, 1]) if return_std else lazy[:, 0]
        found = self.predict_distribution(X, latent=latent)
        return (found.mean, found.std) if return_std else found.mean

    def predict_interval(self, X: Any, level: float = 0.95, *, latent: bool = False) -> tuple[Any, Any]:
        """Ends of the central interval that holds the target with probability `level`: two arrays of shape (M,)."""
        lazy = self._lazily(X, latent, partial(_interval, level=level), 2)
        if lazy is not None:
            return lazy[:, 0], lazy[:, 1]
        return self.predict_distribution(X, latent=latent).interval(level)

    def predict_quantiles(self, X: Any, q: Any = (0.05, 0.5, 0.95), *, latent: bool = False) -> Any:
        """Quantiles of the target: shape (M, len(q)), or (M,) for a single number."""
        levels = np.asarray(q, dtype=np.float64)
        lazy = self._lazily(X, latent, partial(_quantiles, q=levels.reshape(-1)), levels.size)
        if lazy is not None:
            return lazy if levels.ndim else lazy[:, 0]
        return self.predict_distribution(X, latent=latent).quantile(levels)

    def _lazily(
        self, X: Any, latent: bool, wanted: Callable[[PredictiveDistribution], Floats], width: int
    ) -> Any | None:
        """What is wanted of test points in a Dask collection, as a Dask array; None where they are in memory.

        `CompositeSum` predicts groups of test points of one partition that are near each other.
        """
        if not hasattr(X, "to_delayed"):
            return None
        method, model = self._method(), self._fitted()
        parts = np.ravel(self._own_columns(X).to_delayed())
        chunks = [dask.delayed(_checked)(part, self.n_features_in_) for part in parts]
        if isinstance(method, CompositeSum):
            plain = (model.kernel, None, latent, self._transform, wanted)
            return add_evidence_lazily(model, chunks, method.group_size, partial(_finish, plain), width)
        assert isinstance(method, Nearest)
        tuning = self._tuned(method)
        near = replace(model, mean=self._local_mean(model, method, tuning))
        options = (near.kernel, tuning.calibration, latent, self._transform, wanted)
        return predict_lazily(near, chunks, tuning.n_neighbors, partial(_finish, options), width)

    @property
    def kernel_(self) -> Kernel:
        """The kernel with its learned hyper-parameters."""
        return self._fitted().kernel

    @property
    def calibration_(self) -> Calibration | None:
        """Scale and tails of errors as `Nearest` learned them; None with another prediction method."""
        method = self._method()
        return self._tuned(method).calibration if isinstance(method, Nearest) else None

    @property
    def mean_(self) -> Any:
        """The mean, with its coefficients where they were learned."""
        mean = self._fitted().mean
        if mean.coefficients is None:
            return self.mean
        return as_given(mean.coefficients) if isinstance(mean.coefficients, Estimated) else mean.coefficients

    def _check_parameters(self) -> None:
        check_kernel_choice(self.kernel)
        check_count(self.segment_size, "segment_size")
        check_count(self.conditioning_size, "conditioning_size", least=0)
        if not isinstance(self.segmentation, str) or self.segmentation not in SCHEMES:
            raise ValueError(f"segmentation must be one of {', '.join(SCHEMES)}; found {self.segmentation!r}.")
        if self.target_transform not in (None, "log"):
            raise ValueError(f'target_transform must be None or "log"; found {self.target_transform!r}.')
        self._method()
        if hasattr(self.mean, "fit"):
            raise ValueError(
                f"mean {self.mean!r} would have to be fitted to data that are elsewhere. Give a Basis of a fitted one."
            )
        if self.learning is not None:
            if not as_learning_method(self.learning).conditions:
                raise ValueError(f"learning={self.learning!r} needs data in memory. Use 'composite_likelihood'.")
            if isinstance(as_mean(self.mean).coefficients, Estimated):
                raise ValueError(
                    "mean is an Estimated: its coefficients are known already. Give its functions as a Basis."
                )

    def _method(self) -> PredictionMethod:
        method = as_prediction_method(self.prediction)
        if not isinstance(method, Nearest | CompositeSum) or getattr(method, "watch", None) is not None:
            raise ValueError(
                f"prediction must be Nearest(), or CompositeSum() without watch, for data in partitions; found "
                f"{self.prediction!r}."
            )
        return method

    def _points(self, X: Any) -> Any:
        X = self._own_columns(X)
        return X.compute() if hasattr(X, "compute") else X

    def _own_columns(self, X: Any) -> Any:
        """The columns of a frame that the model was fitted to; anything else as it is."""
        names = getattr(self, "feature_names_in_", None)
        if names is not None and hasattr(X, "columns"):
            absent = [str(name) for name in names if name not in X.columns]
            if absent:
                raise ValueError(f"X lacks the columns {', '.join(absent)} that the model was fitted to.")
            check_numeric(X, list(names), "X")
            X = X[list(names)]
        return X

    def __getstate__(self) -> dict[str, Any]:
        """Without what a cluster holds: a copy elsewhere reads the partitions again from where they came."""
        state = dict(super().__getstate__())
        if "_model" in state:
            state["_model"] = replace(state["_model"], parts=state["_lazy_parts"])
        return state

    def _fitted(self) -> PartitionedModel:
        if not hasattr(self, "_model"):
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet. Call fit first.")
        return self._model


def _bounds(part: Part, mean: MeanModel) -> tuple[float, float] | None:
    """Least and greatest of the targets of a partition, less their known mean; None if it is empty."""
    if not len(part.y):
        return None
    residuals = part.y - mean.values(part.X)[:, 0]
    return float(residuals.min()), float(residuals.max())


def _checked(part: Any, n_columns: int) -> Floats:
    """The test points of a partition, as an array."""
    points = np.asarray(part, dtype=np.float64)
    return check_points(points, "X", n_columns) if len(points) else np.empty((0, n_columns))


def _distribution(
    points: Floats, near: Any, kernel: Kernel, calibration: Calibration | None, latent: bool, transform: Any
) -> PredictiveDistribution:
    """Predictive distributions of test points from what was found about them."""
    noise = np.asarray(noise_variance(kernel, points))
    factors, family = spread_of(calibration, kernel, points, near, noise)
    variance = near.variance if latent else near.variance + noise
    return PredictiveDistribution.of_marginals(
        near.mean, variance, transform=transform, factors=factors, family=family
    )


def _finish(options: Any, points: Floats, near: Any) -> Floats:
    *model, wanted = options
    return np.asarray(wanted(_distribution(points, near, *model)))


def _mean_and_std(found: PredictiveDistribution) -> Floats:
    return np.column_stack([found.mean, found.std])


def _interval(found: PredictiveDistribution, level: float) -> Floats:
    return np.column_stack(found.interval(level))


def _quantiles(found: PredictiveDistribution, q: Floats) -> Floats:
    return found.quantile(q)
