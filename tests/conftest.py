"""What every test relies on: few threads, no network, the same random numbers each time."""

import os
import sys

import pytest
from hypothesis import settings

# Set before torch or transformers is imported anywhere. One thread: the tensors are tiny, and timings of
# tests that run side by side stay comparable. Offline: models are built from configs, never downloaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

# The same examples on every machine: a red test can be repeated. No deadline: a busy machine is not a bug.
settings.register_profile("endoscope", derandomize=True, deadline=None)
settings.load_profile("endoscope")


@pytest.fixture(autouse=True)
def _same_random_numbers() -> None:
    """Seed torch for each test, unless nothing has needed torch yet (importing it takes seconds)."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(0)
