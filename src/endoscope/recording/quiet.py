"""What we compute ourselves is seen by no mode of the user's, neither of functions nor of dispatched operations."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from endoscope.capture.torch_private import DisableTorchFunction as _without_functions
from endoscope.capture.torch_private import dispatch_depth as _dispatch_depth
from endoscope.capture.torch_private import no_dispatch_modes as _no_dispatch_modes


def quiet() -> Any:
    return _without_functions() if not _dispatch_depth() else _without_both()


@contextlib.contextmanager
def _without_both() -> Iterator[None]:
    with _without_functions(), _no_dispatch_modes():
        yield
