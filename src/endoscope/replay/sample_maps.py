"""Which sample of the batch every element of a tensor belongs to.

inputs: the batch dimension says it ─► operations that only move elements are called again on the numbers of the samples
                                    ─► all others keep the dimensions along which these numbers vary

A map is a tensor of whole numbers that can be broadcast to the tensor it is about: one number per element, with a size
of one in every dimension along which the sample does not change. -1 is no sample.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from endoscope.capture.data.arguments import map_arguments
from endoscope.capture.data.nodes import Node, slots_of
from endoscope.capture.record.leaves import argument_tensors
from endoscope.capture.views.result import Trace
from endoscope.schema.ops import Kind

#: These put elements elsewhere, and change none of them.
MOVING = frozenset(
    """view reshape permute transpose flatten unflatten squeeze unsqueeze expand expand_as view_as reshape_as
    broadcast_to getitem index_select select narrow chunk split tensor_split unbind cat concat concatenate stack
    hstack vstack repeat repeat_interleave roll flip movedim moveaxis swapaxes swapdims t T mT adjoint clone detach
    contiguous masked_select take_along_dim tile unfold diagonal alias ravel""".split()
)
_OF_MANY = frozenset("cat concat concatenate stack hstack vstack".split())
#: These take several elements together, along the dimensions that they are told.
_REDUCING = frozenset(
    """sum mean amax amin max min prod std var norm vector_norm logsumexp all any argmax argmin median nansum nanmean
    count_nonzero std_mean var_mean""".split()
)
#: Their last dimensions are new; others line up from the right, as broadcasting does.
_ADDING = frozenset("embedding one_hot".split())


class SampleMaps:
    """The maps of all tensors of a trace, made when they are first asked for."""

    def __init__(self, trace: Trace, batch_dim: int = 0, size: int = 0, entered: Iterable[int] = ()) -> None:
        self._trace = trace
        self._dim = batch_dim
        self._maps: dict[int, Tensor | None] = {}
        self._done = 0
        calls = trace.recorder.calls.entries
        self._entered = {*entered, *(slot for call in calls if call.root for slot in call.entered)}  # went into a model
        self.size = size or self._batch_size()

    def __getitem__(self, slot: int) -> Tensor | None:
        while self._done <= self._trace.recorder.slot_node[slot]:
            self._add(self._done)
            self._done += 1
        return self._maps.get(slot)

    def of(self, slot: int, wrong: Tensor) -> tuple[int, ...]:
        """The samples of the elements that are marked."""
        found = self[slot]
        if found is None:
            return ()
        return tuple(int(s) for s in found.expand(wrong.shape)[wrong].unique().tolist() if s >= 0)

    def _batch_size(self) -> int:
        recorder = self._trace.recorder
        for node, source in recorder.sources.items():
            if source.kind is Kind.INPUT:
                shape = self._shape(recorder.nodes[node].slot)
                if shape is not None and len(shape) > self._dim:
                    return shape[self._dim]
        shapes = [shape for slot in sorted(self._entered) if (shape := self._shape(slot)) is not None]
        return next((shape[self._dim] for shape in shapes if len(shape) > self._dim), 0)

    def _shape(self, slot: int) -> tuple[int, ...] | None:
        try:
            return tuple(self._trace.store.meta(slot).shape)
        except Exception:  # not every tensor has a shape
            return None

    def _add(self, node: int) -> None:
        raw = self._trace.raw(node)
        slots = raw.results
        source = self._trace.recorder.sources.get(node)
        if source is not None and source.kind is not Kind.OUTPUT:
            if source.kind is Kind.INPUT or raw.slot in self._entered:
                self._maps[raw.slot] = self._of_input(raw.slot)
            return
        if source is not None:
            return
        if raw.facts.type in MOVING and raw.facts.replayable:
            with contextlib.suppress(Exception):
                moved = self._moved(raw)
                if len(moved) == len(slots):
                    self._maps.update(zip(slots, [self._kept(raw, numbers) for numbers in moved], strict=True))
                    return
        for slot in slots:
            known = self._reduced(raw, slot) if raw.facts.type in _REDUCING else self._derived(raw, slot)
            self._maps[slot] = self._of_input(slot) if known is None and slot in self._entered else known

    def _kept(self, raw: Node, moved: Tensor) -> Tensor:
        """Nothing of one sample still belongs to that sample."""
        known = self._maps.get(slots_of(raw.reads[0])[0])
        if moved.numel() or known is None or known.numel() != 1:
            return _compact(moved)
        return known.reshape([1] * moved.dim())

    def _of_input(self, slot: int) -> Tensor | None:
        shape = self._shape(slot)
        if shape is None or len(shape) <= self._dim or shape[self._dim] != self.size:
            return None
        form = [self.size if dim == self._dim else 1 for dim in range(len(shape))]
        return torch.arange(self.size, dtype=torch.int32).reshape(form)

    def _moved(self, raw: Node) -> list[Tensor]:
        """Call the operation on the numbers of samples."""
        reads, count = list(raw.reads), 0

        def numbers(_: Any) -> Any:
            nonlocal count
            read, count = reads.pop(0), count + 1
            if count > 1 and raw.facts.type not in _OF_MANY:
                return self._trace.store.tensor(slots_of(read)[0])
            slot = slots_of(read)[0]
            known, shape = self._maps.get(slot), self._shape(slot)
            if shape is None or (known is None and raw.facts.type not in _OF_MANY):
                raise ValueError("no map")
            return torch.full(shape, -1, dtype=torch.int32) if known is None else known.expand(shape)

        args, kwargs = map_arguments(tuple(raw.args), numbers), map_arguments(raw.kwargs or {}, numbers)
        found: list[Tensor] = []
        with torch.no_grad():
            argument_tensors(raw.func(*args, **kwargs), found)
        return found

    def _reduced(self, raw: Node, slot: int) -> Tensor | None:
        """Of a sum, a mean and the like: a sample is left where all that was taken together is of one."""
        first = slots_of(raw.reads[0])
        known, shape = (self._maps.get(first[0]), self._shape(first[0])) if first else (None, None)
        if known is None or shape is None:
            return None
        if known.numel() == 1:
            return known.reshape([1] * len(self._shape(slot) or ()))
        named = raw.kwargs or {}
        dim = named.get("dim", raw.args[-1] if len(raw.args) > 1 else None)
        dims = [dim] if isinstance(dim, int) and not isinstance(dim, bool) else dim
        if raw.facts.type == "norm" and "dim" not in named:
            dims = raw.args[2] if len(raw.args) > 2 else None
            dims = [dims] if isinstance(dims, int) else dims
        if not isinstance(dims, (list, tuple)):
            dims = list(range(len(shape)))
        keep = bool(named.get("keepdim", False))
        whole = known.expand(shape)
        if not whole.numel():
            return None
        low, high = torch.amin(whole, list(dims), keep), torch.amax(whole, list(dims), keep)
        return _compact(low) if torch.equal(low, high) else None

    def _derived(self, raw: Node, slot: int) -> Tensor | None:
        shape = self._shape(slot)
        if shape is None:
            return None
        for read in raw.reads:
            for parent in slots_of(read):
                known = self._maps.get(parent)
                if known is not None:
                    found = _lined_up(known, shape, raw.facts.type in _ADDING)
                    if found is not None:
                        return found
        return None


def _compact(numbers: Tensor) -> Tensor:
    """The same map, with a size of one where it does not vary."""
    for dim in range(numbers.dim()):
        if numbers.shape[dim] > 1:
            first = numbers.narrow(dim, 0, 1)
            if bool((numbers == first).all()):
                numbers = first
    return numbers


def _lined_up(known: Tensor, shape: Sequence[int], adding: bool) -> Tensor | None:
    """A map for a tensor that was computed from another one; None if it cannot be told how their dimensions meet."""
    rank, own = len(shape), known.dim()
    varying = [dim for dim in range(own) if known.shape[dim] > 1]
    if rank >= own:
        offsets = (0, rank - own) if adding else (rank - own, 0)
        for offset in offsets:
            if all(shape[dim + offset] == known.shape[dim] for dim in varying):
                return known.reshape([1] * offset + list(known.shape) + [1] * (rank - own - offset))
        return None
    places, free = [], list(range(rank))
    for dim in varying:  # dimensions were reduced: those that are left keep their order
        place = next((place for place in free if shape[place] == known.shape[dim]), None)
        if place is None:
            return None
        places.append(place)
        free = [other for other in free if other > place]
    form = [1] * rank
    for dim, place in zip(varying, places, strict=True):
        form[place] = known.shape[dim]
    return known.reshape(form)
