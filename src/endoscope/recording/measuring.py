"""From held tensors to numbers: everything of a kept step is measured at once, then let go.

items ─► rows (one per tensor: value, gradient of each loss, parameter, update)
      ─► stats.measure ─► raw values of chosen samples ─► Package, without a single tensor
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

import torch
from torch import Tensor

from endoscope.recording.capture import Capture
from endoscope.recording.courses import SHARED_FROM, Rows
from endoscope.recording.meter import Meter, measure_and_keep
from endoscope.recording.raw import RawCollector
from endoscope.recording.spectra import spectra_of
from endoscope.recording.structure import Item, Script, Structure, size_of
from endoscope.schema.recording import GRADIENT, NO_BATCH, GapRecord, Key
from endoscope.stats import Measured, Request, begin, chosen, joined, together

MOST_SCRIPTS = 4  # of one structure: batches have few sizes


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


def measure_step(capture: Capture, structure: Structure, raw: RawCollector) -> Package:
    """Runs on the training thread, so that nothing is held any longer; autograd and our own ear are off."""
    items = structure.items
    with torch.no_grad(), torch._C.DisableTorchFunction():
        found = _Found(capture)
        script = found.found_again(structure) or found.looked_for(structure)
        extra = {"no_gradient": _without_gradient(capture), "cosines": _cosines(capture, items)}
        if capture.wants_spectra:
            extra["spectra"] = spectra_of((row.item, row.of, row.tensor) for row in found.rows if row.minus is None)
        measured = _measured(capture.meter, found.rows, script, raw)
        if script.order is not None:
            raw.move(script.order)
            measured = chosen(measured, script.order)
        keys = script.keys
        left_out = capture.not_held()
        left_out += [GapRecord(keys[n].node, keys[n].of, f"raw values: {why}") for n, why in raw.left_out]
        left_out += [GapRecord(keys[n].node, keys[n].of, note) for n, note in measured.notes]
        return Package(
            keys=keys, measured=measured, raw=raw.found, raw_bytes=raw.bytes,
            left_out=left_out, gaps=found.gaps, extra={name: value for name, value in extra.items() if value},
        )  # fmt: skip


def _measured(meter: Meter | None, rows: list[Row], script: Script, raw: RawCollector) -> Measured:
    """All rows of a step: those of the meter, and then those that are there at the end."""
    count = 0 if meter is None else meter.count
    requests = [Request(row.tensor, row.batch_dim, minus=row.minus, same_as=same) for row, same in _with(rows, script)]
    progress = meter.progress if meter is not None else begin(script.plan) if script.plan is not None else None
    if progress is None or progress.plan is not script.plan or not progress.take(count, requests):
        return _worked_out(meter, requests, script, raw)
    progress.run(count + len(requests), requests if meter is None else (meter.last, requests))
    if raw.wants:
        if meter is not None:
            meter.keep_raw(meter.last)
        for number, request in enumerate(requests, count):
            raw.add(number, request.tensor, request.batch_dim, request.minus)
    return joined([progress.finish()])


def _with(rows: list[Row], script: Script) -> Iterable[tuple[Row, int | None]]:
    return zip(rows, script.same, strict=True)


def _worked_out(meter: Meter | None, requests: list[Request], script: Script, raw: RawCollector) -> Measured:
    """The same for a step that is not quite like an earlier one; the next one may be like it."""
    parts, waiting = ([], []) if meter is None else meter.given_up()
    first = len(waiting)
    for request in requests:
        waiting.append(request if request.same_as is None else request._replace(same_as=first + request.same_as))
    count = 0 if meter is None else meter.count
    parts = [*parts, measure_and_keep(waiting, raw, count - first)]
    script.plan = together([part.plan for part in parts])
    if meter is not None:
        meter.course.plan = script.plan
    return joined(parts)


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

    @cached_property
    def _measured(self) -> Rows:
        return {} if self._meter is None else self._meter.course.rows_of_names()

    def gap(self, node: str, of: str, reason: str) -> None:
        self.gaps.append(GapRecord(node, of, reason))

    # ---- a step that is built like an earlier one ------------------------------------------------

    def found_again(self, structure: Structure) -> Script | None:
        """The rows of an earlier step, with the tensors of this one; None if they differ."""
        script = structure.scripts.get(self._signature())
        if script is None:
            return None
        rows = []
        for item, of, batch_dim, about in script.rows:
            tensor = self._tensor(item, of)
            if tensor is None or tensor.dtype is not about[1] or size_of(tensor) != about[0]:
                return None
            minus = self._capture.parameters.before[-1 - item.slot] if of == "update" else None
            rows.append(Row(item, of, tensor, batch_dim, minus))
        self.rows = rows
        return script

    def _signature(self) -> Any:
        """What decides which rows there are, besides the structure of the step; None if there may be gaps."""
        capture, gradients = self._capture, self._capture.gradients
        course = None if self._meter is None else self._meter.course
        if gradients.lost or len(gradients.losses) > 1 or (self._meter is not None and self._meter.came_again):
            return None
        held = tuple(capture.recorder.kept)
        return course, capture.batches.sizes(), frozenset(gradients.found), tuple(capture.parameters.before), held

    def looked_for(self, structure: Structure) -> Script:
        """All rows of all items, and how they are written; kept for steps that are built like this one."""
        for item in structure.items:
            self.add(item)
        for slot in self._capture.gradients.lost:
            reason = "the gradient was overwritten by code that could not be heard"
            self.gap(self._capture.parameters.named[-1 - slot][0], GRADIENT.rstrip(":"), reason)
        measured = [] if self._meter is None else self._meter.course.about()
        about = [(size_of(row.tensor), row.tensor.dtype) for row in self.rows]
        keys = [(early.row, _key(early.item, early.of, *measured[early.row], early.batch_dim)) for early in self.early]
        for place, row in enumerate(self.rows, len(measured)):
            keys.append((place, _key(row.item, row.of, *about[place - len(measured)], row.batch_dim)))
        rows = [(row.item, row.of, row.batch_dim, kind) for row, kind in zip(self.rows, about, strict=True)]
        keys.sort(key=itemgetter(0))
        order = [place for place, _ in keys]
        complete = order == list(range(len(measured) + len(rows)))
        script = Script(rows, _same(self.rows), [key for _, key in keys], None if complete else order)
        signature = self._signature()
        if signature is not None and not self.gaps:
            if len(structure.scripts) >= MOST_SCRIPTS:
                structure.scripts.clear()
            structure.scripts[signature] = script
        return script

    # ---- any step --------------------------------------------------------------------------------

    def add(self, item: Item) -> None:
        dim = None
        if item.kind == "parameter":
            self._add_parameter(item)
        elif item.kind == "buffer":
            self._add_row(item, "value", None)
            return
        else:
            capture, slot = self._capture, item.slot
            names = self._measured.get((slot, "value"), ())
            if len(names) == 1:
                dim = names[0][0]
            elif (shape := capture.shape(slot)) is not None:
                call = capture.recorder.nodes[capture.recorder.slot_node[slot]][12]
                dim = capture.batches.dim_of(shape, item.batch_dim, call)
            if not self._take(item, "value", dim) and not self._add_row(item, "value", dim):
                self.gap(item.node, "value", "the tensor was overwritten by code that could not be heard")
                return
        self._add_gradients(item, dim)

    def _add_parameter(self, item: Item) -> None:
        if not self._add_row(item, "parameter", None):
            self.gap(item.node, "parameter", "it was overwritten by code that could not be heard")
        before = self._capture.parameters.before.get(-1 - item.slot)
        if before is not None:  # the update is formed while both are read, now that the copy is in the cache
            self._add_row(item, "update", None, before)

    def _add_gradients(self, item: Item, dim: int | None) -> None:
        for loss in self._capture.gradients.losses:
            of = GRADIENT + loss
            if self._meter is not None and (item.slot, of) in self._meter.came_again:
                self.gap(item.node, of, "two backward passes reached it, and only the first was measured")
            elif not self._take(item, of, dim):
                self._add_row(item, of, dim)

    def _add_row(self, item: Item, of: str, dim: int | None, minus: Tensor | None = None) -> bool:
        tensor = self._tensor(item, of)
        if tensor is not None:
            self.rows.append(Row(item, of, tensor, dim, minus))
        return tensor is not None

    def _tensor(self, item: Item, of: str) -> Tensor | None:
        """What is to be measured of an item, if it is there and is still what it was."""
        capture = self._capture
        if of == "parameter":
            changed = capture.parameters.changed_unheard(-1 - item.slot)
            return None if changed else capture.parameters.value(-1 - item.slot)
        if of == "update":
            return capture.parameters.named[-1 - item.slot][1]
        if of != "value":
            return capture.gradients.total(item.slot, of.removeprefix(GRADIENT))
        if item.kind == "buffer":
            return self._buffers[item.node]
        return capture.recorder.held(item.slot)

    def _take(self, item: Item, of: str, dim: int | None) -> bool:
        """Whether it was measured early; of a tensor with several names each name has a row."""
        names = self._measured.get((item.slot, of))
        if not names or item.slot < 0:
            return False
        mine = [number for number, (batch_dim, _) in enumerate(names) if batch_dim == dim]
        if not mine:
            return False
        row = names.pop(mine[0])[1] if len(mine) > 1 else names[mine[0]][1]
        self.early.append(Early(item, of, dim, row))
        return True


def _same(rows: list[Row]) -> list[int | None]:
    """For each row an earlier one that is the same: a module that hands on what another one returned is another name
    for the same tensor."""
    known: dict[tuple[int, str, int | None], int] = {}
    same: list[int | None] = []
    for place, row in enumerate(rows):
        is_large = row.item.slot >= 0 and row.tensor.numel() >= SHARED_FROM
        first = known.setdefault((row.item.slot, row.of, row.batch_dim), place) if is_large else place
        same.append(first if first < place else None)
    return same


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
