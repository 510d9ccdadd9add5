"""A cheap sign that a tensor's memory was overwritten without its version counter moving.

Fused optimizers and batch norm write below autograd. A few bytes, read straight from memory, tell almost always;
only ordinary CPU tensors can be looked at like this.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import torch

from endoscope.schema.ops import Kind

if TYPE_CHECKING:
    from endoscope.capture.record.recorder import Recorder

_WIDTH = 16  # bytes per look
_PLAIN = (torch.Tensor, torch.nn.Parameter)


def fingerprint(tensor: torch.Tensor) -> bytes | None:
    """Bytes from the beginning and the middle; None where memory cannot be read."""
    if tensor.__class__ not in _PLAIN or not tensor.is_cpu:
        return None
    try:
        if not tensor.is_contiguous():
            return None
        size, start = tensor.numel() * tensor.element_size(), tensor.data_ptr()
    except RuntimeError:  # sparse, nested, wrapped: no memory of their own
        return None
    if size <= 2 * _WIDTH:
        return ctypes.string_at(start, size) if size else None
    return ctypes.string_at(start, _WIDTH) + ctypes.string_at(start + size // 2 - _WIDTH // 2, _WIDTH)


def take_fingerprints(recorder: Recorder) -> None:
    """Parameters, buffers and inputs belong to others, who may write into them below the version counter."""
    for node, source in recorder.sources.items() if recorder.full else ():
        slot = recorder.nodes[node].slot
        if source.kind == Kind.OUTPUT:
            continue
        sign = fingerprint(recorder.objects[slot]) if slot not in recorder.kept else None
        if sign is not None:
            recorder.fingerprints[slot] = sign
