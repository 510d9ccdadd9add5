"""From held tensors to numbers: everything of a kept step is measured at once, then let go.

items ─► rows (one per tensor: value, gradient of each loss, parameter, update)
      ─► stats.measure ─► raw values of chosen samples ─► Package, without a single tensor
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from endoscope.recording.capture import Capture
from endoscope.recording.raw import Keep, RawCollector
from endoscope.recording.structure import Item, shape_of
from endoscope.schema.recording import GRADIENT, NO_BATCH, GapRecord, Key
from endoscope.stats import Measured, Request, joined, measure


class Row(NamedTuple):
    """One tensor that is about to be measured."""

    item: Item
    of: str
    tensor: Tensor
    batch_dim: int | None


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


def measure_step(capture: Capture, items: list[Item], samples: Sequence[int], keep: Keep, spent: int) -> Package:
    """Runs on the training thread, so that nothing is held any longer; autograd and our own ear are off."""
    with torch.no_grad(), torch._C.DisableTorchFunction():
        gaps: list[GapRecord] = []
        rows = _rows(capture, items, gaps)
        for slot in capture.gradients.lost:
            reason = "the gradient was overwritten by code that could not be heard"
            gaps.append(GapRecord(capture.parameters.named[-1 - slot][0], GRADIENT.rstrip(":"), reason))
        raw = RawCollector(keep, spent, samples)
        measured = _measure(rows, raw, 0)
        updates = _updates(capture, items)
        if updates:
            measured = joined(measured, _measure(updates, raw, len(rows)))
            rows += updates
        left_out = capture.not_held() + [
            GapRecord(rows[n].item.node, rows[n].of, f"raw values: {why}") for n, why in raw.left_out
        ]
        extra = {"no_gradient": _without_gradient(capture), "cosines": _cosines(capture, items)}
        return Package(
            keys=[_key(row) for row in rows], measured=measured, raw=raw.found, raw_bytes=raw.bytes,
            left_out=left_out, gaps=gaps, extra={name: value for name, value in extra.items() if value},
        )  # fmt: skip


def _measure(rows: list[Row], raw: RawCollector, first: int) -> Measured:
    measured = measure([Request(row.tensor, row.batch_dim) for row in rows])
    refused = {number for number, _ in measured.gaps}
    for number, row in enumerate(rows):
        if number not in refused:
            raw.add(first + number, row.tensor, row.batch_dim)
    return measured


def batch_size(capture: Capture) -> int:
    """Of the first model call of the step, or else of the first tensor that was tagged; 0 if there was none."""
    sizes = Batches(capture)
    return sizes.first or _tagged_batch(capture)


def _tagged_batch(capture: Capture) -> int:
    recorder = capture.recorder
    for held in recorder.holder.entries:
        tensor, dim = recorder.kept.get(held.slot), held.batch_dim
        if held.call < 0 and tensor is not None and dim is not None and 0 <= dim < tensor.dim():
            if shape_of(tensor)[dim] > 0:
                return shape_of(tensor)[dim]
    return 0


class Batches:
    """The number of samples in every call of a model."""

    def __init__(self, capture: Capture) -> None:
        self._entries = capture.recorder.calls.entries
        self._sizes: dict[int, int] = {}
        dims = {id(watch.module): watch.batch_dim for watch in capture.watches}
        for number, call in enumerate(self._entries):
            if call.root:
                dim = dims.get(id(call.module), 0)
                self._sizes[number] = self._of_inputs(capture, call.entered, dim)
        self.first = next((size for size in self._sizes.values() if size), 0)
        self._dim = next(iter(dims.values()), 0)

    def _of_inputs(self, capture: Capture, slots: list[int], dim: int | None) -> int:
        for slot in slots:
            tensor = capture.recorder.kept.get(slot)
            if dim is not None and tensor is not None and tensor.dim() > dim:
                return max(shape_of(tensor)[dim], 0)
        return 0

    def dim_for(self, tensor: Tensor, item: Item, call: int) -> int | None:
        """The dimension along which the samples lie, if there is one."""
        if item.batch_dim is not None:
            return item.batch_dim if 0 <= item.batch_dim < tensor.dim() else None
        dim = self._dim
        size = self._size_around(call)
        if dim is not None and tensor.dim() > dim and size and shape_of(tensor)[dim] == size:
            return dim
        return None

    def _size_around(self, call: int) -> int:
        while call >= 0:
            if call in self._sizes:
                return self._sizes[call]
            call = self._entries[call].parent
        return self.first


def _rows(capture: Capture, items: list[Item], gaps: list[GapRecord]) -> list[Row]:
    recorder, parameters, gradients = capture.recorder, capture.parameters, capture.gradients
    batches = Batches(capture)
    buffers = dict(parameters.buffers)
    rows: list[Row] = []
    for item in items:
        if item.kind == "parameter":
            position = -1 - item.slot
            if parameters.changed_unheard(position):
                reason = "it was overwritten by code that could not be heard"
                gaps.append(GapRecord(item.node, "parameter", reason))
            else:
                rows.append(Row(item, "parameter", parameters.value(position), None))
            dim = None
        elif item.kind == "buffer":
            rows.append(Row(item, "value", buffers[item.node].detach(), None))
            continue
        else:
            tensor = _value(capture, item.slot)
            if tensor is None:
                gaps.append(GapRecord(item.node, "value", "the tensor was overwritten by code that could not be heard"))
                continue
            dim = batches.dim_for(tensor, item, recorder.nodes[recorder.slot_node[item.slot]][12])
            rows.append(Row(item, "value", tensor, dim))
        for loss in gradients.losses:
            gradient = gradients.total(item.slot, loss)
            if gradient is not None:
                rows.append(Row(item, GRADIENT + loss, gradient, dim))
    return rows


def _updates(capture: Capture, items: list[Item]) -> list[Row]:
    """What optimizers added. The copies made before become the differences, in place: fresh memory would be dearer."""
    parameters = capture.parameters
    moved = [item for item in items if item.kind == "parameter" and -1 - item.slot in parameters.before]
    if not moved:
        return []
    now = [parameters.named[-1 - item.slot][1].detach() for item in moved]
    differences = [parameters.before[-1 - item.slot] for item in moved]
    for before, after in zip(differences, now, strict=True):
        torch.sub(after, before, out=before)
    return [Row(item, "update", tensor, None) for item, tensor in zip(moved, differences, strict=True)]


def _value(capture: Capture, slot: int) -> Tensor | None:
    """What is held, if it still is what it was."""
    recorder = capture.recorder
    tensor = recorder.kept.get(slot)
    version = recorder.kept_versions.get(slot, -1)
    if tensor is None or (version >= 0 and not recorder.aliasing.explains(tensor, version)):
        return None
    return tensor.detach()


def _key(row: Row) -> Key:
    item, tensor = row.item, row.tensor
    return Key(
        node=item.node, role=item.role, pass_=item.pass_, of=row.of, kind=item.kind, shape=tuple(shape_of(tensor)),
        dtype=str(tensor.dtype).removeprefix("torch."), batch_dim=NO_BATCH if row.batch_dim is None else row.batch_dim,
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
