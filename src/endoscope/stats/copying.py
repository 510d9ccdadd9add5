"""`copy_tensors`: keep the values of many tensors, which their owner is about to overwrite."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import torch
from torch import Tensor

from endoscope.stats import compiled
from endoscope.stats.elements import address_of, is_gone, locate

_LINE = 64  # bytes that the kernels copy at once
_WORTH = 16 * _LINE  # bytes; calling torch for fewer costs less than thinking about it
_ORDINARY = (Tensor, torch.nn.Parameter)


def copy_tensors(sources: Sequence[Tensor], targets: Sequence[Tensor]) -> list[int]:
    """Each target has the shape, the type and the device of its source. Autograd is not told.

    Returns which of them have no memory now, as sharded training leaves parameters, and were not copied.
    """
    kernels = compiled.load()
    table, others, gone = array("q"), [], []
    for number, (source, target) in enumerate(zip(sources, targets, strict=True)):
        place = _place(source, target) if kernels else None
        if place is not None:
            table.extend(place)
        elif source.is_cpu and source.numel() and is_gone(source):  # torch would read it all the same
            gone.append(number)
        else:
            others.append((source.detach(), target))
    if table and kernels:
        kernels.copy_all(table.buffer_info()[0], len(table) // 3)
    if others:
        with torch.no_grad():
            torch._foreach_copy_([target for _, target in others], [source for source, _ in others])
    return gone


def _place(source: Tensor, target: Tensor) -> tuple[int, int, int] | None:
    """Where both begin, and how many times 32 bits they are; None if the kernels cannot copy them."""
    size = source.nbytes
    if size < _WORTH or size % _LINE or type(source) not in _ORDINARY:
        return None
    if source.is_conj() or not (source.is_contiguous() and target.is_contiguous()):
        return None
    start, end = locate(source), address_of(target)
    return (start, end, size // 4) if start and end % _LINE == 0 else None
