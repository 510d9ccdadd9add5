"""The tensors of a trace, as far as NaN and infinity are concerned."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from endoscope.capture.data.nodes import slots_of
from endoscope.capture.data.record import Overwritten
from endoscope.capture.record.functions import UNINITIALISED
from endoscope.capture.views.result import Trace
from endoscope.schema.ops import Kind

#: An infinity from one of these was put there by somebody who wanted it, to mask something.
_OUTSIDE = (Kind.CONSTANT, Kind.BUFFER, Kind.INPUT)
#: What mixes elements with weights makes NaN of minus infinity: nobody hands it a mask.
_MIXING = frozenset(
    """linear matmul mm bmm addmm baddbmm einsum bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d
    conv_transpose3d layer_norm batch_norm group_norm instance_norm rms_norm""".split()
)


class WrongValues:
    """Which values have elements that are not finite, and which of these are meant to."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.recorder = trace.recorder
        self.wrong: set[int] = set()  # slots
        self.meant: set[int] = set()  # those of them that only mask: infinite by intention, and nothing is NaN
        for node in range(len(self.recorder.nodes)):
            self._look_at(node)

    def tensor(self, slot: int) -> Tensor | None:
        """The value of a slot; None if it is not there, or not what it was."""
        try:
            tensor = self.trace.store.tensor(slot).detach()
        except (KeyError, Overwritten, RuntimeError):
            return None
        return tensor if is_measurable(tensor) else None

    def slots(self, node: int) -> range:
        """What a node returned, then what it overwrote besides."""
        raw = self.recorder.nodes[node]
        return raw.results

    def reads(self, node: int) -> list[int]:
        """The slots that a node reads."""
        raw = self.recorder.nodes[node]
        hidden = self.recorder.hidden_reads.get(node, ())
        return [slot for read in (*raw.reads, *hidden) for slot in slots_of(read)]

    def unwanted(self, node: int) -> list[int]:
        return [slot for slot in self.slots(node) if slot in self.wrong and slot not in self.meant]

    def unwanted_reads(self, node: int) -> list[int]:
        return [slot for slot in self.reads(node) if slot in self.wrong and slot not in self.meant]

    def may_mask(self, node: int) -> bool:
        """Whether infinities in what a node returns may be meant, because some go in or are named."""
        raw = self.recorder.nodes[node]
        named = _names_infinity(raw.args) or _names_infinity(raw.kwargs)
        return named or any(slot in self.meant for slot in self.reads(node))

    def _look_at(self, node: int) -> None:
        source = self.recorder.sources.get(node)
        if source is not None and source.kind is Kind.OUTPUT:
            return
        if self.recorder.nodes[node].facts.type in UNINITIALISED:  # whatever stands there is not looked at
            return
        for slot in self.slots(node):
            tensor = self.tensor(slot)
            if tensor is None or not has_nonfinite(tensor):
                continue
            self.wrong.add(slot)
            if self._is_meant(node, tensor):
                self.meant.add(slot)

    def _is_meant(self, node: int, tensor: Tensor) -> bool:
        if bool(torch.isnan(tensor).any()):
            return False
        source = self.recorder.sources.get(node)
        if source is not None:
            is_mask = source.kind in _OUTSIDE and not bool((tensor == math.inf).any()) and not tensor.is_complex()
            readers = {self.recorder.nodes[child].facts.type for child in self.trace.children[node]}
            return is_mask and not readers & _MIXING
        raw = self.recorder.nodes[node]
        wrong = [slot for slot in self.reads(node) if slot in self.wrong]
        if wrong:
            return all(slot in self.meant for slot in wrong)
        return _names_infinity(raw.args) or _names_infinity(raw.kwargs)


def is_measurable(tensor: Tensor) -> bool:
    return (
        (tensor.is_floating_point() or tensor.is_complex())
        and tensor.layout is torch.strided
        and not tensor.is_nested
        and not tensor.is_meta
        and type(tensor) in (Tensor, torch.nn.Parameter)
    )


def wrong_elements(tensor: Tensor) -> Tensor:
    """Marks what is not finite."""
    plain = tensor.float() if tensor.element_size() == 1 else tensor
    return ~torch.isfinite(plain)


def has_nonfinite(tensor: Tensor) -> bool:
    return tensor.numel() > 0 and bool(wrong_elements(tensor).any())


def _names_infinity(value: Any) -> bool:
    """Whether a number among the arguments is infinite."""
    if isinstance(value, float):
        return math.isinf(value)
    if isinstance(value, (list, tuple)):
        return any(map(_names_infinity, value))
    return isinstance(value, dict) and any(map(_names_infinity, value.values()))
