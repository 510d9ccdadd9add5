"""Tests that run the `dot` program."""

from __future__ import annotations

import os
from shutil import which

import pytest

# In CI nothing is skipped: `make test` installs Graphviz, and if it could not, these tests fail.
needs_dot = pytest.mark.skipif(which("dot") is None and not os.environ.get("CI"), reason="Graphviz is not installed")
