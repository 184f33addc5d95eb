"""Ways to predict from fitted data: which terms speak about a test point, and how they are combined."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from compositegp.backend import Floats, Indices, blas_threads_for, current_device
from compositegp.composite import Composite, FactoredStack, Observations, conditioning_sets, factor_stacks, segment
from compositegp.kernels import in_length_scales
from compositegp.means import plugged_in
from compositegp.posteriors import (
    Belief,
    FactoredComposite,
    Marginals,
    NearestPredictor,
    belief_about_inducing,
    committee,
    default_group_size,
    predict_groups,
    project,
    project_groups,
)

COMMITTEES = ("bcm", "rbcm", "gpoe", "grbcm")
INDUCING = ("fitc", "pitc")
PREDICTIONS = ("nearest", "composite", *COMMITTEES, *INDUCING)

_HELD_FACTORS = 2**26  # matrix elements of factors kept from one prediction to the next: half a gigabyte
_MOST_JOINT = 8192  # observations in the one term of a joint prediction
_COMMITTEE_GROUP = 1024
_INDUCING_GROUP = 256
COMPOSITE_GROUP = 128


@dataclass(frozen=True, eq=False)
class Fitted:
    """Data, model and terms: what every way to predict begins with.

    Attributes
    ----------
    data : Observations
    segments : list of int arrays
    conditioning_size : int
    """

    data: Observations
    segments: list[Indices]
    conditioning_size: int

    @cached_property
    def composite(self) -> Composite:
        """The terms: segments, each given the nearest points of those before it."""
        if len(self.segments) == 1 or not self.conditioning_size:
            return Composite.marginal(self.segments)
        given = conditioning_sets(self.data.X, self.segments, self.conditioning_size, kernel=self.data.kernel)
        return Composite.conditional(self.segments, given)


class Mode(Protocol):
    """A way to predict."""

    def prepare(self) -> None:
        """Do what can be done before the test points are known."""

    def marginals(self, Z: Floats, n_jobs: int | None) -> Marginals:
        """Means and variances of the latent values at any number of test points."""

    def joint(self, Z: Floats) -> Belief:
        """Joint belief about the latent values at some test points."""

    def terms(self, Z: Floats) -> tuple[Composite, Floats | None]:
        """The composite, and the inducing points if any, that a joint prediction at `Z` is by."""


class _Lazy:
    """Results kept from one prediction to the next stay out of pickles."""

    def __getstate__(self) -> dict[str, Any]:
        kept = {name for name in dir(type(self)) if isinstance(getattr(type(self), name), cached_property)}
        return {name: value for name, value in vars(self).items() if name not in kept}


class CompositeMode(_Lazy):
    """Every segment's evidence about a group of test points, added up: the paper."""

    def __init__(self, fitted: Fitted, group_size: int | None) -> None:
        self.fitted = fitted
        self._group_size = group_size or COMPOSITE_GROUP
        self._held: tuple[str | None, FactoredComposite] | None = None

    @property
    def _factored(self) -> FactoredComposite:
        """Factors where the terms are worked on now; they are made anew when that changes."""
        device = current_device()
        name = None if device is None else device.name
        if self._held is None or self._held[0] != name:
            self._held = name, self._factorise()
        return self._held[1]

    def __getstate__(self) -> dict[str, Any]:
        """Without the factors."""
        return {**super().__getstate__(), "_held": None}

    def _factorise(self) -> FactoredComposite:
        data, composite = self.fitted.data, self.fitted.composite
        elements = sum(stack.indices.shape[0] * stack.indices.shape[1] ** 2 for stack in composite.stacks)
        stacks: tuple[FactoredStack, ...] = ()
        if elements <= _HELD_FACTORS:
            with blas_threads_for(composite.largest_block):
                stacks = tuple(factor_stacks(data, composite))
        return FactoredComposite(data, composite, stacks)

    def prepare(self) -> None:
        """Factorise the terms."""
        _ = self._factored

    def marginals(self, Z: Floats, n_jobs: int | None) -> Marginals:
        """Predict in groups."""
        return predict_groups(self._factored, Z, self._group_size, n_jobs=n_jobs)

    def joint(self, Z: Floats) -> Belief:
        """Predict all the points as one group."""
        factored = self._factored
        if not factored.stacks:
            stacks = factor_stacks(factored.data, factored.composite)
            factored = FactoredComposite(factored.data, factored.composite, stacks)  # type: ignore[arg-type]
        return factored.posterior(Z)

    def terms(self, Z: Floats) -> tuple[Composite, Floats | None]:
        """All the terms."""
        return self.fitted.composite, None


