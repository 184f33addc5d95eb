"""Mean functions, their coefficients, and least squares for them."""

from compositegp.means.derivatives import mean_derivative
from compositegp.means.functions import (
    Basis,
    Constant,
    Estimated,
    Functions,
    Linear,
    LinearIn,
    PeriodicLevels,
    constant_functions,
    inflated,
    linear_functions,
    no_functions,
    phase_of,
)
from compositegp.means.least_squares import (
    NormalEquations,
    Prior,
    check_coefficients,
    check_covariance,
    covariance_root,
    gaussian_prior,
    ordinary_least_squares,
)
from compositegp.means.model import MeanLike, MeanModel, as_functions, as_mean, plugged_in
from compositegp.means.units import InUnitsOfData, as_given, in_units_of
from compositegp.means.value_rules import check_mean_values
from compositegp.means.varying_coefficients import fit_random_effects

__all__ = [
    "Basis",
    "Constant",
    "Estimated",
    "Functions",
    "InUnitsOfData",
    "Linear",
    "LinearIn",
    "MeanLike",
    "MeanModel",
    "NormalEquations",
    "PeriodicLevels",
    "Prior",
    "as_functions",
    "as_given",
    "as_mean",
    "check_coefficients",
    "check_covariance",
    "check_mean_values",
    "constant_functions",
    "covariance_root",
    "fit_random_effects",
    "gaussian_prior",
    "in_units_of",
    "inflated",
    "linear_functions",
    "mean_derivative",
    "no_functions",
    "ordinary_least_squares",
    "phase_of",
    "plugged_in",
]
