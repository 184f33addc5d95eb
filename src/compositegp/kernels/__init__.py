"""Fast evaluation of scikit-learn's kernels, for batches of point sets.

Kernels are scikit-learn's kernel objects. This package asks them questions, each a function that is dispatched on the
kernel's class:

======================  ================================================================================
`gram`                  the Gram matrix
`diagonal`              its diagonal
`linearize`             the Gram matrix and its derivative in ``kernel.theta``
`noise_variance`        the variance that white noise adds to an observation
`metric`                the variance and the length scales, by which nearness is measured
`largest_covariance`    a bound on the covariance of points that are some distance apart
`typical_values`        hyper-parameters at the scale of some data, where learning begins
`derivative`            covariances of derivatives of f
`in_length_scales`      points in units of the length scales
`covariances_of_pairs`  those without noise, from which a large Gram matrix is made strip by strip
======================  ================================================================================

Every kernel of scikit-learn's interface has an answer to each. A new kernel becomes fast by answering them itself, in
one file: ``rule(question, KernelClass)`` registers an answer and ``register_storable(KernelClass)`` lets models with
the kernel be saved (``tests/test_extension_kernel.py`` is such a file).
"""

from compositegp.kernels import algebra, stationary  # noqa: F401  (their import registers the rules)
from compositegp.kernels.argument_rules import check_arguments, check_covariances
from compositegp.kernels.bounds import Boxes, covariance_bounds, largest_covariance
from compositegp.kernels.columns import OnColumns
from compositegp.kernels.data_scale import DataScale, typical_values
from compositegp.kernels.derivatives import derivative
from compositegp.kernels.distances import squared_distances
from compositegp.kernels.evaluation import Linearized, diagonal, free_hyperparameters, gram, linearize, rule
from compositegp.kernels.finite_bounds import with_finite_bounds
from compositegp.kernels.length_scales import in_length_scales, length_scale_factors, metric
from compositegp.kernels.noise import noise_jacobian, noise_variance, with_noise_factors
from compositegp.kernels.rotated_sphere import RotatedMaternOnSphere
from compositegp.kernels.rotation import RotatedMatern
from compositegp.kernels.sphere import EARTH_RADIUS, OnSphere
from compositegp.kernels.spheroid import MaternOnSphere
from compositegp.kernels.storable import is_storable, register_storable, storable_class
from compositegp.kernels.strips import covariances_of_pairs, upper_gram
from compositegp.kernels.theta_values import at_theta, form_of
from compositegp.kernels.warped import Warped, is_warped
from compositegp.kernels.wrapper import KernelWrapper

__all__ = [
    "EARTH_RADIUS",
    "Boxes",
    "DataScale",
    "KernelWrapper",
    "Linearized",
    "MaternOnSphere",
    "OnColumns",
    "OnSphere",
    "RotatedMatern",
    "RotatedMaternOnSphere",
    "Warped",
    "at_theta",
    "check_arguments",
    "check_covariances",
    "covariance_bounds",
    "covariances_of_pairs",
    "derivative",
    "diagonal",
    "form_of",
    "free_hyperparameters",
    "gram",
    "in_length_scales",
    "is_storable",
    "is_warped",
    "largest_covariance",
    "length_scale_factors",
    "linearize",
    "metric",
    "noise_jacobian",
    "noise_variance",
    "register_storable",
    "rule",
    "squared_distances",
    "storable_class",
    "typical_values",
    "upper_gram",
    "with_finite_bounds",
    "with_noise_factors",
]
