"""Linear functionals of f: values, derivatives, averages, weighted sums and parts of a sum kernel.

The covariance of two functionals follows from the kernel alone, and so does their mean from the mean function. That is
all that a posterior asks for. So functionals take the place of test points in every method, with an error bar, and the
place of observed points.

==============  ===================================================================
`at`            f at points: what points alone mean
`derivative`    ∂f/∂x in a column
`average`       the mean over sets of points: boxes (`box`), polygons, days
`combine`       any weighted sum: a contrast, a total
`part`          what one part of a sum kernel, or the mean function, contributes
==============  ===================================================================

Examples
--------
>>> from compositegp import Composite, posterior
>>> from compositegp import functionals as F
>>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
>>> import numpy as np
>>> X = np.linspace(0.0, 6.0, 50)[:, None]
>>> slope = F.derivative([[0.0], [3.0]], column=0)
>>> posterior(RBF() + WhiteKernel(1e-4), X, np.sin(X[:, 0]), slope, Composite.full(50)).mean.round(1)
array([ 1., -1.])
"""

from compositegp.functionals.constructors import at, average, box, combine, derivative, part
from compositegp.functionals.functional_list import Functionals, PointsLike, find_functionals, join
from compositegp.functionals.kernel_of_functionals import OnFunctionals
from compositegp.functionals.lifting import (
    Lifted,
    lift,
    lifted_kernel,
    matching_kernel,
    matching_mean,
    plain_kernel,
    plain_points,
)
from compositegp.functionals.part_kernels import MEAN, part_names
from compositegp.functionals.places import Places, atoms_of

__all__ = [
    "MEAN",
    "Functionals",
    "Lifted",
    "OnFunctionals",
    "Places",
    "PointsLike",
    "at",
    "atoms_of",
    "average",
    "box",
    "combine",
    "derivative",
    "find_functionals",
    "join",
    "lift",
    "lifted_kernel",
    "matching_kernel",
    "matching_mean",
    "part",
    "part_names",
    "plain_kernel",
    "plain_points",
]
