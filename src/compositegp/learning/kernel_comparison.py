"""How kernels compared on the same terms: one row for each, and a table of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, overload

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats
from compositegp.storage import Fields
from compositegp.validation import check_kernel, is_real

_LONGEST_NAME = 40  # characters of a name in a printed table


@dataclass(frozen=True, eq=False)
class ComparedKernel:
    """One kernel of a comparison.

    Attributes
    ----------
    name : str
    kernel : scikit-learn kernel
        With the hyper-parameters at which it was compared. The kernel that is chosen is learned further from there.
    mean_coefficients : array of shape (q, t)
        The coefficients of the mean at which it was compared.
    log_likelihood : float
        A point, on the terms that it was compared on; −inf where it could not be computed.
    difference : float
        To the best kernel on the same terms, in log likelihood a point, parameters being penalized: 0 for the best,
        negative for the others.
    standard_error : float
        Of this difference.
    n_points, n_segments : int
        What it was compared on: kernels that are clearly worse leave the comparison early. Log likelihoods compare
        only between kernels with the same number of segments.
    n_parameters : int
        Free hyper-parameters.
    n_evaluations : int
        Times that its likelihood and gradient were computed.
    converged : bool
        Whether its likelihood was maximized to the tolerance of the comparison, or left before that.
    seconds : float
        Time that it took.
    chosen : bool
    crps : float
        Mean CRPS of training points that were predicted with this kernel and calibrated errors, in the unit of the
        model's target; NaN where it was not tried.
    """

    name: str
    kernel: Kernel
    mean_coefficients: Floats
    log_likelihood: float
    difference: float
    standard_error: float
    n_points: int
    n_segments: int
    n_parameters: int
    n_evaluations: int
    converged: bool
    seconds: float
    chosen: bool
    crps: float = float("nan")


@dataclass(frozen=True, eq=False, repr=False)
class KernelComparison(Sequence[ComparedKernel]):
    """Kernels that were compared by composite log likelihood on the same terms: a sequence, the chosen one first.

    Attributes
    ----------
    rows : tuple of ComparedKernel
    first_kernel : scikit-learn kernel
        The kernel that was learned first. Conditioning sets were found in its length scales, for all the kernels.
    seconds : float
        Time of the whole comparison; learning with the chosen kernel comes after it.

    Examples
    --------
    >>> from compositegp import CompositeGPRegressor
    >>> from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel
    >>> X = np.linspace(0, 10, 200)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=200)
    >>> kernels = {"rough": 1.0 * Matern(nu=0.5) + WhiteKernel(), "smooth": 1.0 * RBF() + WhiteKernel()}
    >>> comparison = CompositeGPRegressor(kernels).fit(X, y).kernel_comparison_
    >>> comparison.best.name, [row.name for row in comparison]
    ('smooth', ['smooth', 'rough'])
    """

    rows: tuple[ComparedKernel, ...]
    first_kernel: Kernel
    seconds: float = field(default=0.0)

    @property
    def best(self) -> ComparedKernel:
        """The kernel that was chosen.

        The most likely, or a simpler one that is as good within one standard error, or one nearly as likely that
        predicts training points clearly better.
        """
        return next(row for row in self.rows if row.chosen)

    @overload
    def __getitem__(self, position: int) -> ComparedKernel: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[ComparedKernel]: ...
    def __getitem__(self, position: int | slice) -> ComparedKernel | Sequence[ComparedKernel]:
        return self.rows[position]

    def __iter__(self) -> Iterator[ComparedKernel]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        head = ["kernel", "log likelihood", "difference", "points", "parameters", "seconds", "CRPS", ""]
        cells = [head, *(_cells(row) for row in self.rows)]
        if not any(np.isfinite(row.crps) for row in self.rows):
            cells = [[*line[:-2], line[-1]] for line in cells]
        widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
        lines = []
        for first, *others in cells:
            numbers = [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
            lines.append("  ".join([first.ljust(widths[0]), *numbers]))
        return "\n".join([f"KernelComparison, in {self.seconds:.1f} s", *(line.rstrip() for line in lines)])

    def to_values(self) -> dict[str, Any]:
        """The comparison as a dictionary of numbers, text, arrays and kernels, for a file."""
        rows = [{item.name: getattr(row, item.name) for item in fields(row)} for row in self.rows]
        return {"rows": rows, "first_kernel": self.first_kernel, "seconds": self.seconds}

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> "KernelComparison":
        """The comparison that `to_values` wrote, checked; a ValueError says what is wrong."""
        parts = Fields(values, ["rows", "first_kernel", "seconds"])
        if not isinstance(parts["rows"], list) or not parts["rows"]:
            raise ValueError("a comparison of kernels must have rows")
        rows = tuple(_row(row) for row in parts["rows"])
        if sum(row.chosen for row in rows) != 1:
            raise ValueError("of the kernels of a comparison one must be chosen")
        return cls(rows, check_kernel(parts["first_kernel"]), parts.number("seconds"))


def _row(values: Any) -> ComparedKernel:
    parts = Fields(values, [item.name for item in fields(ComparedKernel)])
    numbers: dict[str, Any] = {}
    for name in ("log_likelihood", "difference", "standard_error", "crps"):  # not finite where a kernel failed
        if not is_real(parts[name]):
            raise ValueError(f"{name} of a comparison of kernels must be a number")
        numbers[name] = float(parts[name])
    for name in ("n_points", "n_segments", "n_parameters", "n_evaluations"):
        numbers[name] = parts.count(name)
    return ComparedKernel(
        name=parts.text("name"),
        kernel=check_kernel(parts["kernel"]),
        mean_coefficients=parts.reals("mean_coefficients", *np.shape(parts["mean_coefficients"])),
        converged=parts.truth("converged"),
        seconds=parts.number("seconds"),
        chosen=parts.truth("chosen"),
        **numbers,
    )


def _cells(row: ComparedKernel) -> list[str]:
    name = row.name if len(row.name) <= _LONGEST_NAME else row.name[: _LONGEST_NAME - 3] + "..."
    difference = f"{row.difference:.4f} ± {row.standard_error:.4f}" if np.isfinite(row.difference) else "failed"
    return [
        name,
        f"{row.log_likelihood:.4f}",
        difference if row.difference else "0",
        str(row.n_points),
        str(row.n_parameters),
        f"{row.seconds:.1f}",
        f"{row.crps:.4g}" if np.isfinite(row.crps) else "",
        "chosen" if row.chosen else "",
    ]
