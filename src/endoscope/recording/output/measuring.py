"""From held tensors to numbers: everything of a recorded step is measured in one call, then let go.

    entries, parameters, buffers ─► rows (one per tensor: value, gradient of each loss, parameter, update)
          ─► stats.measure ─► raw values of chosen samples ─► Package, without a single tensor

Where a step is large and certain to be recorded, what is complete is measured as it comes (`Stream`), so that it need
not be held until the end.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from endoscope.capture.record.parts import here, is_distributed
from endoscope.capture.record.regions import version_of
from endoscope.recording.hooks.captured import Captured
from endoscope.recording.hooks.entries import Entry, dim_of
from endoscope.recording.hooks.gradients import Found
from endoscope.recording.hooks.modes import quiet
from endoscope.recording.output.meter import Meter, Name, Row, at_hand
from endoscope.recording.output.spectra import spectra_of
from endoscope.recording.ranks.relations import is_part
from endoscope.recording.ranks.specs import Spec, is_summand, spec_of
from endoscope.schema.recording import GRADIENT, OF_THIS_RANK, USED, GapRecord, Key
from endoscope.stats import Measured

if TYPE_CHECKING:
    from endoscope.recording.structure.learned import Structure

_UNSEEN_WRITE = "the tensor was overwritten by code that could not be seen; the next recorded step is traced"
NOT_OF_THIS_RANK = (
    "for parameters that are divided among processes, the gradient of one process before reduction is not available; "
    "`gradient` is what the optimizer uses"
)
NO_SUM = (
    "when the optimizer begins, each process has only its own summand, recorded as `local_gradient`. To record the "
    "sum, add the summands up before optimizer.step(): p.grad = p.grad.redistribute(placements=p.placements)"
)
NO_PARTS = "for parameters of fully_shard, the gradients of single losses are not available; `gradient` is their sum"
NO_NORM = (
    "the norm before clipping is divided among processes; report it yourself, in all of them: "
    "run.metric('norm', norm.full_tensor())"
)
NO_SPECTRUM = "singular values: each process has only a part of this matrix"
_LARGE = 65_536  # elements: below, measuring a tensor twice is cheaper than finding out that it has two names


@dataclass(slots=True)
class Package:
    """What the writer gets of one step: names and numbers only."""

    keys: list[Key]
    measured: Measured
    raw: list[tuple[int, Any, list[int] | None]] = field(default_factory=list)  # row, values, samples
    raw_bytes: int = 0
    too_large: list[GapRecord] = field(default_factory=list)  # for raw values; said once
    left_out: list[GapRecord] = field(default_factory=list)  # the same for what cannot be had at any step
    gaps: list[GapRecord] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        return self.raw_bytes + 512 * len(self.keys)


def measure_step(captured: Captured, structure: Structure, meter: Meter, skipped: bool = False) -> Package:
    """Runs on the training thread, so that nothing is held any longer; autograd and our own modes are off."""
    captured.names.refresh_buffers()
    with quiet(), torch.no_grad():
        if captured.names.relations is not None:
            captured.names.relations.look(captured.names)
        rows = _rows(captured, structure, skipped)
        extra = {
            "no_gradient": [] if skipped else _without_gradient(captured),
            "exchanged": captured.names.exchanged,
            "cosines": _cosines(captured, rows),
            "not_cleared": _not_cleared(captured),
            "clipping": _clipping(captured),
        }
        if captured.wants_spectra:
            whole = [r for r in rows.found if r.minus is None and not is_part(r.placement)]
            extra["spectra"] = spectra_of((r.name, r.of, r.tensor) for r in whole)
            rows.gaps += [GapRecord(r.name.node, r.of, NO_SPECTRUM) for r in rows.found if is_part(r.placement)]
        meter.measure(rows.found)
        measured = meter.finish()
        sources = captured.learned.sources
        keys = [_key(name, of, shape, dtype, dim, sources.get((name.node, name.role, name.kind), ""), placement)
                for name, of, shape, dtype, dim, placement in meter.keys]  # fmt: skip
        raw = meter.raw
        too_large = [GapRecord(keys[n].node, keys[n].of, f"raw values: {why}") for n, why in raw.left_out]
        left_out = [*captured.refused, *_of_this_rank_missing(captured)]
        left_out += [GapRecord(keys[n].node, keys[n].of, note) for n, note in measured.notes]
        return Package(
            keys=keys, measured=measured, raw=raw.found, raw_bytes=raw.bytes, too_large=too_large, left_out=left_out,
            gaps=rows.gaps,
            extra={name: value for name, value in extra.items() if value},
        )  # fmt: skip


class Rows:
    """What there is of every captured tensor: rows that are to be measured, and gaps."""

    def __init__(self, captured: Captured) -> None:
        self._captured = captured
        self._relations = captured.names.relations
        self._places: dict[tuple[int, str, int | None], int] = {}  # tensor, of what, batch -> row
        self.found: list[Row] = []
        self.gaps: list[GapRecord] = []

    # ---- captured tensors ------------------------------------------------------------------------

    def add_entry(self, entry: Entry, *, is_copy: bool) -> None:
        captured, root = self._captured, entry.same or entry
        name = Name(entry.node, entry.role, entry.pass_, entry.kind, entry.module)
        dim = dim_of(entry, captured.names.batch_dim)
        if entry.row < 0:
            tensor = captured.value(entry)
            if tensor is None:
                self.gaps.append(GapRecord(entry.node, "value", _UNSEEN_WRITE))
                captured.learned.trace_next()
                captured.learned.overwritten.add((entry.node, entry.role))
            else:
                self._add(name, "value", tensor, dim, root, captured.placement(entry, is_copy=is_copy))
        for loss, (gradient, version) in (root.gradients or {}).items():
            if version >= 0 and version_of(gradient) != version:
                self.gaps.append(
                    GapRecord(entry.node, GRADIENT + loss, "the gradient was overwritten after it was computed")
                )
            else:
                placement = captured.placement(entry, gradient, is_copy=is_copy)
                self._add(name, GRADIENT + loss, gradient, dim, root, placement)

    def _add(self, name: Name, of: str, tensor: Tensor, dim: int | None, root: Entry, placement: str) -> None:
        same = None
        if tensor.numel() >= _LARGE:
            place = id(root), of, dim
            same = self._places.setdefault(place, len(self.found))
            same = None if same == len(self.found) else same
        self.found.append(Row(name, of, tensor, dim, None, same, placement))

    # ---- parameters and buffers ------------------------------------------------------------------

    def add_parameters(self, structure: Structure, skipped: bool) -> None:
        captured = self._captured
        wanted = {item.node for item in structure.items}
        named, values = captured.names.parameters, captured.parameters
        gradients: dict[int, list[Found]] = {}
        for one in captured.gradients.of_parameters(skipped):
            gradients.setdefault(one.position, []).append(one)
        for position, (node, parameter) in enumerate(named):
            if node not in wanted:
                continue
            name = Name(node, "", 1, "parameter", node.rpartition(".")[0])
            value = values.value(position)
            if value is None:
                self.gaps.append(GapRecord(node, "parameter", _UNSEEN_WRITE))
                captured.learned.written_parameters.add(position)
            else:
                self._add_parameter(name, "parameter", value, parameter)
            before = values.before.get(position)
            if before is not None:  # the update is formed while both are read
                self._add_parameter(name, "update", parameter, parameter, minus=before)
            for one in gradients.get(position, ()):
                of = one.of
                if of == USED and is_summand(one.spec):
                    of = OF_THIS_RANK
                    captured.refused.append(GapRecord(node, USED, NO_SUM))
                self._add_parameter(name._replace(pass_=one.pass_), of, one.tensor, parameter, spec=one.spec)
        for position in captured.gradients.lost:
            reason = "the gradient was overwritten before it could be read"
            self.gaps.append(GapRecord(named[position][0], GRADIENT.rstrip(":"), reason))
        for node, buffer in captured.names.buffers:
            if node in wanted:
                name = Name(node, "", 1, "buffer", node.rpartition(".")[0])
                placement = "" if self._relations is None else self._relations.of_buffer()
                self.found.append(Row(name, "value", buffer, None, None, None, placement))

    def _add_parameter(
        self, name: Name, of: str, tensor: Tensor, parameter: Tensor, *, minus: Tensor | None = None,
        spec: Spec | None = None,
    ) -> None:  # fmt: skip
        placement = ""
        if self._relations is not None:
            is_local = of == OF_THIS_RANK or of.startswith(GRADIENT)
            found = spec if of != "update" and of != "parameter" else spec_of(parameter)
            placement = self._relations.of_parameter(parameter, found, is_local=is_local)
        self.found.append(Row(name, of, tensor, None, minus, None, placement))


def batch_size(captured: Captured) -> int:
    """Of the first model call of the step, or else of the first tensor that was tagged; 0 if there was none."""
    return captured.first_batch or captured.tagged_batch


@lru_cache(8192)  # most are the same at every step
def _key(name: Name, of: str, shape: tuple[int, ...], dtype: str, batch_dim: int, source: str, placement: str) -> Key:
    return Key(
        node=name.node, role=name.role, pass_=name.pass_, of=of, kind=name.kind, shape=shape, dtype=dtype,
        batch_dim=batch_dim, module=name.module, source=source,
        placement=placement,
    )  # fmt: skip


# ---- about the whole step ------------------------------------------------------------------------


def _without_gradient(captured: Captured) -> list[str]:
    """Parameters that could learn and got nothing: no gradient is not a gradient of zero."""
    if not captured.gradients.passes:
        return []
    reached = captured.gradients.reached()
    named, moved = enumerate(captured.names.parameters), captured.moved
    meant = [(place, name) for place, (name, p) in named if p.requires_grad and (place in moved or not moved)]
    return [name for place, name in meant if place not in reached]


def _clipping(captured: Captured) -> list[dict[str, float]]:
    """Norm and limit of each call that clips."""
    found = []
    for norm, limit in captured.gradients.clipping:
        if is_distributed(norm) and not all(placement.is_replicate() for placement in norm.placements):
            captured.refused.append(GapRecord("", "clipping", NO_NORM))  # nobody may be asked for the other parts here
        else:
            found.append({"norm": float(here(norm)), "limit": float(limit)})
    return found


def _of_this_rank_missing(captured: Captured) -> list[GapRecord]:
    """What this process alone has computed for parameters of which it has a part."""
    if captured.names.relations is None or not any(map(is_distributed, captured.names.tensors)):
        return []
    found = [GapRecord("", OF_THIS_RANK, NOT_OF_THIS_RANK)]
    if captured.gradients.apart and captured.names.sharded:
        found += [GapRecord("", GRADIENT + name, NO_PARTS) for name in captured.gradients.names]
    return found


def _not_cleared(captured: Captured) -> dict[str, float]:
    """The norm of what was in `.grad` before the step, by parameter."""
    left, moved = captured.gradients.left_over(), captured.moved
    names = captured.names.parameters
    return {names[place][0]: float(here(g).norm()) for place, g in left.items() if place in moved or not moved}


def _cosines(captured: Captured, rows: Rows) -> list[list[Any]]:
    """Node, role, pass, two losses, and the cosine between their gradients there."""
    if len(captured.gradients.names) < 2:
        return []
    by_name: dict[Name, dict[str, Tensor]] = {}
    for row in rows.found:
        if row.of.startswith(GRADIENT) and not is_part(row.placement):
            by_name.setdefault(row.name, {})[row.of.removeprefix(GRADIENT)] = row.tensor
    names: list[list[Any]] = []
    numbers: list[Tensor] = []
    for name, found in by_name.items():
        for a, b in itertools.combinations(found, 2):
            one, other = here(found[a]), here(found[b])
            if one.is_sparse or other.is_sparse or one.numel() == 0:
                continue
            one, other = _flat(one), _flat(other)
            names.append([name.node, name.role, name.pass_, a, b])
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


def all_rows(captured: Captured, structure: Structure, skipped: bool = False) -> list[Row]:
    """Everything of a step that would be recorded; nothing is measured yet."""
    return _rows(captured, structure, skipped).found


def _rows(captured: Captured, structure: Structure, skipped: bool) -> Rows:
    rows = Rows(captured)
    rows.add_parameters(structure, skipped)
    for number, entry in enumerate(captured.entries):
        if structure.chosen[number]:
            rows.add_entry(entry, is_copy=number in structure.copies)
    rows.found = list(map(at_hand, rows.found))
    return rows
