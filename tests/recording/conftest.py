"""What all tests of recording share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.recording.held_steps import Loop


@pytest.fixture(autouse=True)
def nothing_is_left_open() -> Iterator[None]:
    """Runs that a test has not closed: some names of Python and torch stay exchanged as long as a run records."""
    yield
    while Loop.left_open:
        Loop.left_open.pop().close()
