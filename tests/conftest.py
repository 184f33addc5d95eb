import os

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("suite", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("thorough", max_examples=500, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))


@pytest.fixture
def rng():
    return np.random.default_rng(20180131)
