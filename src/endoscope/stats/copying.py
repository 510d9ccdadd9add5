"""`copy_tensors`: keep the values of tensors, which their owner is about to overwrite."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from endoscope.stats.elements import is_gone


def copy_tensors(sources: Sequence[Tensor], targets: Sequence[Tensor]) -> list[int]:
    """Copy tensors to others of the same shape, type and device; autograd is not told.

    Returns which of them have no memory now, as sharded training leaves parameters: torch would read it all the same.
    """
    gone = [number for number, source in enumerate(sources) if source.is_cpu and source.numel() and is_gone(source)]
    pairs = [pair for number, pair in enumerate(zip(targets, sources, strict=True)) if number not in gone]
    if pairs:
        with torch.no_grad():
            torch._foreach_copy_([target for target, _ in pairs], [source.detach() for _, source in pairs])
    return gone
