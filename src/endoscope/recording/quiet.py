"""What we compute ourselves is seen by no mode of the user's, neither of functions nor of dispatched operations."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

_dispatch_depth = torch._C._len_torch_dispatch_stack
_without_functions = torch._C.DisableTorchFunction


def quiet() -> Any:
    return _without_functions() if not _dispatch_depth() else _without_both()


@contextlib.contextmanager
def _without_both() -> Iterator[None]:
    with _without_functions(), _disable_current_modes():
        yield
