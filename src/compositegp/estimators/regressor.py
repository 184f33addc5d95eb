"""The estimator: scikit-learn's GaussianProcessRegressor, without its limit of ten thousand points."""

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin, _fit_context
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from compositegp.analysis import Report, compare
from compositegp.backend import Floats
from compositegp.composite import SCHEMES
from compositegp.estimators import files
from compositegp.estimators.fitting import fit_state
from compositegp.estimators.inputs import read_points, read_training
from compositegp.estimators.prediction_methods import PREDICTIONS
from compositegp.estimators.predictions import Predictions
from compositegp.estimators.streaming import absorb, begin, keep_watch
from compositegp.learning import METHODS
from compositegp.validation import check_points


class CompositeGPRegressor(RegressorMixin, Predictions):  # type: ignore[misc]
    """Gaussian-process regression on data of any size, by a composite of small exact Gaussian processes.

    With fewer observations than `n_neighbors`, it is the exact Gaussian process.

    Parameters
    ----------
    kernel : scikit-learn kernel, optional
        Covariance of the observations; a WhiteKernel part is their noise, and without one they are taken as exact.
        Hyper-parameters that are left at one begin at the data's own scale. Left out: Matérn 3/2 with one length scale
        for each column, and noise, all at the data's scale, around a constant that is estimated.
    segment_size : int
        Observations in a segment, at most.
    segmentation : {"tree", "sequential", "interleaved", "random"} or array of n labels
        How segments are made: see `segment`.
    conditioning_size : int
        Observations of earlier segments, the nearest, that each segment is conditioned on. 0 is the paper's composite.
    learning : {"composite_likelihood", "fisher_average"} or None
        How hyper-parameters and mean coefficients are learned (see `learn`); ``fisher_average`` is the paper's.
        None leaves the hyper-parameters as the kernel has them.
    tolerance : float or None
        Learning reads segments, in random order, until the hyper-parameters' relative standard errors are below this;
        None reads them all.
    n_restarts : int
        For ``fisher_average``: further random starts in each segment.
    mean : None, number, callable, "constant", "linear", Basis, Estimated or scikit-learn transformer
        Prior mean; of basis functions the coefficients are learned.
    local_mean : bool or "auto"
        For ``nearest`` and a mean with coefficients that are learned: whether each term estimates them anew from its
        own observations (universal kriging in a moving neighbourhood) or takes those of the whole. ``auto`` does where
        there are 32 observations or more for each coefficient. It is robust to a mean that is not the same everywhere.
    prediction : {"nearest", "composite", "bcm", "rbcm", "gpoe", "grbcm", "fitc", "pitc"}
        ``nearest``: the observations nearest to a group of test points are its one term. ``composite``: every
        segment's evidence about the group is added up (the paper). Committees and inducing points are for comparison.
    n_neighbors : int
        For ``nearest``: observations in the term.
    group_size : int, optional
        Test points that are predicted together, at most. By default 128 for ``composite``; for ``nearest`` 32 in
        up to four columns (fewer where they are not close together), and 1 in more.
    inducing : int or array of shape (m, d), optional
        For ``fitc`` and ``pitc``: the inducing points, or how many to spread over the data; 256 by default.
    target_transform : None, "log" or scikit-learn transformer
        Model the target on another scale. Predictions are in the target's own unit; with ``log`` they are log-normal.
    watch : array of shape (M, d), optional
        Test points to keep a belief about, and nothing else, so that a stream of `partial_fit` needs constant memory.
        Needs ``prediction="composite"``; only these points can then be predicted, jointly, by plain segments (which
        are not conditioned on each other, since earlier ones are gone).
    random_state : int, RandomState or None
        For random segments and the order in which learning reads them.
    n_jobs : int, optional
        Processes to use, as in joblib. Results do not depend on it.
    device : str, optional
        Where to work on the terms: a device of PyTorch's, such as "cuda" (see `use_device`). Not part of a saved model.
    verbose : bool
        Show a progress bar of learning on a terminal.

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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [None, Kernel],
        "segment_size": [Interval(Integral, 1, None, closed="left")],
        "segmentation": [StrOptions(set(SCHEMES)), "array-like"],
        "conditioning_size": [Interval(Integral, 0, None, closed="left")],
        "learning": [StrOptions(set(METHODS)), None],
        "tolerance": [Interval(Real, 0, None, closed="neither"), None],
        "n_restarts": [Interval(Integral, 0, None, closed="left")],
        "mean": "no_validation",
        "local_mean": [StrOptions({"auto"}), "boolean"],
        "prediction": [StrOptions(set(PREDICTIONS))],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "group_size": [Interval(Integral, 1, None, closed="left"), None],
        "inducing": [Interval(Integral, 1, None, closed="left"), "array-like", None],
        "target_transform": [StrOptions({"log"}), HasMethods(["fit", "transform", "inverse_transform"]), None],
        "watch": ["array-like", None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "device": [str, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        segment_size: int = 256,
        segmentation: Any = "tree",
        conditioning_size: int = 256,
        learning: str | None = "composite_likelihood",
        tolerance: float | None = 0.03,
        n_restarts: int = 0,
        mean: Any = None,
        local_mean: Any = "auto",
        prediction: str = "nearest",
        n_neighbors: int = 512,
        group_size: int | None = None,
        inducing: Any = None,
        target_transform: Any = None,
        watch: Any = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        device: str | None = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.segment_size = segment_size
        self.segmentation = segmentation
        self.conditioning_size = conditioning_size
        self.learning = learning
        self.tolerance = tolerance
        self.n_restarts = n_restarts
        self.mean = mean
        self.local_mean = local_mean
        self.prediction = prediction
        self.n_neighbors = n_neighbors
        self.group_size = group_size
        self.inducing = inducing
        self.target_transform = target_transform
        self.watch = watch
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, noise_variance: Any = None) -> "CompositeGPRegressor":
        """Learn the hyper-parameters, and keep the data to predict from.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
        y : array of shape (n,)
            NaN is "not observed": such rows are left out, with a warning.
        noise_variance : None, number or array of shape (n,)
            Known noise variances of the observations, beside the kernel's own, in the square of the unit of y (with
            `target_transform`: of the transformed target).

        Returns
        -------
        self
        """
        with self._on_device(), self._features_kept():
            training = read_training(self, X, y, noise_variance, reset=True)
            state = fit_state(self, training)
            if self.watch is None:
                state.mode.prepare()
            else:
                state = keep_watch(state, self._watched_points())
        self._state = state
        return self

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, noise_variance: Any = None) -> "CompositeGPRegressor":
        """Take in one segment of data.

        With fixed hyper-parameters the belief is that of `fit` on all the data with these segments. Where they are
        learned, the segment's own estimate joins the average of all so far, weighted by Fisher information (the
        paper's recursion). If the segment is refused, the model is as it was before.

        Parameters
        ----------
        X, y, noise_variance
            As for `fit`.

        Returns
        -------
        self
        """
        first = not self.__sklearn_is_fitted__()
        with self._on_device(), self._features_kept():
            training = read_training(self, X, y, noise_variance, reset=first)
            watch = None if self.watch is None else self._watched_points()
            state = begin(self, training, watch) if first else self._current()
            state = absorb(self, state, training)
        self._state = state
        return self

    def log_marginal_likelihood(
        self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True
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
        state = self._data_state("log_marginal_likelihood")
        kernel = state.kernel if theta is None else state.kernel.clone_with_theta(np.asarray(theta))
        with self._on_device():
            score = state.score(kernel, self.n_jobs)
        return (score.log_likelihood, score.gradient) if eval_gradient else score.log_likelihood

    @property
    def log_marginal_likelihood_value_(self) -> float:
        """The composite's log likelihood at the learned hyper-parameters; computed when asked for."""
        return float(self.log_marginal_likelihood())

    def analyze(self, X: Any, **options: Any) -> Report:
        """What the approximation costs at test points `X`, predicted as one group, against the exact Gaussian process.

        Claimed and actual error, excess error and information, and a verdict for each point: see `analysis.compare`,
        which takes the further `options`. The mean is taken as known.
        """
        state = self._data_state("analyze")
        Z = read_points(self, X)
        composite, inducing = state.mode.terms(Z)
        data = state.fitted.data
        return compare(
            state.kernel, data.X, Z, composite, inducing=inducing, noise_variance=data.noise_variance, **options
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
        parameters, features, build = files.load(path)
        model = cls(**parameters)
        for name, value in features.items():
            setattr(model, name, value)
        model._state = build(model)
        return model

    @contextmanager
    def _features_kept(self) -> Iterator[None]:
        """A failure inside leaves what is known of the columns as it was."""
        names = ("n_features_in_", "feature_names_in_")
        before = {name: getattr(self, name) for name in names if hasattr(self, name)}
        try:
            yield
        except BaseException:
            for name in names:
                if name in before:
                    setattr(self, name, before[name])
                elif hasattr(self, name):
                    delattr(self, name)
            raise

    def _watched_points(self) -> Floats:
        if hasattr(self.watch, "columns"):
            return read_points(self, self.watch)  # so that names are checked
        return check_points(self.watch, "watch", self.n_features_in_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False  # before fit it predicts from the prior, as scikit-learn's does
        return tags
