"""scikit-learn's own tests of its Gaussian process, of the version that is installed, run against the regressor.

Only the names of parameters are mapped. What is expected to fail is listed, each with its reason.
"""

import importlib.util
import math
import re
from pathlib import Path

import numpy as np
import pytest
import sklearn.gaussian_process
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from compositegp import CompositeGPRegressor, CompositeLikelihood, Nearest

DOCS = Path(__file__).parent.parent / "docs"
SOURCE = Path(sklearn.gaussian_process.__file__).parent / "tests" / "test_gpr.py"
if not SOURCE.exists():
    pytest.skip(f"{SOURCE} is not installed with this scikit-learn", allow_module_level=True)

EXPECTED_FAILURES = {
    "test_gpr_interpolation_structured": "X is a table of numbers: kernels of text have no coordinates to segment",
    "test_lml_without_cloning_kernel[kernel0]": "kernel_ is never changed by asking for a likelihood",
    "test_lml_without_cloning_kernel[kernel2]": "kernel_ is never changed by asking for a likelihood",
    "test_lml_without_cloning_kernel[kernel3]": "kernel_ is never changed by asking for a likelihood",
    "test_lml_without_cloning_kernel[kernel4]": "kernel_ is never changed by asking for a likelihood",
    "test_lml_without_cloning_kernel[kernel5]": "kernel_ is never changed by asking for a likelihood",
    "test_gpr_correct_error_message": "a singular covariance gets a jitter and a NumericalWarning, not an error",
    "test_warning_bounds": "a hyper-parameter on its bound is warned of in other words",
    "test_constant_target": "the test reads _y_train_std, a private attribute of scikit-learn's class",
    "test_gpr_fit_error[params1-ValueError-requires that all bounds are finite]": "random starts need no finite bounds",
    "test_gpr_lml_error": "the gradient at the learned hyper-parameters is given, not refused",
}

pytestmark = pytest.mark.filterwarnings(
    "ignore"
)  # toy data warn; their tests of warnings look at them nevertheless


def regressor(
    kernel=None,
    *,
    alpha=1e-10,
    optimizer="fmin_l_bfgs_b",
    n_restarts_optimizer=0,
    normalize_y=False,
    copy_X_train=True,
    n_targets=None,
    random_state=None,
):
    """`CompositeGPRegressor` by the names of scikit-learn's parameters: the table in docs/coming_from.md."""
    if optimizer == "fmin_l_bfgs_b":
        optimizer = CompositeLikelihood(start="kernel", n_restarts=n_restarts_optimizer)
    return CompositeGPRegressor(
        ConstantKernel(1.0) * RBF(1.0) if kernel is None else kernel,
        alpha=alpha,
        normalize_y=normalize_y,
        mean=None if n_targets is None else np.zeros(n_targets),
        learning=optimizer,
        prediction=Nearest(theta_uncertainty=False),
        random_state=0 if random_state is None else random_state,
    )


@pytest.fixture(autouse=True)
def expect_failures(request):
    name = request.node.name
    reason = EXPECTED_FAILURES.get(name) or EXPECTED_FAILURES.get(name.partition("[")[0])
    if reason is not None:
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))


def their_tests():
    spec = importlib.util.spec_from_file_location("scikit_learn_test_gpr", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.GaussianProcessRegressor = regressor
    tests = {name: value for name, value in vars(module).items() if name.startswith("test_")}
    for test in tests.values():  # what scikit-learn expects of itself may well succeed here
        marks = getattr(test, "pytestmark", [])
        test.pytestmark = [_lenient(mark) if mark.name == "xfail" else mark for mark in marks]
    return tests


def _lenient(mark):
    return pytest.mark.xfail(*mark.args, **{"strict": False, **mark.kwargs}).mark


globals().update(their_tests())


def cases(function):
    """How many tests a function of theirs is, without those that scikit-learn expects to fail itself."""
    marks = getattr(function, "pytestmark", [])
    if any(mark.name in ("xfail", "skip") for mark in marks):
        return 0
    return math.prod(len(mark.args[1]) for mark in marks if mark.name == "parametrize")


def test_the_documentation_says_how_many_pass():
    theirs = their_tests()
    failures = sum(1 if "[" in name else cases(theirs[name]) for name in EXPECTED_FAILURES)
    total = sum(map(cases, theirs.values()))
    pages = [" ".join((DOCS / page).read_text().split()) for page in ("coming_from.md", "estimator.md")]
    pattern = r"Of (\d+) tests of scikit-learn (\S+) that it passes itself, (\d+) pass. The other (\d+) are named"
    (said,) = re.findall(pattern, pages[0])
    if not sklearn.__version__.startswith(f"{said[1]}."):
        pytest.skip(f"the documentation counts the tests of scikit-learn {said[1]}")
    assert (int(said[0]), int(said[2]), int(said[3])) == (total, total - failures, failures)
    assert f"tests pass: {total - failures} of {total}." in pages[1]
