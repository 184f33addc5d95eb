"""Prediction by the whole composite, as in the paper: the evidence of all terms about a group of test points."""

from copy import copy
from dataclasses import replace
from typing import Any

from compositegp.analysis import predict_honest_variance
from compositegp.backend import Floats, blas_threads_for, current_device
from compositegp.composite import Composite, FactoredStack, Observations, factor_stacks
from compositegp.functionals import Functionals, PointsLike
from compositegp.posteriors import Belief, FactoredComposite, Marginals, Surrounded, predict_groups
from compositegp.prediction.fitted_terms import FittedTerms
from compositegp.prediction.method import PredictionMethod, Predictor
from compositegp.storage import storable
from compositegp.validation import check_count, check_points

_HELD_FACTORS = 2**26  # matrix elements of factors kept from one prediction to the next: half a gigabyte


@storable
class CompositeSum(PredictionMethod):
    """Prediction by the sum of the evidence of all segments: the method of Liu et al. (2018).

    Parameters
    ----------
    group_size : int
        Test points that are predicted together, at most.
    watch : array of shape (M, d) or functionals, optional
        Test points, or functionals, that are known in advance. The model then keeps only the belief about these and no
        data, so that a stream of `partial_fit` needs constant memory. Only these can be predicted, jointly. Segments
        are not conditioned on each other, because the earlier ones are not kept.

    Examples
    --------
    >>> CompositeSum(group_size=64)
    CompositeSum(group_size=64)
    """

    def __init__(self, group_size: int = 128, watch: PointsLike | None = None) -> None:
        self.group_size = group_size
        self.watch = watch

    def check(self) -> None:
        """Check the parameters."""
        check_count(self.group_size, "group_size")
        if self.watch is not None and not hasattr(self.watch, "columns"):
            check_points(self.watch, "watch")

    def bind(self, fitted: FittedTerms, tuning: Any = None) -> "CompositeSumPredictor":
        """The predictor for fitted data."""
        return CompositeSumPredictor(self, fitted)


class CompositeSumPredictor(Predictor):
    """Predicts by all the terms of a composite."""

    def __init__(self, method: CompositeSum, fitted: FittedTerms) -> None:
        self.method = method
        self.fitted = fitted
        self._factors = Factors(fitted.data)

    def lifted(self, functionals: Functionals) -> "CompositeSumPredictor":
        """The same factors, under the model lifted to functionals."""
        found = copy(self)
        found.fitted = replace(self.fitted, data=self.fitted.data.lifted(functionals))
        found._factors = self._factors.lifted(functionals)
        return found

    def prepare(self) -> None:
        """Factorize the terms."""
        self._factors.of(self.fitted.composite)

    def marginals(self, Z: Floats, n_jobs: int | None) -> Marginals:
        """Predict in groups."""
        return predict_groups(self._factors.of(self.fitted.composite), Z, self._group_size, n_jobs=n_jobs)

    def joint(self, Z: Floats) -> Belief:
        """Predict all the points as one group."""
        return self._factors.joint(self.fitted.composite, Z)

    def terms(self, Z: Floats) -> tuple[Composite, Floats | None]:
        """All the terms."""
        return self.fitted.composite, None

    def honest_variance(self, Z: Floats, claimed: Marginals | Surrounded) -> Floats:
        """Actual error variances, in the same groups as the means."""
        fitted = self.fitted
        return predict_honest_variance(
            fitted.data, fitted.composite, Z, self._group_size, own_estimate=fitted.estimated_from_data
        )

    @property
    def _group_size(self) -> int:
        assert isinstance(self.method, CompositeSum)
        return self.method.group_size


class Factors:
    """Factors of a composite, which are kept from one prediction to the next if they are not too large.

    Parameters
    ----------
    data : Observations
    """

    def __init__(self, data: Observations) -> None:
        self._data = data
        self._cached: tuple[str | None, FactoredComposite] | None = None

    def of(self, composite: Composite) -> FactoredComposite:
        """Factors on the device in use; they are computed again when the device changes."""
        device = current_device()
        name = None if device is None else device.name
        if self._cached is None or self._cached[0] != name:
            self._cached = name, self._factorize(composite)
        return self._cached[1]

    def lifted(self, functionals: Functionals) -> "Factors":
        """The same factors, under the model lifted to functionals."""
        found = Factors(self._data.lifted(functionals))
        if self._cached is not None:
            name, factored = self._cached
            found._cached = name, replace(factored, data=found._data)
        return found

    def joint(self, composite: Composite, Z: Floats) -> Belief:
        """Joint belief about the latent values at `Z`."""
        return self._held(composite).believe(self._data, Z)

    def one_block(self, composite: Composite) -> FactoredStack:
        """The factors of a composite of one block."""
        (factored,) = self._held(composite).stacks
        return factored

    def _held(self, composite: Composite) -> FactoredComposite:
        factored = self.of(composite)
        if not factored.stacks:
            with blas_threads_for(composite.largest_block):
                factored = FactoredComposite(self._data, composite, tuple(factor_stacks(self._data, composite)))
        return factored

    def _factorize(self, composite: Composite) -> FactoredComposite:
        elements = sum(stack.indices.shape[0] * stack.indices.shape[1] ** 2 for stack in composite.stacks)
        stacks: tuple[FactoredStack, ...] = ()
        if elements <= _HELD_FACTORS:
            with blas_threads_for(composite.largest_block):
                stacks = tuple(factor_stacks(self._data, composite))
        return FactoredComposite(self._data, composite, stacks)

    def __getstate__(self) -> dict[str, Any]:
        """State without the factors."""
        return {**vars(self), "_cached": None}
