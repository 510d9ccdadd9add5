"""`copy_tensors`: keep the values of many tensors, which their owner is about to overwrite."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import torch
from torch import Tensor

from endoscope.stats import compiled
from endoscope.stats.elements import address_of, is_gone, locate

_LINE = 64  # bytes that the kernels copy at once
_NUMBER = 4  # bytes
_ORDINARY = (Tensor, torch.nn.Parameter)


class Copies:
    """Where the values of some tensors go; the same can be done again as long as all of them lie where they were."""

    def __init__(self, sources: Sequence[Tensor], targets: Sequence[Tensor]) -> None:
        """Each target has the shape, the type and the device of its source."""
        self._kernels = compiled.load()
        self._table = array("q")
        self._others: list[tuple[int, Tensor, Tensor]] = []  # those that torch has to copy
        for number, (source, target) in enumerate(zip(sources, targets, strict=True)):
            place = _place(source, target) if self._kernels else None
            if place is not None:
                self._table.extend(place)
            else:
                self._others.append((number, source, target))
        self._places = None if self._others else _places(sources)

    def fit(self, sources: Sequence[Tensor]) -> bool:
        """Whether these tensors, known to be the same and of the same shapes and types, are where they were."""
        try:
            return self._places is not None and _places(sources) == self._places
        except (RuntimeError, NotImplementedError):  # there are tensors that lie nowhere, and this may be one by now
            return False

    def make(self) -> list[int]:
        """Copy; autograd is not told. Returns which have no memory now, as sharded training leaves parameters."""
        if self._table and self._kernels:
            self._kernels.copy_all(self._table.buffer_info()[0], len(self._table) // 3)
        if not self._others:
            return []
        # torch would read memory that was given back all the same.
        gone = [number for number, source, _ in self._others if source.is_cpu and source.numel() and is_gone(source)]
        others = [(source.detach(), target) for number, source, target in self._others if number not in gone]
        if others:
            with torch.no_grad():
                torch._foreach_copy_([target for _, target in others], [source for source, _ in others])
        return gone


def copy_tensors(sources: Sequence[Tensor], targets: Sequence[Tensor]) -> list[int]:
    """`Copies` that are made once."""
    return Copies(sources, targets).make()


def _place(source: Tensor, target: Tensor) -> tuple[int, int, int] | None:
    """Where both begin, and how many times 32 bits they are; None if the kernels cannot copy them."""
    size = source.nbytes if type(source) in _ORDINARY else 0
    if not size or size % _NUMBER or source.is_conj() or not (source.is_contiguous() and target.is_contiguous()):
        return None
    start, end = locate(source), address_of(target)
    return (start, end, size // _NUMBER) if start and end % _LINE == 0 else None


def _places(tensors: Sequence[Tensor]) -> tuple[list[int], list[bool]]:
    return list(map(address_of, tensors)), list(map(Tensor.is_contiguous, tensors))
