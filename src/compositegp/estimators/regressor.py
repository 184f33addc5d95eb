"""The estimator: scikit-learn's contract around learning, terms and predictions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_is_fitted

from compositegp.analysis import Report, compare
from compositegp.backend import Floats, Indices, use_device
from compositegp.composite import CONDITIONING_SIZE, SEGMENT_SIZE
from compositegp.estimators import files
from compositegp.estimators.doubtful_targets import warn_of_doubtful_targets
from compositegp.estimators.fitted_model import FittedModel, new_noise
from compositegp.estimators.fitting import choices_of, fit_model, with_methods
from compositegp.estimators.functional_prediction import predict_functionals
from compositegp.estimators.held_out import ValidationReport
from compositegp.estimators.importances import Importances, find_importances
from compositegp.estimators.inputs import read_functionals, read_points, read_training
from compositegp.estimators.prior_prediction import predict_from_prior
from compositegp.estimators.streaming import absorb, begin, keep_watch
from compositegp.estimators.term_choice import CompositeMaker
from compositegp.functionals import (
    MEAN,
    Functionals,
    PointsLike,
    at,
    lift,
    part,
    part_names,
    plain_kernel,
)
from compositegp.learning import (
    KernelComparison,
    LearningMethod,
    LearningResult,
    check_kernel_choice,
    is_automatic,
)
from compositegp.means import Estimated, as_given
from compositegp.posteriors import Gaps, draw_field
from compositegp.prediction import CompositeSum, NeighborCurve, NeighborhoodTuning, PredictionMethod
from compositegp.predictive import Calibration, PredictiveDistribution
from compositegp.validation import check_count, check_noise_variance, check_points

VARIANCES = ("claimed", "honest")
_FEATURES = ("n_features_in_", "feature_names_in_")
_VALIDATED = 100  # seeds of `validate` are from here on, so that its points are not those of calibration


class CompositeGPRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Gaussian-process regression on data of any size, by a composite of small exact Gaussian processes.

    With up to 2,048 observations, or the prediction's `n_neighbors`, it predicts as the exact Gaussian process;
    with up to 500, averaged over the uncertainty of its hyper-parameters.

    Parameters
    ----------
    kernel : scikit-learn kernel, list or dict of kernels, "auto" or None
        Covariance of the observations; a WhiteKernel part is their noise, and without one they are taken as exact.
        Several kernels, in a list or by their names in a dict, are compared by likelihood over the same terms (see
        `learning.choose_kernel`), and those that are nearly as good by how they predict training points. None and
        "auto" compare `learning.kernel_family`: Matérn kernels of several smoothness, RBF and sums, each with one
        length scale for each column, and noise, around a constant that is estimated. Without a comparison it is Matérn
        3/2: with fewer than 50 observations, without learning, and for None where learning is by `FisherAverage`.
        `partial_fit` on its own compares nothing: it takes Matérn 3/2, or the first of several kernels.
    alpha : None, number or array of shape (n,)
        Known noise variance of the observations, in addition to the kernel's own: scikit-learn's word for
        `noise_variance` of `fit`, which takes the place of it.
    mean : None, number, array of shape (t,), callable, "constant", "linear", Basis, Estimated or transformer
        Prior mean; of basis functions the coefficients are learned. t numbers are the means of t outputs, also before
        `fit`: ``mean=np.zeros(t)`` is scikit-learn's ``n_targets=t``.
    target_transform : None, "log" or scikit-learn transformer
        Model the target on another scale. Predictions are in the target's own unit; with ``log`` they are log-normal.
    normalize_y : bool
        Model the target less its mean and over its standard deviation, as in scikit-learn. `kernel`, `mean` and `alpha`
        are then on that scale. With `partial_fit` the first segment has the say.
    prediction : PredictionMethod or str
        `Nearest` (default): the observations nearest to a group of test points are its one term. `CompositeSum`: every
        segment's evidence about the group is added up (the paper). `Inducing` (FITC, PITC) and `Committee` are for
        comparison. Short forms with default parameters: "nearest", "composite", "fitc", "pitc", "bcm", "rbcm", "gpoe",
        "grbcm".
    learning : {"composite_likelihood", "fisher_average"}, object or None
        How hyper-parameters and mean coefficients are learned (see `learn`); ``fisher_average`` is the paper's. Objects
        have the parameters, as `CompositeLikelihood(tolerance=0.01)`. A function is an optimizer of your own, as
        scikit-learn takes it (`learning.CustomOptimizer`). None leaves the hyper-parameters as they are.
    segment_size : int
        Observations in a segment, at most.
    segmentation : {"tree", "sequential", "interleaved", "random"} or callable
        How segments are made: see `segment`. Segments of your own are given to `fit` as labels, `groups`. A function of
        points (n, d) and a kernel that returns a `Composite` is a choice of terms of your own, in the place of
        segments: learning reads it, and `CompositeSum` predicts by it.
    conditioning_size : int
        Observations of earlier segments, the nearest, that each segment is conditioned on. 0 is the paper's composite.
    random_state : int, RandomState or None
        For random segments and the order in which learning reads them. A number, 0 by default, so that two fits to the
        same data are the same.
    n_jobs : int, optional
        Processes to use, as in joblib. By default the work is done by threads, on the cores that BLAS may use. Results
        do not depend on it.
    device : str, optional
        Where to work on the terms: a device that PyTorch knows, such as "cuda" (see `use_device`). Not part of a saved
        model.

    Attributes
    ----------
    kernel_ : scikit-learn kernel
        With the learned hyper-parameters.
    theta_standard_errors_ : array of shape (p,)
        Relative standard errors of the hyper-parameters in ``kernel_.theta``; None where nothing was learned.
    mean_coefficients_, mean_covariance_ : arrays of shape (q,) and (q, q)
        Coefficients of the mean's basis functions and their error covariance; empty where it has none.
    segments_ : list of int arrays
    learning_result_ : LearningResult or None
    calibration_ : Calibration or None
        Scale and tails of errors as `Nearest` learned them.
    neighbor_curve_ : NeighborCurve or None
        Expected loss of log score by the number of neighbors, where `Nearest` chose it.
    kernel_comparison_ : KernelComparison or None
        How the kernel was chosen; None where `fit` compared none.
    n_features_in_ : int
    feature_names_in_ : array of str
        Where X had names for its columns.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> X = np.linspace(0, 10, 400)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=400)
    >>> model = CompositeGPRegressor(1.0 * RBF() + WhiteKernel()).fit(X, y)
    >>> mean, std = model.predict([[2.5]], return_std=True)
    >>> print(f"{mean[0]:.1f} ± {std[0]:.1f}")
    0.6 ± 0.1
    """

    _model: FittedModel

    def __init__(
        self,
        kernel: Kernel | Sequence[Kernel] | Mapping[str, Kernel] | str | None = None,
        *,
        alpha: ArrayLike | None = None,
        mean: Any = None,
        target_transform: Any = None,
        normalize_y: bool = False,
        prediction: PredictionMethod | str = "nearest",
        learning: LearningMethod | Callable[..., Any] | str | None = "composite_likelihood",
        segment_size: int = SEGMENT_SIZE,
        segmentation: str | CompositeMaker = "tree",
        conditioning_size: int = CONDITIONING_SIZE,
        random_state: Any = 0,
        n_jobs: int | None = None,
        device: str | None = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.mean = mean
        self.target_transform = target_transform
        self.normalize_y = normalize_y
        self.prediction = prediction
        self.learning = learning
        self.segment_size = segment_size
        self.segmentation = segmentation
        self.conditioning_size = conditioning_size
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device

    def set_params(self, **params: Any) -> Self:
        """Set parameters; a method in its short form, such as "nearest", becomes an object if one of its own is set.

        Examples
        --------
        >>> CompositeGPRegressor().set_params(prediction__n_neighbors=128).prediction
        Nearest(n_neighbors=128)
        """
        super().set_params(**with_methods(self, params))
        return self

    def fit(
        self,
        X: PointsLike,
        y: ArrayLike,
        noise_variance: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        gaps: Gaps | None = None,
    ) -> "CompositeGPRegressor":
        """Learn the hyper-parameters, and keep the data to predict from.

        Parameters
        ----------
        X : array or data frame of shape (n, d), or functionals
            Where f was observed, or what else of it: block averages, slopes (see `compositegp.functionals`). With
            functionals no kernels are compared unless several are given: the default is Matérn 3/2.
        y : array of shape (n,), or (n, t) for t outputs that share the kernel
            NaN is "not observed": such rows are left out, with a warning.
        noise_variance : None, number or array of shape (n,)
            Known noise variances of the observations, in addition to the kernel's own, in the square of the unit of y
            (with `target_transform`: of the transformed target).
        groups : array of shape (n,), optional
            Labels of segments: the observations with a label are a segment. They take the place of `segmentation`.
        sample_weight : array of shape (n,), optional
            The noise variance of an observation, the kernel's and its own, is divided by its weight: an average of w
            measurements has the weight w. Under given hyper-parameters that is the same as the observation w times.
            Observations of weight 0 are left out.
        gaps : Gaps, optional
            Where it is known how the points that you will predict lie to the data: ``gaps.hides(rows, near)`` says
            which of the observations near to each of some rows are hidden when that row is predicted. With `Nearest`
            and more than 2,048 observations the model is then learned from observations that a gap hides, given those
            around it, and errors are calibrated by them.

        Returns
        -------
        self
        """
        self._check_parameters()
        with self._on_device(), self._features_kept():
            training = read_training(self, X, y, noise_variance, groups, sample_weight, gaps, reset=True)
            model = fit_model(self, training)
            watch = self._watched_points(model)
            if watch is None:
                model = model.tuned(self.n_jobs, gaps)
                model.predictor.prepare()
                warn_of_doubtful_targets(model)
            else:
                model = keep_watch(model, watch)
        self._model = model
        return self

    def partial_fit(
        self,
        X: PointsLike,
        y: ArrayLike,
        noise_variance: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> "CompositeGPRegressor":
        """Take in one segment of data.

        With fixed hyper-parameters the belief is that of `fit` on all the data with these segments. Where they are
        learned, the segment's own estimate joins the average of all so far, weighted by Fisher information (the
        paper's recursion). If the segment is refused, the model is as it was before.

        Parameters
        ----------
        X, y, noise_variance, sample_weight
            As for `fit`.

        Returns
        -------
        self
        """
        self._check_parameters()
        first = not self.__sklearn_is_fitted__()
        with self._on_device(), self._features_kept():
            training = read_training(self, X, y, noise_variance, None, sample_weight, reset=first)
            if first:
                model = begin(self, training, None)
                watch = self._watched_points(model)
                model = model if watch is None else keep_watch(model, watch)
            else:
                model = self._current()
            model = absorb(self._with_one_kernel(model), model, training)
        self._model = model
        return self

    def with_data(
        self, X: PointsLike, y: ArrayLike, noise_variance: ArrayLike | None = None
    ) -> "CompositeGPRegressor":
        """A copy that predicts from other observations of the same process, with everything that was learned.

        Hyper-parameters, the coefficients of the mean, the number of neighbors and the calibration stay as they are:
        so a model that was learned once serves the windows of a map that is too large for memory, or tomorrow's data.
        (A model of fewer than 100 observations has no calibration: it is learned from the new ones.)

        Parameters
        ----------
        X, y, noise_variance
            As for `fit`.

        Returns
        -------
        CompositeGPRegressor

        Examples
        --------
        >>> X = np.linspace(0, 10, 200)[:, None]
        >>> model = CompositeGPRegressor().fit(X, np.sin(X[:, 0]))
        >>> model.with_data(X + 20, np.sin(X[:, 0] + 20)).predict([[25.0]]).round(2)
        array([-0.13])
        """
        self._model = model = self._model_with_data("with_data").tuned(self.n_jobs)
        training = read_training(self, X, y, noise_variance, reset=False)
        other = copy(self)
        other._model = model.with_data(training.X, training.y, training.noise_variance)
        return other

    def predict_distribution(
        self,
        X: PointsLike,
        *,
        joint: bool = False,
        latent: bool = False,
        noise_variance: ArrayLike | None = None,
        variance: str = "claimed",
    ) -> PredictiveDistribution:
        """Predict the target as distributions: mean, standard deviation, quantiles, intervals, densities, scores.

        Parameters
        ----------
        X : array or data frame of shape (M, d), or functionals
            Points, or derivatives, averages, sums and parts of f: see `compositegp.functionals`. With a
            `target_transform`, derivatives and parts are those of the transformed target.
        joint : bool
            Predict all of `X` as one group, with a covariance, so that draws are joint. By default each point is
            predicted for itself, which takes any number of points.
        latent : bool
            The one switch for what an error bar is about: False (default) a new observation y, noise of the kernel's
            WhiteKernel included, as scikit-learn has it; True the noise-free f. The mean is the same, except with a
            `target_transform`.
        noise_variance : None, number or array of shape (M,)
            Noise of the new observations in addition to the kernel's own.
        variance : {"claimed", "honest"}
            What the composite's belief claims, or the mean squared error that its mean really has under the model: with
            `CompositeSum` segments that share information make the claim too small. For `Nearest` the two are the same.
            ``honest`` takes time that grows as n² for every group.

        Returns
        -------
        PredictiveDistribution

        Examples
        --------
        >>> X = np.linspace(0, 10, 200)[:, None]
        >>> found = CompositeGPRegressor().fit(X, np.sin(X[:, 0])).predict_distribution([[2.0], [3.0]])
        >>> found.mean.round(2), found.coverage(np.sin([2.0, 3.0]), 0.95)
        (array([0.91, 0.14]), 1.0)
        """
        if not isinstance(variance, str) or variance not in VARIANCES:
            raise ValueError(f"variance must be one of {', '.join(VARIANCES)}; found {variance!r}.")
        if not self.__sklearn_is_fitted__():
            return predict_from_prior(self, X, joint, latent, noise_variance)
        with self._on_device():
            asked = read_functionals(self, X)
            if asked is None:
                points = read_points(self, X)
            self._model = model = self._current().tuned(self.n_jobs)
            options: Any = {"latent": latent, "joint": joint, "variance": variance, "n_jobs": self.n_jobs}
            if asked is None and model.watches_functionals:
                asked = at(points)
            if asked is None or (asked.is_point.all() and not model.watches_functionals):
                points = points if asked is None else asked.points
                extra = check_noise_variance(noise_variance, len(points))
                return model.predict(points, extra_noise=extra, **options)
            extra = check_noise_variance(noise_variance, len(asked))
            return predict_functionals(model, asked, extra_noise=extra, **options)

    @overload
    def predict(
        self,
        X: PointsLike,
        return_std: Literal[False] = False,
        return_cov: Literal[False] = False,
        *,
        return_interval: None = None,
        latent: bool = ...,
        noise_variance: ArrayLike | None = ...,
        variance: str = ...,
    ) -> Floats: ...
    @overload
    def predict(
        self,
        X: PointsLike,
        return_std: bool = False,
        return_cov: bool = False,
        *,
        return_interval: float | None = None,
        latent: bool = ...,
        noise_variance: ArrayLike | None = ...,
        variance: str = ...,
    ) -> Any: ...
    def predict(
        self,
        X: PointsLike,
        return_std: bool = False,
        return_cov: bool = False,
        *,
        return_interval: float | None = None,
        latent: bool = False,
        noise_variance: ArrayLike | None = None,
        variance: str = "claimed",
    ) -> Any:
        """Predict the target: its mean and, if asked for, standard deviation, joint covariance or interval.

        Parameters
        ----------
        X : array or data frame of shape (M, d)
        return_std : bool
        return_cov : bool
            All of `X` is then one group, predicted jointly.
        return_interval : float, optional
            Return the ends of the central interval that holds the target with this probability, such as 0.95. A
            Pipeline hands this on, as it does the other options.
        latent, noise_variance, variance
            As for `predict_distribution`.

        Returns
        -------
        mean : array of shape (M,), or (M, t) for t outputs
        std : array of the same shape
            With `return_std`.
        cov : array of shape (M, M), or (M, M, t)
            With `return_cov`.
        lower, upper : arrays of the shape of `mean`
            With `return_interval`.
        """
        if return_std and return_cov:
            raise RuntimeError("At most one of return_std or return_cov can be requested.")
        if return_interval is not None and (return_std or return_cov):
            raise RuntimeError("return_interval cannot be requested together with return_std or return_cov.")
        if not (return_std or return_cov or return_interval is not None or variance != "claimed"):
            mean = self._mean_alone(X, noise_variance)
            if mean is not None:
                return mean
        found = self.predict_distribution(
            X, joint=return_cov, latent=latent, noise_variance=noise_variance, variance=variance
        )
        if return_cov:
            return found.mean_and_covariance()
        if return_interval is not None:
            return (found.mean, *found.interval(return_interval))
        return (found.mean, found.std) if return_std else found.mean

    def predict_quantiles(self, X: PointsLike, q: float | ArrayLike = (0.05, 0.5, 0.95), **options: Any) -> Floats:
        """Quantiles of the target: shape (M, len(q)), or (M,) for a single number.

        Parameters
        ----------
        X : array or data frame of shape (M, d)
        q : float or sequence of floats between 0 and 1
        **options
            As for `predict_distribution`.
        """
        return self.predict_distribution(X, **options).quantile(np.asarray(q, dtype=np.float64))

    def predict_interval(self, X: PointsLike, level: float = 0.95, **options: Any) -> tuple[Floats, Floats]:
        """Ends of the central interval that holds the target with probability `level`: two arrays of shape (M,).

        Parameters
        ----------
        X : array or data frame of shape (M, d)
        level : float
            Between 0 and 1.
        **options
            As for `predict_distribution`.
        """
        return self.predict_distribution(X, **options).interval(level)

    def sample_y(self, X: PointsLike, n_samples: int = 1, random_state: Any = 0, **options: Any) -> Floats:
        """Draw joint samples at `X`, all of which is one group: shape (M, n_samples), or (M, t, n_samples).

        Parameters
        ----------
        X : array or data frame of shape (M, d)
        n_samples : int
        random_state : int, RandomState or None
        **options
            As for `predict_distribution`.
        """
        return self.predict_distribution(X, joint=True, **options).sample(n_samples, random_state)

    def sample_field(
        self, X: ArrayLike, n_samples: int = 1, random_state: int = 0, *, latent: bool = False
    ) -> Floats:
        """Draw joint samples at any number of points, as for a map: shape (M, n_samples).

        The points are drawn group after group, each group given the nearest observations and the nearest points drawn
        before. Every point has the distribution that `predict_distribution` gives it; the dependence between points is
        that of the Gaussian process.

        Parameters
        ----------
        X : array or data frame of shape (M, d)
        n_samples : int
        random_state : int
            The draws depend on this and on `X` alone.
        latent : bool
            As for `predict_distribution`: False adds the noise of new observations, independent at every point.

        Examples
        --------
        >>> X = np.linspace(0, 10, 300)[:, None]
        >>> model = CompositeGPRegressor().fit(X[::2], np.sin(X[::2, 0]))
        >>> model.sample_field(X, 5).shape
        (300, 5)
        """
        count, seed = check_count(n_samples, "n_samples"), check_count(random_state, "random_state", least=0)
        self._model = model = self._model_with_data("sample_field").tuned(self.n_jobs)
        Z = read_points(self, X)
        if model.y.ndim > 1:
            raise ValueError(f"sample_field draws one output; the model has {model.y.shape[1]}. Use sample_y.")
        with self._on_device():
            found = draw_field(model.data, Z, count, seed)
        noise = new_noise(model.kernel, Z, latent, None)
        rng = np.random.default_rng([seed, 3])
        added = np.sqrt(noise)[:, None] * rng.standard_normal(found.draws.shape) if noise.any() else 0.0
        scores = (found.draws + added - found.mean[:, None]) / np.sqrt(found.variance + noise)[:, None]
        return self.predict_distribution(X, latent=latent).of_normal_scores(scores)

    def validate(self, *, random_state: int = 0) -> ValidationReport:
        """How good predictions are, near the data and in gaps, from training data alone.

        Up to 2,500 training points are predicted without themselves and without their K nearest neighbors, for several
        K, from one factorization each. The hyper-parameters are those learned from all the data.

        Parameters
        ----------
        random_state : int
            For the choice of the training points. They are chosen independently of those that calibration learned from,
            so that with few data some points are in both.

        Returns
        -------
        ValidationReport
            RMSE, CRPS, log score and coverage by the distance to the nearest data; ``report.table`` has the numbers,
            and `plotting.plot_validation` draws them.

        Examples
        --------
        >>> from compositegp import Nearest
        >>> X = np.linspace(0, 30, 600)[:, None]
        >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=600)
        >>> report = CompositeGPRegressor(prediction=Nearest(64)).fit(X, y).validate()
        >>> report.table["skipped"]
        [0, 1, 8, 24, 64, 256]
        """
        seed = check_count(random_state, "random_state", least=0)
        model = self._model_with_data("validate")
        with self._on_device():
            self._model = model = model.tuned(self.n_jobs)
            return ValidationReport(model.held_out(self.n_jobs, _VALIDATED + seed))

    def predict_leave_one_out(self) -> PredictiveDistribution:
        """Predict every observation from all the others, in closed form: no model is fitted again.

        The hyper-parameters are those learned from all the data. With `Nearest` each observation is predicted from its
        nearest neighbors without itself. Where all the data are one term, it is predicted from all the others, by which
        unknown coefficients of the mean are then estimated too.

        Returns
        -------
        PredictiveDistribution
            Of the n observations that were fitted, in their order, noise included: ``crps``, ``log_score`` and
            ``coverage`` score them against y.

        Examples
        --------
        >>> X = np.linspace(0, 10, 80)[:, None]
        >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=80)
        >>> found = CompositeGPRegressor().fit(X, y).predict_leave_one_out()
        >>> bool(found.coverage(y, 0.95) > 0.9)
        True
        """
        model = self._model_with_data("predict_leave_one_out")
        with self._on_device():
            self._model = model = model.tuned(self.n_jobs)
            return model.left_out(self.n_jobs)

    def parts(self, X: PointsLike) -> dict[str, PredictiveDistribution]:
        """What each part of a sum kernel, and the mean function, contributes to the prediction: their means add up.

        With `Nearest` the sum is that of ``predict``; with `CompositeSum` it is that of ``functionals.at(X)``,
        predicted together with its parts. With a `target_transform` parts are those of the transformed target.

        Parameters
        ----------
        X : array or data frame of shape (M, d)

        Returns
        -------
        dict of str to PredictiveDistribution
            By the names of `functionals.part_names`, and "mean" at last; without noise. For their joint covariance ask
            ``predict_distribution`` for a list of `functionals.part`, with ``joint=True``.

        Examples
        --------
        >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
        >>> X = np.linspace(0, 9, 50)[:, None]
        >>> kernel = 1.0 * RBF(0.5) + 1.0 * RBF(5.0) + WhiteKernel(0.01)
        >>> model = CompositeGPRegressor(kernel, learning=None).fit(X, np.sin(X[:, 0]))
        >>> parts = model.parts(X)
        >>> list(parts), bool(np.allclose(sum(part.mean for part in parts.values()), model.predict(X)))
        (['k1__k1', 'k1__k2', 'mean'], True)
        """
        names = [*part_names(self.kernel_), MEAN]
        points = at(X)
        found = self.predict_distribution([part(points, name) for name in names], latent=True)
        count = len(points)
        return {name: found[number * count : (number + 1) * count] for number, name in enumerate(names)}

    def importances(self, *, random_state: int = 0) -> Importances:
        """Which columns matter: the average absolute slope of f in each column, with error bars.

        Slopes are predicted at 200 training points, or at all if there are fewer. They are given for one standard
        deviation of a column, so that columns of different units can be compared.

        Parameters
        ----------
        random_state : int
            For the choice of the points.

        Returns
        -------
        Importances
            ``print`` shows a table; ``importances.table`` has the numbers.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(100, 3))
        >>> y = X[:, 0] + np.sin(6 * X[:, 1]) + 0.1 * np.cos(6 * X[:, 2]) + 0.1 * rng.normal(size=100)
        >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
        >>> model = CompositeGPRegressor(1.0 * RBF([1.0, 1.0, 1.0]) + WhiteKernel()).fit(X, y)
        >>> model.importances().order
        array([1, 0, 2])
        """
        seed = check_count(random_state, "random_state", least=0)
        model = self._model_with_data("importances")
        names = getattr(self, "feature_names_in_", [f"column {number}" for number in range(self.n_features_in_)])
        with self._on_device():
            self._model = model = model.tuned(self.n_jobs)
            return find_importances(model, [str(name) for name in names], seed, self.n_jobs)

    def log_marginal_likelihood(
        self, theta: ArrayLike | None = None, eval_gradient: bool = False, clone_kernel: bool = True
    ) -> Any:
        """Log likelihood of the composite: the weighted sum over its terms, at `theta` or the learned values.

        With one segment it is the exact log marginal likelihood.

        Parameters
        ----------
        theta : array of shape (p,), optional
            Log of the hyper-parameters; those of ``kernel_`` if left out.
        eval_gradient : bool
            Return the gradient in `theta`, shape (p,), too.
        clone_kernel : bool
            There for scikit-learn's signature; ``kernel_`` is never changed.

        Returns
        -------
        float, or (float, array of shape (p,))
        """
        model = self._model_with_data("log_marginal_likelihood")
        kernel = model.kernel if theta is None else model.kernel.clone_with_theta(np.asarray(theta))
        with self._on_device():
            score = model.score(kernel, self.n_jobs)
        likelihood = np.float64(score.log_likelihood)  # as scikit-learn returns it
        return (likelihood, score.gradient) if eval_gradient else likelihood

    @property
    def log_marginal_likelihood_value_(self) -> float:
        """The composite's log likelihood at the learned hyper-parameters; computed when asked for."""
        return float(self.log_marginal_likelihood())

    def analyze(self, X: PointsLike, **options: Any) -> Report:
        """What the approximation costs at test points `X`, predicted as one group, against the exact Gaussian process.

        Claimed and actual error, excess error and information, and a verdict for each point: see `analysis.compare`,
        which takes the further `options`. The mean is taken as known.
        """
        model = self._model_with_data("analyze")
        if model.weights is not None:
            raise ValueError("analyze compares terms under the kernel's own noise: fit without sample_weight.")
        asked = read_functionals(self, X)
        Z: Any = asked
        if asked is None:
            Z = read_points(self, X)
            composite, inducing = model.predictor.terms(Z)
        else:
            kernel, (rows,) = lift(model.kernel, X=asked)
            composite, inducing = model.predictor.lifted(kernel.functionals).terms(rows)
        return compare(
            model.kernel, model.X, Z, composite, inducing=inducing, noise_variance=model.noise_variance, **options
        )

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a file, all of it or nothing: arrays and parameters, no code.

        Parameters
        ----------
        path : str or Path
            Kernels of your own, functions as mean and transformers cannot be written this way; pickle takes those.
        """
        check_is_fitted(self)
        files.save(self, self._current(), path)

    @classmethod
    def load(cls, path: str | Path) -> "CompositeGPRegressor":
        """Read a model that `save` wrote; runs no code from the file."""
        estimator, model = files.load(cls, path)
        estimator._model = model
        return estimator  # type: ignore[no-any-return]

    def to_content(self) -> dict[str, Any]:
        """The fitted model as a dictionary of numbers, text and arrays: what `save` writes."""
        check_is_fitted(self)
        return files.content_of(self, self._current())

    @classmethod
    def from_content(cls, content: dict[str, Any], path: str | Path = "the model") -> "CompositeGPRegressor":
        """A fitted model from what `to_content` made; `path` is named in errors."""
        estimator, model = files.from_content(cls, content, path)
        estimator._model = model
        return estimator  # type: ignore[no-any-return]

    @property
    def kernel_(self) -> Kernel:
        """The kernel with its learned hyper-parameters."""
        return plain_kernel(self._fitted().kernel)

    @property
    def theta_standard_errors_(self) -> Floats | None:
        """Relative standard errors of the hyper-parameters, shape (p,)."""
        average = self._fitted().average
        return None if average is None else average.estimate.standard_errors

    @property
    def mean_coefficients_(self) -> Floats:
        """Coefficients of the mean's basis functions, shape (q,), or (q, t) for t outputs."""
        return self._coefficients()[0]

    @property
    def mean_covariance_(self) -> Floats:
        """Error covariance of the coefficients, shape (q, q)."""
        return self._coefficients()[1]

    @property
    def segments_(self) -> list[Indices]:
        """Indices of the observations in each segment; empty with `watch`. Made when first asked for."""
        return list(self._fitted().own_segments)

    @property
    def learning_result_(self) -> LearningResult | None:
        """How the hyper-parameters were learned; None if not by `fit`, or if the model was loaded."""
        return self._fitted().result

    @property
    def calibration_(self) -> Calibration | None:
        """Scale and tails of errors as `Nearest` learned them; None where it did not, as with few observations."""
        tuning = self._fitted().tuning
        return tuning.calibration if isinstance(tuning, NeighborhoodTuning) else None

    @property
    def neighbor_curve_(self) -> NeighborCurve | None:
        """Expected loss of log score by the number of neighbors; None where the number was given."""
        tuning = self._fitted().tuning
        return tuning.curve if isinstance(tuning, NeighborhoodTuning) else None

    @property
    def kernel_comparison_(self) -> KernelComparison | None:
        """How the kernel was chosen: a table of the kernels that `fit` compared; None if it compared none."""
        return self._fitted().comparison

    def _coefficients(self) -> tuple[Floats, Floats]:
        model = self._fitted()
        if model.watched is not None:
            return model.watched.coefficients, model.watched.coefficient_covariance
        with self._on_device():
            estimate = model.data.mean.coefficients
        if not isinstance(estimate, Estimated):
            return np.empty(0), np.empty((0, 0))
        estimate = as_given(estimate)
        return np.asarray(estimate.coefficients), np.asarray(estimate.covariance)

    def _mean_alone(self, X: Any, noise_variance: Any) -> Floats | None:
        """The mean without the cost of variances, which it does not need; None where it does."""
        if not self.__sklearn_is_fitted__():
            return None
        with self._on_device():
            if read_functionals(self, X) is not None:
                return None
            points = read_points(self, X)
            self._model = model = self._current().tuned(self.n_jobs)
            check_noise_variance(noise_variance, len(points))
            return model.predict_mean(points, self.n_jobs)

    def _check_parameters(self) -> None:
        """Check the parameters; a ValueError names the one that is wrong."""
        check_kernel_choice(self.kernel)
        choices_of(self)
        if self.n_jobs is not None and (isinstance(self.n_jobs, bool) or not isinstance(self.n_jobs, Integral)):
            raise ValueError(f"n_jobs must be a whole number or None; found {self.n_jobs!r}.")
        if not isinstance(self.normalize_y, bool | np.bool_):
            raise ValueError(f"normalize_y must be True or False; found {self.normalize_y!r}.")
        if self.normalize_y and self.target_transform is not None:
            raise ValueError(
                f"normalize_y=True and target_transform={self.target_transform!r} are both given: each says on which "
                "scale the target is modeled. Give one of them."
            )

    def _on_device(self) -> AbstractContextManager[None]:
        """Work on the estimator's device; without one, where the caller says."""
        return nullcontext() if self.device is None else use_device(self.device)

    def _fitted(self) -> FittedModel:
        """The model; an AttributeError, as attributes of an estimator raise, where there is none."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet. Call fit first.")
        return self._model

    def _current(self) -> FittedModel:
        """The model under the parameters as they are now (set_params may have changed how to predict)."""
        choices = choices_of(self)
        self._model = self._fitted().with_choices(choices.prediction, choices.terms)
        return self._model

    def _model_with_data(self, what: str) -> FittedModel:
        check_is_fitted(self)
        model = self._current()
        if model.watched is not None:
            raise ValueError(f"{what} needs the data, of which a model with watch keeps none.")
        return model

    @contextmanager
    def _features_kept(self) -> Iterator[None]:
        """A failure inside leaves what is known of the columns as it was."""
        before = {name: getattr(self, name) for name in _FEATURES if hasattr(self, name)}
        try:
            yield
        except BaseException:
            for name in _FEATURES:
                if name in before:
                    setattr(self, name, before[name])
                elif hasattr(self, name):
                    delattr(self, name)
            raise

    def _with_one_kernel(self, model: FittedModel) -> "CompositeGPRegressor":
        """The regressor, for a segment: where several kernels are given, with the one that the model has."""
        if self.kernel is None or isinstance(self.kernel, Kernel):
            return self
        one = copy(self)
        one.kernel = None if is_automatic(self.kernel) else model.kernel
        return one

    def _watched_points(self, model: FittedModel) -> Floats | Functionals | None:
        watch = model.prediction.watch if isinstance(model.prediction, CompositeSum) else None
        if watch is None:
            return None
        asked = read_functionals(self, watch)
        if asked is not None:
            return asked
        if hasattr(watch, "columns"):
            return read_points(self, watch)  # so that names are checked
        return check_points(watch, "watch", self.n_features_in_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False  # before fit it predicts from the prior, as scikit-learn's does
        tags.target_tags.multi_output = True
        return tags
