"""Look at a trace while another one is running, without being recorded by it."""

from __future__ import annotations

import contextlib
import sys
from typing import Any


def unheard() -> Any:
    """A block in which modes and subclasses of torch see nothing; where nobody can record, there is nothing to do."""
    private = sys.modules.get("endoscope.capture.patch.torch_private")  # imported by whatever records
    return contextlib.nullcontext() if private is None else private.DisableTorchFunction()
