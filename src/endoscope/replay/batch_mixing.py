"""Where samples of a batch begin to depend on each other: run again with one sample exchanged, and see what changes.

    trace of the batch ─┬─► once more with sample 0 exchanged ─► which elements of which values changed
                        ├─► once more with sample 1 exchanged ─► …
                        └─► an element that changed with both depends on both: there, or before, samples have met

Nothing has to be known about shapes: samples may be flattened, transposed or split into heads on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from endoscope.capture.change.rebuild import rebuilt
from endoscope.capture.change.state import State
from endoscope.capture.data.nodes import Read, slots_of
from endoscope.capture.patch.patches import untraced
from endoscope.capture.patch.torch_private import BatchNorm
from endoscope.capture.record.leaves import named_leaves
from endoscope.capture.trace import arguments, check_target
from endoscope.capture.trace import trace as run_traced
from endoscope.capture.views.result import Trace
from endoscope.errors import BadArgument, ValueChanged, ValueNotKept
from endoscope.replay.compare import plain, tolerance
from endoscope.schema.ops import Kind, SourceLine

#: These look at the whole batch on purpose, as long as they train.
BATCH_STATISTICS = frozenset("batch_norm native_batch_norm batch_norm_gather_stats_with_counts sync_batch_norm".split())
_MOST_EXCHANGED = 8  # samples; more would rarely show more, and each is one more run


@dataclass(frozen=True, slots=True)
class Mixing:
    """One operation at which samples meet, or change places."""

    label: str
    type: str
    module: str
    source: str
    samples: tuple[int, ...]  # that were seen to meet
    expected: bool = False  # batch statistics in training
    moved: bool = False  # samples do not meet, but come out in the place of others
    lost: str = ""  # operation after which samples had no dimension of their own any more
    lost_source: str = ""


@dataclass(frozen=True, slots=True)
class Probed:
    """What a probe has found."""

    found: list[Mixing]
    reached: float  # share of the elements of the result that depend on samples that they do not belong to
    other_path: str = ""  # operation from which on runs with another sample took another way


def batch_mixing(target: Any, inputs: Any, batch_dim: int, shared: Sequence[Tensor], seed: int) -> Probed:
    """Where samples of `inputs` meet on their way to results that have samples."""
    check_target(target)
    args, kwargs = arguments(inputs)
    batched = _batched((args, kwargs), batch_dim, shared)
    with untraced():
        case = _Case(target, (args, kwargs), batched, batch_dim, seed, State(target, args, kwargs))
        try:
            first = _Round(case).probe()
            norms = [m for m in case.state.modules if isinstance(m, BatchNorm) and m.training]
            if not norms or not any(mixing.expected for mixing in first.found):
                return first
            quiet = _Round(case, norms).probe()
        finally:
            case.state.restore()
    known = {mixing.label for mixing in first.found}
    behind = [mixing for mixing in quiet.found if not mixing.expected and mixing.label not in known]
    return Probed([*first.found, *behind], first.reached, first.other_path or quiet.other_path)


def _batched(inputs: Any, batch_dim: int, shared: Sequence[Tensor]) -> list[Tensor]:
    """The tensors of the inputs that have samples."""
    tensors = [leaf for _, leaf in named_leaves(inputs) if isinstance(leaf, Tensor)]
    tensors = [leaf for leaf in tensors if not any(leaf is other for other in shared)]
    with_dim = [leaf for leaf in tensors if leaf.dim() > batch_dim]
    if not with_dim:
        raise BadArgument(
            f"No tensor in the inputs has a dimension {batch_dim}, along which samples could be exchanged. "
            "Pass a batch."
        )
    size = with_dim[0].shape[batch_dim]
    if size < 2:
        raise BadArgument(
            f"The batch has {size} sample along dimension {batch_dim}; at least two are needed to see whether they "
            "depend on each other. Pass a larger batch, or say batch_dim=."
        )
    return [leaf for leaf in with_dim if leaf.shape[batch_dim] == size]


@dataclass(frozen=True, slots=True)
class _Case:
    """What is run, and what may be exchanged in it."""

    target: Any
    inputs: tuple[tuple[Any, ...], dict[str, Any]]
    batched: Sequence[Tensor]
    dim: int
    seed: int
    state: State  # as it was, to be put back after each run

    def run(self, sample: int | None, frozen: Iterable[torch.nn.Module]) -> Trace:
        """A trace with one sample exchanged; `frozen` modules behave as in evaluation."""
        self.state.restore()
        for module in frozen:
            module.training = False
        args, kwargs = rebuilt(self.inputs, _Exchange(self.batched, self.dim, sample), always=True)
        try:
            found = run_traced(self.target, kwargs or args, seed=self.seed)
            found.store.freeze(sharing=self.state.tensors)
        finally:
            self.state.restore()
        return found


class _Round:
    """One trace of the batch as it is, and some with a sample exchanged."""

    def __init__(self, case: _Case, frozen: Iterable[torch.nn.Module] = ()) -> None:
        self.case, self.frozen = case, list(frozen)
        self.dim, self.size = case.dim, case.batched[0].shape[case.dim]
        apart = max(1, (self.size - 1) // (_MOST_EXCHANGED - 2))
        self.samples = sorted({0, 1, *range(0, self.size, apart)})[:_MOST_EXCHANGED]
        self.base = case.run(None, self.frozen)
        self.end = len(self.base.recorder.nodes)  # from here on, runs cannot be compared
        self.changed: dict[int, dict[int, Tensor]] = {}  # slot -> sample -> which elements changed with it

    def probe(self) -> Probed:
        for sample in self.samples:
            self._compare(sample, self.case.run(sample, self.frozen))
        wrong = [slot for slot in self._results() if not self._is_in_order(slot)]
        reached = self._reached(wrong)
        other = self.base.op_at(self.end).label if self.end < len(self.base.recorder.nodes) else ""
        return Probed(list(self._found(wrong)), reached, other)

    def _compare(self, sample: int, other: Trace) -> None:
        """Note which elements changed, as far as both runs did the same."""
        mine, theirs = self.base.recorder, other.recorder
        for node in range(min(self.end, len(theirs.nodes))):
            one, two = self.base.raw(node), other.raw(node)
            if one.facts.type != two.facts.type or one.slot != two.slot:
                self.end = node
                return
            for slot in range(one.slot, one.slot + one.outputs + one.written):
                mask = _difference(self.base, other, slot)
                if mask is not None:
                    self.changed.setdefault(slot, {})[sample] = mask
        self.end = min(self.end, len(theirs.nodes), len(mine.nodes))

    def _results(self) -> list[int]:
        """Slots of the results."""
        recorder = self.base.recorder
        nodes = [node for node, source in recorder.sources.items() if source.kind is Kind.OUTPUT]
        return [slot for node in nodes for read in self.base.raw(node).reads for slot in slots_of(read)]

    def _is_in_order(self, slot: int) -> bool:
        """Whether sample n is at place n of some dimension, and nowhere else; also where there is no such dimension."""
        masks = self.changed.get(slot, {})
        dims = [dim for dim, size in enumerate(next(iter(masks.values())).shape) if size == self.size] if masks else []
        if not dims:
            return True  # a loss, or something else that is about the whole batch
        return self._has_own_dim(slot)

    def _has_own_dim(self, slot: int) -> bool:
        masks = self.changed.get(slot, {})
        if not masks:
            return True
        shape = next(iter(masks.values())).shape
        return any(
            size == self.size and all(_places(mask, dim) == [sample] for sample, mask in masks.items())
            for dim, size in enumerate(shape)
        )

    def _has_met(self, slot: int) -> tuple[int, ...]:
        """Samples on which one and the same element depends."""
        masks = self.changed.get(slot, {})
        if len(masks) < 2:
            return ()
        together = torch.stack(list(masks.values()))
        both = together.sum(dim=0) > 1
        if not bool(both.any()):
            return ()
        return tuple(sample for sample, mask in masks.items() if bool((mask & both).any()))

    def _reached(self, slots: Sequence[int]) -> float:
        """Share of the elements of results, outside of a sample's own place, that changed with it."""
        shares = []
        for slot in slots:
            for sample, mask in self.changed[slot].items():
                if mask.dim() > self.dim and mask.shape[self.dim] == self.size:
                    others = [n for n in range(self.size) if n != sample]
                    mask = mask.index_select(self.dim, torch.tensor(others, device=mask.device))
                shares.append(float(mask.float().mean()))
        return max(shares, default=0.0)

    def _found(self, wrong: Sequence[int]) -> Iterator[Mixing]:
        met: dict[int, tuple[int, ...]] = {}
        roots = False
        for node in sorted(self._above(wrong)):
            raw = self.base.raw(node)
            samples = self._met_in(node, met)
            if (
                samples
                and not any(met.get(slot) for slot in _read(raw.reads))
                and node not in self.base.recorder.sources
            ):
                roots = True
                yield self._mixing(node, samples)
        if not roots:
            for slot in wrong:
                lost = self._where_lost([slot])
                if lost is not None:
                    yield self._mixing(lost, tuple(self.changed[slot]), moved=True)
                    return

    def _met_in(self, node: int, met: dict[int, tuple[int, ...]]) -> tuple[int, ...]:
        raw = self.base.raw(node)
        found: dict[int, None] = {}
        for slot in range(raw.slot, raw.slot + raw.outputs + raw.written):
            met[slot] = self._has_met(slot)
            if slot < raw.slot + raw.outputs:
                found |= dict.fromkeys(met[slot])
        return tuple(found)

    def _above(self, slots: Sequence[int]) -> set[int]:
        """All operations that these values were made by."""
        owner = self.base.recorder.slot_node
        waiting, seen = [owner[slot] for slot in slots], set()
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                waiting += [owner[slot] for slot in _read(self.base.raw(node).reads)]
        return seen

    def _where_lost(self, slots: Sequence[int]) -> int | None:
        """The operation whose inputs still have a dimension of samples, and whose result has none."""
        owner = self.base.recorder.slot_node
        waiting, seen = [slot for slot in slots if not self._has_own_dim(slot)], set(slots)
        while waiting:
            node = owner[waiting.pop(0)]
            inputs = [slot for slot in _read(self.base.raw(node).reads) if slot in self.changed]
            astray = [slot for slot in inputs if not self._has_own_dim(slot)]
            if inputs and not astray:
                return int(node)
            waiting += [slot for slot in astray if slot not in seen]
            seen.update(astray)
        return None

    def _mixing(self, node: int, samples: tuple[int, ...], moved: bool = False) -> Mixing:
        op = self.base.op_at(node)
        lost = None if moved else self._where_lost(_read(self.base.raw(node).reads))
        before = self.base.op_at(lost) if lost is not None else None
        return Mixing(
            label=op.label, type=op.type, module=op.modules[-1] if op.modules else "", source=_line(op.source),
            samples=samples, expected=op.type in BATCH_STATISTICS, moved=moved,
            lost=before.label if before is not None else "", lost_source=_line(before.source) if before else "",
        )  # fmt: skip


