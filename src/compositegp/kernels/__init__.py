"""Fast evaluation of scikit-learn's kernels, for batches of point sets.

scikit-learn's kernel objects are the language; this package evaluates what they say: `gram`, `diagonal`,
and the derivative in ``kernel.theta`` as a `pullback` of a cotangent or a full `jacobian`.
"""

from compositegp.kernels import algebra, stationary  # noqa: F401  (their import registers the rules)
from compositegp.kernels.bounds import Boxes, covariance_bounds
from compositegp.kernels.columns import OnColumns
from compositegp.kernels.evaluation import Linearized, diagonal, gram, jacobian, linearize, pullback
from compositegp.kernels.length_scales import in_length_scales

__all__ = [
    "Boxes",
    "Linearized",
    "OnColumns",
    "covariance_bounds",
    "diagonal",
    "gram",
    "in_length_scales",
    "jacobian",
    "linearize",
    "pullback",
]
