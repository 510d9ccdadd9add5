"""Values, gradients and tensor facts of a trace, by slot."""

from __future__ import annotations

from typing import Any

import torch

from endoscope.capture.data.nodes import Meta, slots_of
from endoscope.capture.data.record import Overwritten
from endoscope.capture.patch.torch_private import DisableTorchFunction
from endoscope.capture.record.fingerprint import fingerprint
from endoscope.capture.record.recorder import Recorder
from endoscope.capture.record.records import meta_of
from endoscope.capture.record.regions import is_uninitialised, storage_key, unwrapped
from endoscope.errors import ValueChanged, ValueNotKept


class TensorStore:
    """What was kept, and whether it is still what it was."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._devices: dict[int, torch.device] = {}

    def tensor(self, slot: int) -> torch.Tensor:
        """The kept tensor itself, with its autograd history if it was not copied."""
        kept = self.recorder.kept.get(slot)
        if kept is not None:
            version = self.recorder.kept_versions.get(slot, -1)
        elif self.recorder.full:
            kept, version = self.recorder.objects[slot], self.recorder.versions[slot]
        else:
            raise KeyError(slot)
        if slot in self.recorder.stale or self._was_overwritten(slot, kept, version):
            raise Overwritten
        return unwrapped(kept)

    def _was_overwritten(self, slot: int, tensor: torch.Tensor, version: int) -> bool:
        recorder = self.recorder
        if version >= 0 and not recorder.aliasing.explains(tensor, version):
            return True
        before = recorder.fingerprints.get(slot)
        return before is not None and fingerprint(tensor) != before

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
            recorder.fingerprints.pop(slot, None)

    def meta(self, slot: int) -> Meta:
        meta = self.recorder.metas.get(slot)
        if meta is not None:
            return meta
        if self.recorder.full:
            return meta_of(self.recorder.objects[slot])
        raw = self.recorder.nodes[self.recorder.slot_node[slot]]
        if raw.func is None:  # a parameter or buffer
            return meta_of(self.recorder.objects[slot]())
        # The hot path notes classes and leaves out what can be told from elsewhere; both are cheaper.
        differentiable = raw.grad_fn is not type(None)
        device = self._device(slot)
        return Meta(raw.shape, raw.dtype, device, differentiable, raw.grad_fn.__name__ if differentiable else None)

    def piece(self, slot: int) -> Any:
        """A value that is not in memory, to be written elsewhere without being held; None for all others."""
        return None

    def random_state(self, node: int) -> Any:
        draw = self.recorder.rng.get(node)
        return draw.state if draw else None

    def shape(self, slot: int) -> tuple[int, ...]:
        """Asks for nothing else: after a look at `grad_fn`, torch cannot let go of a long chain without recursion."""
        recorder = self.recorder
        meta = recorder.metas.get(slot)
        raw = recorder.nodes[recorder.slot_node[slot]]
        if meta is None and (recorder.full or raw.func is None):
            return self.shape_of(recorder.dereference(recorder.objects[slot])) or ()
        return tuple(raw.shape if meta is None else meta.shape)

    def shape_of(self, argument: Any) -> tuple[int, ...] | None:
        """The shape of a tensor among arguments; None where only a placeholder was kept."""
        if not isinstance(argument, torch.Tensor):
            return None
        with_sizes = argument.is_nested or is_uninitialised(argument)
        return tuple(meta_of(argument).shape if with_sizes else argument.shape)

    def _device(self, slot: int) -> torch.device:
        """Where it is not noted it is that of the first argument, and so on upwards; remembered on the way back."""
        chain: list[int] = []
        while slot not in self._devices:
            meta = self.recorder.metas.get(slot)
            raw = self.recorder.nodes[self.recorder.slot_node[slot]]
            if meta is not None or raw.device is not None:
                self._devices[slot] = meta.device if meta is not None else raw.device
            elif raw.func is None:
                self._devices[slot] = self.recorder.objects[slot]().device
            else:
                chain.append(slot)
                slot = slots_of(raw.reads[0])[0]
        for other in chain:
            self._devices[other] = self._devices[slot]
        return self._devices[slot]

    def value(self, slot: int, label: str, layer: str, kept: bool) -> torch.Tensor:
        """The value of an operation, or an error that names it."""
        try:
            if not kept:
                raise KeyError(slot)
            tensor = self.tensor(slot)
        except KeyError:
            raise ValueNotKept(
                f"The value of {label} was not kept, because the trace was taken with "
                f"save={self.recorder.save_text}. Trace again with save='all' or save={layer!r}."
            ) from None
        except Overwritten:
            raise ValueChanged(
                f"The tensor of {label} was overwritten after it was captured, so its value at that moment is "
                "gone. Read values before you change tensors in place (an optimizer step changes parameters), or "
                "call trace.freeze() first."
            ) from None
        if self.recorder.gradients is not None:
            return tensor
        with DisableTorchFunction():  # a running trace must not record that it is looked at
            return tensor.detach()

    def gradient(self, slot: int) -> torch.Tensor | None:
        gradients = self.recorder.gradients
        if gradients is None:
            raise ValueNotKept(
                "This trace keeps no gradients. Trace with gradients=True, and call backward() on the result before "
                "you ask for them."
            )
        return gradients.of(slot)
