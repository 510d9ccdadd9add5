"""Every contract test starts from the same random state and uses one core."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread_and_fixed_seed() -> Iterator[None]:
    """Fix the seed so that a failure repeats, and one thread so that forked children cannot hang."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(before)
