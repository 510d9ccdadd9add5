"""Mean and the like of a value, whether it is a tensor or an array."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from endoscope.capture.views.op import Op
from endoscope.capture.views.unheard import unheard
from endoscope.errors import EndoscopeError


class Measured(NamedTuple):
    """Of the finite elements of everything that an operation returned."""

    mean: float
    std: float
    least: float
    largest: float
    not_finite: float  # share of NaN and infinity


def measured(op: Op) -> Measured | None:
    """None where no value was kept, or where it is made of no real numbers."""
    try:
        parts = [array_of(value) for value in op.outputs]
    except (EndoscopeError, TypeError, RuntimeError, ValueError, NotImplementedError):
        return None
    if not parts or any(part.dtype.kind not in "fiub" for part in parts):
        return None
    values = np.concatenate([part.reshape(-1).astype(np.float64) for part in parts])
    finite = values[np.isfinite(values)]
    if not values.size or not finite.size:
        nothing = float("nan")
        return Measured(nothing, nothing, nothing, nothing, 1.0) if values.size else None
    return Measured(
        float(finite.mean()), float(finite.std()), float(finite.min()), float(finite.max()),
        1 - finite.size / values.size,
    )  # fmt: skip


def array_of(value: Any) -> np.ndarray:
    """The same numbers for numpy, which knows no half precision but its own."""
    if isinstance(value, np.ndarray):
        return value
    with unheard():
        tensor = value.detach().cpu()
        if not tensor.is_complex() and tensor.is_floating_point() and str(tensor.dtype) not in _KNOWN:
            tensor = tensor.float()
        return np.asarray(tensor.numpy())


_KNOWN = ("torch.float16", "torch.float32", "torch.float64")