class NearestMode(_Lazy):
    """The observations nearest to a group of test points as its one term."""

    def __init__(self, fitted: Fitted, size: int, group_size: int | None) -> None:
        self.fitted = fitted
        self._size = size
        self._group_size = group_size or default_group_size(fitted.data.X.shape[1])
        self._everything = size >= len(fitted.data.X)

    @cached_property
    def _exact(self) -> CompositeMode:
        n = len(self.fitted.data.X)
        whole = Fitted(self.fitted.data, [np.arange(n)], 0)
        return CompositeMode(whole, None)

    @cached_property
    def _nearest(self) -> NearestPredictor:
        return NearestPredictor(self.fitted.data)

    def prepare(self) -> None:
        """Build the search tree or, where all the data are near, factorise their covariance."""
        if self._everything:
            self._exact.prepare()
        else:
            _ = self._nearest

    def marginals(self, Z: Floats, n_jobs: int | None) -> Marginals:
        """Predict in groups."""
        if self._everything:
            return self._exact.marginals(Z, n_jobs)
        return self._nearest.predict(Z, self._size, self._group_size, n_jobs=n_jobs)

    def joint(self, Z: Floats) -> Belief:
        """Predict all the points from the union of what their groups are predicted from."""
        if self._everything:
            return self._exact.joint(Z)
        near = self._union(Z)
        return CompositeMode(Fitted(self.fitted.data.take(near), [np.arange(len(near))], 0), None).joint(Z)

    def terms(self, Z: Floats) -> tuple[Composite, Floats | None]:
        """One term."""
        return Composite([(np.arange(len(self.fitted.data.X)) if self._everything else self._union(Z), 1.0)]), None

    def _union(self, Z: Floats) -> Indices:
        near = self._nearest.union(Z, self._size, self._group_size)
        if len(near) > _MOST_JOINT:
            raise ValueError(
                f"A joint prediction at these {len(Z)} points is from {len(near)} observations near them, more than "
                f"{_MOST_JOINT}. Ask for fewer points at a time, lower n_neighbors, or use prediction='composite'."
            )
        return near


class CommitteeMode:
    """A committee of experts, one for each segment, point by point: for comparison."""

    def __init__(self, fitted: Fitted, rule: str) -> None:
        self.fitted = fitted
        self._rule = rule

    def prepare(self) -> None:
        """Nothing to do."""

    def marginals(self, Z: Floats, n_jobs: int | None) -> Marginals:
        """Predict some points at a time."""
        data = self.fitted.data
        y = data.columns[:, -1] + data.mean.values(data.X)
        parts = [
            committee(
                data.kernel,
                data.X,
                y,
                Z[start : start + _COMMITTEE_GROUP],
                self.fitted.segments,
                rule=self._rule if len(self.fitted.segments) > 1 else "bcm",  # a committee of one
                mean=plugged_in(data.mean),
                noise_variance=data.noise_variance,
            )
            for start in range(0, len(Z), _COMMITTEE_GROUP)
        ]
        return Marginals(*(np.concatenate(values) for values in zip(*parts, strict=True)))

    def joint(self, Z: Floats) -> Belief:
        """Not to be had."""
        raise ValueError(
            f"prediction={self._rule!r} predicts point by point and has no joint covariance. Use prediction='nearest' "
            "or 'composite' for return_cov and sample_y."
        )

    def terms(self, Z: Floats) -> tuple[Composite, Floats | None]:
        """Not to be had."""
        raise ValueError(f"prediction={self._rule!r} is a committee, not a composite: its cost has no closed form.")


class InducingMode(_Lazy):
    """FITC and PITC: the terms speak about inducing variables, and those about the test points."""

    def __init__(self, fitted: Fitted, inducing: Floats, pointwise: bool) -> None:
        self.fitted = fitted
        n = len(fitted.data.X)
        self._inducing = inducing
        self._composite = Composite.pointwise(n) if pointwise else Composite.marginal(fitted.segments)

    @cached_property
    def _about_u(self) -> Belief:
        data = self.fitted.data
        return belief_about_inducing(data, self._composite, factor_stacks(data, self._composite), self._inducing)

    def prepare(self) -> None:
        """Collect the evidence about the inducing variables."""
        _ = self._about_u

    def marginals(self, Z: Floats, n_jobs: int | None) -> Marginals:
        """Predict some points at a time."""
        return project_groups(self._about_u, self.fitted.data, Z, _INDUCING_GROUP)

    def joint(self, Z: Floats) -> Belief:
        """Predict all the points jointly."""
        return project(self._about_u, self.fitted.data.kernel, Z, mean=self.fitted.data.mean)

    def terms(self, Z: Floats) -> tuple[Composite, Floats | None]:
        """All the terms, and the inducing points."""
        return self._composite, self._inducing


def inducing_points(data: Observations, count: int) -> Floats:
    """As many points as asked for, spread over the data (in length scales)."""
    n = len(data.X)
    if count >= n:
        return np.unique(data.X, axis=0)
    scaled = in_length_scales(data.kernel, data.X)
    cells = segment(scaled, -(-n // count))
    middle = [cell[np.argmin(((scaled[cell] - scaled[cell].mean(axis=0)) ** 2).sum(axis=1))] for cell in cells]
    return np.unique(data.X[middle], axis=0)
