"""One tensor that is to be measured is a row; a meter measures rows, in one call or several.

Row(name, of, tensor) ─► Meter.measure ─► endoscope.stats ─► finish: all numbers, in the order of the rows
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from endoscope.capture.record.parts import PLAIN, here
from endoscope.recording.hooks.entries import size_of
from endoscope.recording.output.raw import RawCollector
from endoscope.schema.recording import NO_BATCH
from endoscope.stats import Answers, Measured, Request, joined, measure_part

_PLAIN_OR_NONE = (*PLAIN, type(None))


class Name(NamedTuple):
    """Whose tensor a row is about."""

    node: str
    role: str
    pass_: int
    kind: str
    module: str


class Row(NamedTuple):
    """One tensor that is to be measured."""

    name: Name
    of: str
    tensor: Tensor
    batch_dim: int | None
    minus: Tensor | None = None  # what is subtracted
    same_as: int | None = None  # an earlier row of the same call on the same tensor
    placement: str = ""  # what it is to the tensors of that name in other processes


class Meter:
    """Measures rows, in one call or several."""

    def __init__(self, raw: RawCollector, with_parts: bool = True) -> None:
        self.raw = raw
        self._with_parts = with_parts  # statistics of samples and units, too
        self.keys: list[tuple[Name, str, tuple[int, ...], str, int, str]] = []
        self._parts: list[Answers] = []

    def measure(self, rows: list[Row]) -> None:
        if not rows:
            return
        parts = self._with_parts
        requests = [Request(r.tensor, r.batch_dim, parts, parts, r.minus, r.same_as) for r in rows]
        self._parts.append(measure_part(requests))
        first = len(self.keys)
        for name, of, tensor, batch_dim, _, _, placement in rows:
            shape = size_of(tensor) if tensor.is_nested else tuple(tensor.shape)
            dim = NO_BATCH if batch_dim is None else batch_dim
            self.keys.append((name, of, shape, _dtype(tensor.dtype), dim, placement))
        if self.raw.wants:
            for number, row in enumerate(rows, first):
                self.raw.add(number, row.tensor, row.batch_dim, row.minus)

    def finish(self) -> Measured:
        return joined(self._parts or [measure_part([])])


def at_hand(row: Row) -> Row:
    """Of a distributed tensor, what is in this process."""
    if row.tensor.__class__ in PLAIN and row.minus.__class__ in _PLAIN_OR_NONE:
        return row
    return row._replace(tensor=here(row.tensor), minus=None if row.minus is None else here(row.minus))


@lru_cache(64)
def _dtype(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
