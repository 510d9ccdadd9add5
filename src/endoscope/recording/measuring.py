"""From held tensors to numbers: everything of a kept step is measured at once, then let go.

items ─► rows (one per tensor: value, gradient of each loss, parameter, update)
      ─► stats.measure ─► raw values of chosen samples ─► Package, without a single tensor
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

import torch
from torch import Tensor

from endoscope.recording.capture import Capture
from endoscope.recording.meter import SHARED_FROM, About, measure_and_keep
from endoscope.recording.raw import RawCollector
from endoscope.recording.spectra import spectra_of
from endoscope.recording.structure import Item, size_of
from endoscope.schema.recording import GRADIENT, NO_BATCH, GapRecord, Key
from endoscope.stats import Measured, Request, chosen, joined


class Row(NamedTuple):
    """One tensor that is about to be measured."""

    item: Item
    of: str
    tensor: Tensor
    batch_dim: int | None
    minus: Tensor | None = None  # what is subtracted


class Early(NamedTuple):
    """One tensor that was measured while the step ran."""

    item: Item
    of: str
    batch_dim: int | None
    row: int


@dataclass(slots=True)
class Package:
    """What the writer gets of one step: names and numbers only."""

    keys: list[Key]
    measured: Measured
    raw: list[tuple[int, Any, list[int] | None]] = field(default_factory=list)  # row, values, samples
    raw_bytes: int = 0
    left_out: list[GapRecord] = field(default_factory=list)
    gaps: list[GapRecord] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        return self.raw_bytes + 512 * len(self.keys)


def measure_step(capture: Capture, items: list[Item], raw: RawCollector) -> Package:
    """Runs on the training thread, so that nothing is held any longer; autograd and our own ear are off."""
    with torch.no_grad(), torch._C.DisableTorchFunction():
        found = _Found(capture)
        for item in items:
            found.add(item)
        for slot in capture.gradients.lost:
            reason = "the gradient was overwritten by code that could not be heard"
            found.gap(capture.parameters.named[-1 - slot][0], GRADIENT.rstrip(":"), reason)
        extra = {"no_gradient": _without_gradient(capture), "cosines": _cosines(capture, items)}
        if capture.wants_spectra:
            extra["spectra"] = spectra_of((row.item, row.of, row.tensor) for row in found.rows if row.minus is None)
        rows, places = _shared(found.rows)
        measured_before, about, last = found.from_meter()
        requests = [*last, *[Request(row.tensor, row.batch_dim, minus=row.minus) for row in rows]]
        measured = joined([*measured_before, measure_and_keep(requests, raw, len(about) - len(last))])
        keys = [_key(early.item, early.of, *about[early.row], early.batch_dim) for early in found.early]
        for item, place in places:
            row = rows[place]
            keys.append(_key(item, row.of, size_of(row.tensor), row.tensor.dtype, row.batch_dim))
        order = [*[early.row for early in found.early], *[len(about) + place for _, place in places]]
        if sorted(order) == list(range(len(about) + len(rows))):  # one name for each row
            keys = [key for _, key in sorted(zip(order, keys, strict=True), key=itemgetter(0))]
        else:
            raw.move(order)
            measured = chosen(measured, order)
        left_out = capture.not_held()
        left_out += [GapRecord(keys[n].node, keys[n].of, f"raw values: {why}") for n, why in raw.left_out]
        left_out += [GapRecord(keys[n].node, keys[n].of, note) for n, note in measured.notes]
        return Package(
            keys=keys, measured=measured, raw=raw.found, raw_bytes=raw.bytes,
            left_out=left_out, gaps=found.gaps, extra={name: value for name, value in extra.items() if value},
        )  # fmt: skip


def rows_of(capture: Capture, items: list[Item]) -> list[Row]:
    """What there is now of some items, to be looked at; nothing is measured yet."""
    found = _Found(capture)
    for item in items:
        found.add(item)
    return found.rows


def batch_size(capture: Capture) -> int:
    """Of the first model call of the step, or else of the first tensor that was tagged; 0 if there was none."""
    return capture.batches.first or _tagged_batch(capture)


def _tagged_batch(capture: Capture) -> int:
    for held in capture.recorder.holder.entries:
        shape, dim = capture.shape(held.slot), held.batch_dim
        if held.call < 0 and shape is not None and dim is not None and 0 <= dim < len(shape) and shape[dim] > 0:
            return shape[dim]
    return 0


class _Found:
    """What there is of every item: rows that are to be measured, rows that have been, and gaps."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._meter = capture.meter
        self._buffers = dict(capture.parameters.buffers)
        self.rows: list[Row] = []
        self.early: list[Early] = []
        self.gaps: list[GapRecord] = []

    def gap(self, node: str, of: str, reason: str) -> None:
        self.gaps.append(GapRecord(node, of, reason))

    def add(self, item: Item) -> None:
        dim = None
        if item.kind == "parameter":
            self._add_parameter(item)
        elif item.kind == "buffer":
            self.rows.append(Row(item, "value", self._buffers[item.node].detach(), None))
            return
        else:
            capture, slot = self._capture, item.slot
            names = () if self._meter is None else self._meter.rows.get((slot, "value"), ())
            if len(names) == 1:
                dim = names[0][0]
            elif (shape := capture.shape(slot)) is not None:
                call = capture.recorder.nodes[capture.recorder.slot_node[slot]][12]
                dim = capture.batches.dim_of(shape, item.batch_dim, call)
            if not self._take(item, "value", dim):
                tensor = capture.recorder.held_value(slot)
                if tensor is None:
                    self.gap(item.node, "value", "the tensor was overwritten by code that could not be heard")
                    return
                self.rows.append(Row(item, "value", tensor, dim))
        self._add_gradients(item, dim)

    def _add_parameter(self, item: Item) -> None:
        parameters, position = self._capture.parameters, -1 - item.slot
        if parameters.changed_unheard(position):
            self.gap(item.node, "parameter", "it was overwritten by code that could not be heard")
        else:
            self.rows.append(Row(item, "parameter", parameters.value(position), None))
        before = parameters.before.get(position)
        if before is not None:  # the update is formed while both are read, now that the copy is in the cache
            self.rows.append(Row(item, "update", parameters.named[position][1].detach(), None, before))

    def _add_gradients(self, item: Item, dim: int | None) -> None:
        gradients = self._capture.gradients
        for loss in gradients.losses:
            of = GRADIENT + loss
            if self._meter is not None and (item.slot, of) in self._meter.came_again:
                self.gap(item.node, of, "two backward passes reached it, and only the first was measured")
            elif not self._take(item, of, dim):
                gradient = gradients.total(item.slot, loss)
                if gradient is not None:
                    self.rows.append(Row(item, of, gradient, dim))

    def _take(self, item: Item, of: str, dim: int | None) -> bool:
        """Whether it was measured early; of a tensor with several names each name has a row."""
        if self._meter is None or item.slot < 0:
            return False
        names = self._meter.rows.get((item.slot, of))
        if not names:
            return False
        mine = [number for number, (batch_dim, _) in enumerate(names) if batch_dim == dim]
        if not mine:
            return False
        row = names.pop(mine[0])[1] if len(mine) > 1 else names[mine[0]][1]
        self.early.append(Early(item, of, dim, row))
        return True

    def from_meter(self) -> tuple[list[Measured], list[About], list[Request]]:
        """What is measured already, shapes and types of all rows of the meter, and what the last of them are of."""
        meter = self._meter
        return ([], [], []) if meter is None else (meter.parts, meter.about, meter.last)


