"""Which operations of a trace made NaN or infinity, and did not just pass it on.

    ends that are wrong ─► upwards, along what is wrong ─► an operation that reads nothing wrong: the producer
                                                        └► one that reads something wrong, and would be wrong without

Infinity that masks something for a softmax is no fault (`wrong_values.py`): if the softmax then finds nothing that is
left, the softmax is the producer of NaN.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor

from endoscope.capture.data.nodes import slots_of
from endoscope.capture.views.op import Op
from endoscope.capture.views.reads import named_reads
from endoscope.replay.again import results_with
from endoscope.replay.sample_maps import SampleMaps
from endoscope.replay.wrong_values import WrongValues, wrong_elements
from endoscope.schema.ops import Kind
from endoscope.schema.origin import NONFINITE, Operand, Origin

MOST_ORIGINS = 16
_MOST_SAMPLES_TRIED = 512


def forward_origins(values: WrongValues, maps: SampleMaps) -> list[Origin]:
    """The producers of what is wrong at the ends, in order of execution."""
    found = []
    for node in sorted(_reached(values)):
        op = values.trace.op_at(node)
        unwanted = values.unwanted_reads(node)
        if not unwanted:
            found.append(_origin(op, values, maps, None))
        elif own := _own_faults(op, values, maps, unwanted):
            found.append(_origin(op, values, maps, own))
        if len(found) == MOST_ORIGINS:
            break
    return found


def _reached(values: WrongValues) -> set[int]:
    """Nodes with something wrong that reaches an end: an output, or what nothing is computed from."""
    recorder = values.recorder
    waiting = [node for node in range(len(recorder.nodes)) if values.unwanted(node) and _is_end(values, node)]
    for node, source in recorder.sources.items():
        if source.kind is Kind.OUTPUT:
            waiting += [recorder.slot_node[slot] for slot in values.unwanted_reads(node)]
    reached: set[int] = set()
    while waiting:
        node = waiting.pop()
        if node not in reached:
            reached.add(node)
            waiting += [recorder.slot_node[slot] for slot in values.unwanted_reads(node)]
    return reached


def _is_end(values: WrongValues, node: int) -> bool:
    """Whether nothing is computed from it; a question such as `torch.isfinite` is no computation."""
    children = [child for child in values.trace.children[node] if child not in values.recorder.sources]
    return not any(values.tensor(slot) is not None for child in children for slot in values.slots(child))


def _own_faults(op: Op, values: WrongValues, maps: SampleMaps, unwanted: list[int]) -> dict[int, Tensor]:
    """Elements of samples that came in all right, and would be wrong if all others had, too: slot -> marks."""
    came = {sample for slot in unwanted for sample in _samples(values, maps, slot)}
    suspects = {s for slot in values.unwanted(op.node) for s in _samples(values, maps, slot)} - came
    if not suspects or not came:
        return {}
    others = {slot: _mended(value) for slot in unwanted if (value := values.tensor(slot)) is not None}
    with contextlib.suppress(Exception):  # what cannot be called again is taken for a mere victim
        again = results_with(op, others)
        look = torch.isnan if values.may_mask(op.node) else wrong_elements
        marks = {slot: look(new) for slot, new in zip(values.slots(op.node), again, strict=False)}
        return {slot: mark for slot, mark in marks.items() if bool(mark.any())}
    return {}


def _mended(value: Tensor) -> Tensor:
    """The same numbers, with a usual one in place of what is not finite."""
    wrong = wrong_elements(value)
    usual = value[~wrong].median() if not bool(wrong.all()) else torch.ones((), dtype=value.dtype)
    return torch.where(wrong, usual, value)


def _samples(values: WrongValues, maps: SampleMaps, slot: int) -> tuple[int, ...]:
    value = values.tensor(slot)
    return () if value is None else maps.of(slot, wrong_elements(value))


def _origin(op: Op, values: WrongValues, maps: SampleMaps, own: dict[int, Tensor] | None) -> Origin:
    slot = next(iter(own or values.unwanted(op.node)))
    value = values.tensor(slot)
    assert value is not None
    marks = own[slot] if own else wrong_elements(value)
    if not own and values.may_mask(op.node) and bool(torch.isnan(value).any()):
        marks = torch.isnan(value)  # what was masked on purpose is not its fault
    samples = maps.of(slot, marks) or _guilty(op, values, maps) or _touched(op, values, maps)
    index = tuple(int(i) for i in marks.nonzero()[0])
    is_source = op.kind in (Kind.INPUT, Kind.PARAMETER, Kind.BUFFER, Kind.CONSTANT)
    return Origin(
        sort=NONFINITE, of="parameter" if op.kind is Kind.PARAMETER else "value", node=op.label,
        operation=str(op.kind) if is_source else op.type, module=op.modules[-1] if op.modules else "",
        source=source_text(op), samples=samples, elements=int(marks.sum()), value=float(value[index].real),
        inputs=operands(op, values, maps, samples, index, tuple(value.shape)),
    )  # fmt: skip


def source_text(op: Op) -> str:
    line = op.source
    return "" if line is None else f"{line.file}:{line.line}"


def operands(
    op: Op,
    values: WrongValues,
    maps: SampleMaps,
    samples: tuple[int, ...],
    index: tuple[int, ...],
    shape: tuple[int, ...],
) -> tuple[Operand, ...]:
    """What the operation read, with the numbers of the samples concerned."""
    found = []
    for read, argument in named_reads(values.recorder, op.node):
        for slot in slots_of(read)[-1:]:
            value = values.tensor(slot)
            if value is not None and op.kind is not Kind.OUTPUT:
                name = values.trace.op_at(values.recorder.slot_node[slot]).label
                found.append(_operand(name, argument, value, maps[slot], samples, index, shape))
    return tuple(found)


def _operand(
    name: str, argument: str, value: Tensor, numbers: Tensor | None, samples: tuple[int, ...], index: tuple[int, ...],
    shape: tuple[int, ...],
) -> Operand:  # fmt: skip
    at = _element(value, index, shape)
    if value.is_complex():
        value = value.abs()
    part = value.flatten()
    if numbers is not None and samples:
        part = value[torch.isin(numbers.expand(value.shape), torch.tensor(samples, dtype=numbers.dtype))]
    wrong = wrong_elements(part)
    finite = part[~wrong].double()
    low, high = (float(finite.min()), float(finite.max())) if finite.numel() else (float("nan"), float("nan"))
    return Operand(name, argument, tuple(value.shape), low, high, int(wrong.sum()), at)


def _element(value: Tensor, index: tuple[int, ...], shape: tuple[int, ...]) -> float | None:
    """The element from which the one at `index` of the result was made, if the shapes say that it is one."""
    try:
        return float(value.expand(shape)[index].real)
    except RuntimeError:
        return None


def _guilty(op: Op, values: WrongValues, maps: SampleMaps) -> tuple[int, ...]:
    """The result has no samples: which of them, in the place of all others, makes it wrong?"""
    known = {slot: maps[slot] for slot in values.reads(op.node) if maps[slot] is not None}
    if not known or not 1 < maps.size <= _MOST_SAMPLES_TRIED:
        return ()
    guilty = []
    for sample in range(maps.size):
        others = dict(_only(sample, known, values))
        if not others:
            return ()
        try:
            again = results_with(op, others)
        except Exception:
            return ()
        if any(bool(wrong_elements(new).any()) for new in again if new.is_floating_point()):
            guilty.append(sample)
    return tuple(guilty) if len(guilty) < maps.size else ()


def _touched(op: Op, values: WrongValues, maps: SampleMaps) -> tuple[int, ...]:
    """Of a parameter or a constant: the samples that got something wrong from it, if not all did."""
    if op.kind not in (Kind.PARAMETER, Kind.BUFFER, Kind.CONSTANT):
        return ()
    for child in values.trace.children[op.node]:
        for slot in values.unwanted(child):
            samples = _samples(values, maps, slot)
            return samples if len(samples) < maps.size else ()
    return ()


def _only(sample: int, known: dict[int, Tensor | None], values: WrongValues) -> Iterator[tuple[int, Tensor]]:
    """Tensors in which one sample stands in the place of all others."""
    for slot, numbers in known.items():
        value = values.trace.store.tensor(slot).detach()
        assert numbers is not None
        varying = [dim for dim in range(numbers.dim()) if numbers.shape[dim] > 1]
        if len(varying) != 1:
            continue
        places = (numbers.flatten() == sample).nonzero().flatten()
        if len(places):
            count = numbers.numel()
            yield slot, value.index_select(varying[0], places[torch.arange(count) % len(places)])