class _Exchange:
    """Copies of the inputs, in which one sample is another one."""

    def __init__(self, batched: Sequence[Tensor], dim: int, sample: int | None) -> None:
        self.batched, self.dim, self.sample = batched, dim, sample

    def __call__(self, tensor: Tensor) -> Tensor:
        if self.sample is None or not any(tensor is other for other in self.batched):
            return tensor
        new = tensor.detach().clone()
        here = new.select(self.dim, self.sample)
        here.copy_(_another(new, here, self.dim, self.sample))
        return new.requires_grad_(tensor.requires_grad)


def _another(batch: Tensor, here: Tensor, dim: int, sample: int) -> Tensor:
    """Something of the same sort as a sample: on the way to another sample of the batch, or a little further on."""
    for step in range(1, batch.shape[dim]):
        other = batch.select(dim, (sample + step) % batch.shape[dim])
        if not torch.equal(other, here):
            return torch.lerp(here, other, 0.7) if here.is_floating_point() else other.clone()
    if here.is_floating_point() or here.is_complex():
        return here + (here.abs().mean() * 0.1 + 0.1)
    return here.logical_not() if here.dtype == torch.bool else here.roll(1) if here.dim() else here


def _difference(one: Trace, other: Trace, slot: int) -> Tensor | None:
    """Which elements differ; None if none does, or if that cannot be told."""
    try:
        a, b = (plain(trace.store.tensor(slot), bits=False) for trace in (one, other))
    except (ValueChanged, ValueNotKept, IndexError, RuntimeError):
        return None
    if a.shape != b.shape or a.dtype != b.dtype or not a.numel():
        return None
    if not (a.is_floating_point() or a.is_complex()):
        mask = a != b
    else:
        wide = torch.complex128 if a.is_complex() else torch.float64
        x, y = a.to(wide), b.to(wide)
        scale = torch.nan_to_num(x.abs(), posinf=0.0).max()
        mask = ~torch.isclose(x, y, rtol=0.0, atol=float(scale) * tolerance(a.dtype), equal_nan=True)
    return mask if bool(mask.any()) else None


def _places(mask: Tensor, dim: int) -> list[int]:
    """Along one dimension, where something is marked."""
    others = [d for d in range(mask.dim()) if d != dim]
    flat = mask.any(dim=others[0]) if len(others) == 1 else mask.movedim(dim, 0).reshape(mask.shape[dim], -1).any(dim=1)
    return [int(place) for place in flat.nonzero().flatten().tolist()]


def _read(reads: Iterable[Read]) -> list[int]:
    return [slot for read in reads for slot in slots_of(read)]


def _line(source: SourceLine | None) -> str:
    return f"{source.file}:{source.line}" if source is not None else ""
