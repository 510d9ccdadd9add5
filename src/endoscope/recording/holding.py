"""Decides what of a step is held, and holds it: what modules return, what is handed to models, what the user names.

a module returned       ─► Holder.module_ended ─► hold
a module that is known  ─► Holder.hold_result  the same for a tensor that nobody has seen before
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from endoscope.capture.leaves import named_leaves
from endoscope.capture.regions import version_of
from endoscope.schema.ops import Kind

if TYPE_CHECKING:
    from endoscope.recording.hearing import StepRecorder
    from endoscope.recording.losses import LossGradients
    from endoscope.recording.meter import Meter

_is_transformed = torch._C._functorch.is_functorch_wrapped_tensor
_new = tuple.__new__


class Held(NamedTuple):
    """One tensor that is to be measured."""

    node: str  # "" where only the call says whose it is
    role: str
    kind: str
    slot: int
    call: int  # the module call that returned it, or -1
    batch_dim: int | None = 0  # None: let the size of the batch tell


class Holder:
    """Stands where a trace has its keeper: decides what is held, at the end of each module."""

    names_modules = False
    idle = True  # the ear need not ask about single operations

    def __init__(self, gradients: LossGradients, functions: Callable[[str], bool] | None) -> None:
        self.recorder: StepRecorder
        self.gradients = gradients
        self.entries: list[Held] = []
        self.refused: list[Held] = []  # what cannot be held
        self.fresh: set[int] = set()  # slots of what was computed into memory of its own
        self.functions: list[tuple[int, int]] = []  # node and slot of operations that may match a pattern
        self.types: dict[str, bool] = {}
        self.meter: Meter | None = None  # of a step that need not be held until its end
        self._may_match = functions
        if functions is not None:
            self.idle = False

    def place(self, _: int) -> str:
        return "no"

    def wants(self, node: int, slot: int, tensor: Tensor) -> bool:
        source = self.recorder.sources.get(node)
        if source is not None:
            if source.kind is Kind.INPUT:
                self.gradients.watch(slot, tensor)
            return source.kind is Kind.INPUT
        if self._may_match is None:
            return False
        type_ = self.recorder.nodes[node][0].type
        if type_ not in self.types:
            self.types[type_] = self._may_match(type_)
        if self.types[type_]:
            self.functions.append((node, slot))
            self.gradients.watch(slot, tensor)
        return self.types[type_]

    def module_ended(self, call: int, out: Any, version: int | None = None) -> None:
        if out.__class__ is Tensor:
            self.hold("", "", "computed", out, call, version=version)
            return
        for path, leaf in named_leaves(out):
            if isinstance(leaf, Tensor):
                self.hold("", role_of(path), "computed", leaf, call)

    def hold(
        self,
        node: str,
        role: str,
        kind: str,
        tensor: Tensor,
        call: int = -1,
        batch_dim: int | None = None,
        version: int | None = None,
    ) -> int:
        """`version` is that of the moment, where it has been noted before."""
        recorder = self.recorder
        if _is_transformed(tensor):  # it is no tensor any more once its `vmap` or `grad` has ended
            self.refused.append(Held(node, role, kind, -1, call))
            return -1
        identity, readers = id(tensor), recorder.aliasing.readers
        read: Any = recorder.ids.get(identity)
        if read is None or (readers and identity in readers) or recorder.objects[read]() is not tensor:
            read = recorder.read(tensor)
        if isinstance(read, int) and read >= 0:
            slot = read
            if slot not in recorder.kept:
                recorder.kept[slot] = tensor
                recorder.kept_versions[slot] = version_of(tensor) if version is None else version
                if self.meter is None or not self.meter.has(slot):
                    self.gradients.watch(slot, tensor)
        else:
            slot = self._hold_patchwork(tensor)
        self.entries.append(Held(node, role, kind, slot, call, batch_dim))
        if self.meter is not None and kind != "input":
            self.meter.value(slot, tensor, batch_dim)
        return slot

    def hold_result(self, slot: int, tensor: Tensor, grad_fn: Any, call: int) -> None:
        """`hold` for what a known module has just computed: no other name, no other slot, nobody's write."""
        recorder, meter = self.recorder, self.meter
        recorder.kept[slot] = tensor
        # With a backward function it is no inference tensor, which would refuse to tell.
        recorder.kept_versions[slot] = version_of(tensor) if grad_fn is None else tensor._version
        self.fresh.add(slot)
        if grad_fn is not None:
            self.gradients.watch_result(slot, tensor, grad_fn)
        # What `Held(...)` does, without the function that it is.
        self.entries.append(_new(Held, ("", "", "computed", slot, call, None)))
        if meter is not None:
            meter.value(slot, tensor, None)

    def _hold_patchwork(self, tensor: Tensor) -> int:
        """Several operations wrote into parts of it: no single slot has its value, so it is copied now."""
        recorder = self.recorder
        slot = recorder.ids[id(tensor)]
        with torch.no_grad(), torch._C.DisableTorchFunction():
            copy = tensor.detach().clone()
        new = len(recorder.objects)
        recorder.objects.append(lambda: copy)
        recorder.slot_node.append(recorder.slot_node[slot])
        recorder.kept[new] = copy
        self.gradients.watch(new, tensor)
        return new

    def settle(self, _: Any) -> None:
        """A trace lets go of what was not asked for; here everything that is held is measured."""


@functools.lru_cache(1024)
def role_of(path: str) -> str:
    """A path as people write it: `[0]` is 0, `['logits'][1]` is logits.1."""
    return re.sub(r"\[(?:'([^']*)'|\"([^\"]*)\"|([^\]]*))\]", r".\1\2\3", path).lstrip(".")
