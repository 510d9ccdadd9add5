"""A forked process knows that it is one."""

from __future__ import annotations

import os

import pytest

from endoscope.recording import forks


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_has_one_more() -> None:
    before = forks.count
    child = os.fork()
    if not child:
        os._exit(0 if forks.count == before + 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert forks.count == before
