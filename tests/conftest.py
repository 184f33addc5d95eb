import importlib.util
import os

import numpy as np
import pytest
from hypothesis import settings

from compositegp import use_device

settings.register_profile("suite", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("thorough", max_examples=500, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))


@pytest.fixture
def rng():
    return np.random.default_rng(20180131)


def back_ends():
    """Where the terms can be worked on here: by NumPy and, where it is installed, by PyTorch."""
    found = [pytest.param(None, id="numpy")]
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(1)  # of small matrices
        found.append(pytest.param("cpu", id="torch"))
        if torch.cuda.is_available():
            found.append(pytest.param("cuda", id="cuda"))
    return found


@pytest.fixture(params=back_ends())
def device(request):
    """Every test that takes this runs on each back end."""
    with use_device(request.param):
        yield request.param
