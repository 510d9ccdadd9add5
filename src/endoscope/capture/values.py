"""Values, gradients and tensor facts of a trace, by slot."""

from __future__ import annotations

from typing import Any

import torch

from endoscope.capture.recorder import Recorder
from endoscope.capture.records import Meta, Node, meta_of, slots_of
from endoscope.capture.regions import storage_key
from endoscope.errors import ValueChanged, ValueNotKept


class TensorStore:
    """What was kept, and whether it is still what it was."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def holds(self, slot: int) -> bool:
        return self.recorder.full or slot in self.recorder.kept

    def tensor(self, slot: int) -> torch.Tensor:
        """The kept tensor itself, with its autograd history if it was not copied."""
        kept = self.recorder.kept.get(slot)
        if kept is not None:
            version = self.recorder.kept_versions.get(slot, -1)
        elif self.recorder.full:
            kept, version = self.recorder.objects[slot], self.recorder.versions[slot]
        else:
            raise KeyError(slot)
        if slot in self.recorder.stale or (version >= 0 and kept._version != version):
            raise _Changed
        return unwrapped(kept)

    def freeze(self, sharing: list[torch.Tensor] | None = None) -> None:
        """Replace kept values by copies: all, or those that share memory with certain tensors."""
        recorder = self.recorder
        keys = None if sharing is None else {storage_key(t) for t in sharing} - {None}
        slots = range(len(recorder.objects)) if recorder.full else list(recorder.kept)
        for slot in slots:
            if keys is not None and storage_key(recorder.dereference(recorder.objects[slot])) not in keys:
                continue
            if slot in recorder.stale or (
                slot in recorder.kept and slot not in recorder.kept_versions and recorder.full
            ):
                continue  # lost already, or a copy already
            recorder.metas.setdefault(slot, self.meta(slot))
            recorder.kept[slot] = self.tensor(slot).detach().clone()
            recorder.kept_versions.pop(slot, None)

    def meta(self, slot: int) -> Meta:
        meta = self.recorder.metas.get(slot)
        if meta is not None:
            return meta
        if self.recorder.full:
            return meta_of(self.recorder.objects[slot])
        raw = Node(*self.recorder.nodes[self.recorder.slot_node[slot]])
        # The ear notes classes and leaves out what can be told from elsewhere; both are cheaper.
        differentiable = raw.grad_fn is not type(None)
        device = raw.device if raw.device is not None else self.meta(slots_of(raw.reads[0])[0]).device
        return Meta(raw.shape, raw.dtype, device, differentiable, raw.grad_fn.__name__ if differentiable else None)

    def value(self, slot: int, op: Any) -> torch.Tensor:
        try:
            if not op.kept:
                raise KeyError(slot)
            tensor = self.tensor(slot)
        except KeyError:
            raise ValueNotKept(
                f"The value of {op.label} was not kept, because the trace was taken with "
                f"save={self.recorder.save_text}. Trace again with save='all' or save={op.layer!r}."
            ) from None
        except _Changed:
            raise ValueChanged(
                f"The tensor of {op.label} was overwritten after it was captured, so its value at that moment is "
                "gone. Read values before you change tensors in place (an optimizer step changes parameters), or "
                "call trace.freeze() first."
            ) from None
        return tensor if self.recorder.gradients is not None else tensor.detach()

    def gradient(self, slot: int) -> torch.Tensor | None:
        gradients = self.recorder.gradients
        if gradients is None:
            return None
        found: torch.Tensor | None = gradients.of_slot.get(slot)
        if found is None and self.holds(slot):
            tensor = self.recorder.kept.get(slot)
            if tensor is None:
                tensor = self.recorder.objects[slot]
            found = tensor.grad if tensor is not None and tensor.is_leaf else None
        return found


class _Changed(Exception):
    """Internal: the kept tensor is not what it was."""


def unwrapped(tensor: torch.Tensor) -> torch.Tensor:
    """Inside `vmap` and `grad` tensors are wrappers that die with the transform; the tensor inside stays."""
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor
    while wrapped(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor
