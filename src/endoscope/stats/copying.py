"""`copy_tensors`: keep the values of many tensors, which their owner is about to overwrite."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter

import torch
from torch import Tensor

from endoscope.stats import compiled
from endoscope.stats.elements import address_of, is_gone, locate

_LINE = 64  # bytes that the kernels copy at once
_NUMBER = 4  # bytes
_FIELDS = 3  # of an entry in the table for the kernels
_SIZE, _is_contiguous = attrgetter("nbytes"), Tensor.is_contiguous
_ORDINARY = (Tensor, torch.nn.Parameter)


class Copies:
    """Where the values of some tensors go; the same can be done again as long as all of them lie where they were."""

    def __init__(self, sources: Sequence[Tensor], targets: Sequence[Tensor]) -> None:
        """Each target has the shape, the type and the device of its source."""
        self.sources = list(sources)
        self._kernels = compiled.load()
        self._table = array("q")
        self._others: list[tuple[int, Tensor, Tensor]] = []  # those that torch has to copy
        for number, (source, target) in enumerate(zip(sources, targets, strict=True)):
            place = _place(source, target) if self._kernels else None
            if place is not None:
                self._table.extend(place)
            else:
                self._others.append((number, source, target))
        self.targets = list(targets)  # or their memory could be gone
        self._shorter: tuple[tuple[int, ...], array[int]] = ((), self._table)  # the table without some
        self._where = None if self._others else _where(self.sources)
        #: What `make` does if they are quick and fit.
        self.make_now: Callable[[], object] = _nothing
        if self._where is not None and self._kernels:
            self.make_now = partial(self._kernels.copy_all, self._table.buffer_info()[0], len(self._table) // _FIELDS)

    @property
    def are_quick(self) -> bool:
        """Whether the kernels make all of them."""
        return self._where is not None

    def fit(self) -> bool:
        """Whether the tensors, known to have the same types, are where they were."""
        if self._where is None:
            return False
        sources = self.sources
        try:  # what `_where` does: it is asked when no code is in the cache
            return [*map(address_of, sources), *map(_SIZE, sources), *map(_is_contiguous, sources)] == self._where
        except (RuntimeError, NotImplementedError):  # there are tensors that lie nowhere, and this may be one by now
            return False

    def make_if_fit(self) -> bool:
        """What `make` does, if they are quick and fit."""
        if not self.fit():
            return False
        self.make_now()
        return True

    def make(self, done: tuple[int, ...] = ()) -> list[int]:
        """Copy all but those that are `done`, by their numbers, if there are any; autograd is not told.

        Returns which have no memory now, as sharded training leaves parameters.
        """
        table = self._table if self._others or not done else self._table_without(done)
        if table and self._kernels:
            self._kernels.copy_all(table.buffer_info()[0], len(table) // _FIELDS)
        if not self._others:
            return []
        # torch would read memory that was given back all the same.
        gone = [number for number, source, _ in self._others if source.is_cpu and source.numel() and is_gone(source)]
        others = [(source.detach(), target) for number, source, target in self._others if number not in gone]
        if others:
            with torch.no_grad():
                torch._foreach_copy_([target for _, target in others], [source for source, _ in others])
        return gone

    def _table_without(self, done: tuple[int, ...]) -> array[int]:
        """That of the last time is kept: most steps are alike."""
        if self._shorter[0] != done:
            left = [place for number, place in enumerate(self._table) if number // _FIELDS not in done]
            self._shorter = done, array("q", left)
        return self._shorter[1]


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


def _nothing() -> None:
    pass


def _where(tensors: list[Tensor]) -> list[int]:
    return [*map(address_of, tensors), *map(_SIZE, tensors), *map(_is_contiguous, tensors)]
