"""What a fitted estimator knows, as attributes."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_is_fitted

from compositegp.backend import Floats, use_device
from compositegp.estimators.fitted_model import State
from compositegp.estimators.fitting import choices_of
from compositegp.learning import LearningResult
from compositegp.means import Estimated


class Knowledge(BaseEstimator):  # type: ignore[misc]
    """An estimator's state, and the attributes that are read off it."""

    _state: State
    device: str | None

    @property
    def kernel_(self) -> Kernel:
        """The kernel with its learned hyper-parameters."""
        return self._fitted_state().kernel

    @property
    def theta_standard_errors_(self) -> Floats | None:
        """Relative standard errors of the hyper-parameters, shape (p,)."""
        average = self._fitted_state().average
        return None if average is None else average.estimate.standard_errors

    @property
    def mean_coefficients_(self) -> Floats:
        """Coefficients of the mean's basis functions, shape (q,)."""
        return self._coefficients()[0]

    @property
    def mean_covariance_(self) -> Floats:
        """Error covariance of the coefficients, shape (q, q)."""
        return self._coefficients()[1]

    @property
    def segments_(self) -> list[Any]:
        """Indices of the observations in each segment; empty with `watch`."""
        return list(self._fitted_state().segments)

    @property
    def learning_result_(self) -> LearningResult | None:
        """How the hyper-parameters were learned; None if not by `fit`, or if the model was loaded."""
        return self._fitted_state().result

    def _coefficients(self) -> tuple[Floats, Floats]:
        state = self._fitted_state()
        if state.watched is not None:
            return state.watched.coefficients, state.watched.coefficient_covariance
        with self._on_device():
            mean = state.fitted_mean
        if not isinstance(mean, Estimated):
            return np.empty(0), np.empty((0, 0))
        return np.asarray(mean.coefficients), np.asarray(mean.covariance)

    def _on_device(self) -> AbstractContextManager[None]:
        """Work on the estimator's device; without one, where the caller says."""
        return nullcontext() if self.device is None else use_device(self.device)

    def _fitted_state(self) -> State:
        """The state; an AttributeError, as attributes of an estimator raise, where there is none."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet. Call fit first.")
        return self._state

    def _current(self) -> State:
        """The state, under the parameters as they are now (set_params may have changed how to predict)."""
        state = self._fitted_state()
        renewed = state.with_choices(choices_of(self))
        if renewed is not state:
            self._validate_params()
            self._state = renewed
        return renewed

    def _data_state(self, what: str) -> State:
        check_is_fitted(self)
        state = self._current()
        if state.watched is not None:
            raise ValueError(f"{what} needs the data, of which a model with watch keeps none.")
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state")