def _shared(rows: list[Row]) -> tuple[list[Row], list[tuple[Item, int]]]:
    """The rows that have to be measured, and for each row that was wanted its item and the place of its measurement.

    A module that hands on what another one returned is another name for the same tensor.
    """
    needed: list[Row] = []
    known: dict[tuple[int, str, int | None], int] = {}
    places: list[tuple[Item, int]] = []
    for row in rows:
        if row.item.slot >= 0 and row.tensor.numel() >= SHARED_FROM:
            place = known.setdefault((row.item.slot, row.of, row.batch_dim), len(needed))
        else:
            place = len(needed)
        if place == len(needed):
            needed.append(row)
        places.append((row.item, place))
    return needed, places


@lru_cache(8192)  # most are the same at every step
def _key(item: Item, of: str, shape: tuple[int, ...], dtype: torch.dtype, batch_dim: int | None) -> Key:
    return Key(
        node=item.node, role=item.role, pass_=item.pass_, of=of, kind=item.kind, shape=tuple(shape),
        dtype=str(dtype).removeprefix("torch."), batch_dim=NO_BATCH if batch_dim is None else batch_dim,
        module=item.module, source=item.source,
    )  # fmt: skip


def _without_gradient(capture: Capture) -> list[str]:
    """Parameters that could learn and got nothing: no gradient is not a gradient of zero."""
    gradients = capture.gradients
    if not gradients.losses:
        return []
    reached = {slot for slot, _ in gradients.found} | set(gradients.lost)
    named = enumerate(capture.parameters.named)
    return [name for position, (name, p) in named if p.requires_grad and -1 - position not in reached]


def _cosines(capture: Capture, items: list[Item]) -> list[list[Any]]:
    """Node, role, pass, two losses, and the cosine between their gradients there."""
    gradients = capture.gradients
    names: list[list[Any]] = []
    numbers: list[Tensor] = []
    for a, b in itertools.combinations(gradients.losses, 2):
        for item in items:
            one, other = gradients.total(item.slot, a), gradients.total(item.slot, b)
            if one is None or other is None or one.is_sparse or other.is_sparse or one.numel() == 0:
                continue
            one, other = _flat(one), _flat(other)
            names.append([item.node, item.role, item.pass_, a, b])
            numbers.append(torch.dot(one, other) / (one.norm() * other.norm()))
    if not numbers:
        return []
    values = torch.stack([n.to(torch.float64).cpu() for n in numbers]).tolist()  # one synchronisation for all
    return [[*name, value] for name, value in zip(names, values, strict=True) if value == value]


def _flat(gradient: Tensor) -> Tensor:
    """As one row of real numbers."""
    if gradient.is_complex():
        gradient = torch.view_as_real(gradient.resolve_conj())
    return gradient.to(torch.float64 if gradient.dtype is torch.float64 else torch.float32).flatten()
