"""One change of a value: how it is applied, and what it must not change.

    Edit ─► apply(tensor, moment) ─► compute, from the whole tensor
                                 ─► checked: shape, dtype and device stay what they were
                                 ─► only the chosen part (parts.py) is taken over
                                 ─► in memory of its own, laid out like the original

To autograd all of it is a function like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from endoscope.capture.change.parts import Indices, Part
from endoscope.capture.data.nodes import Applied
from endoscope.errors import BadEdit


class Moment(NamedTuple):
    """Where and when an edit is applied."""

    label: str  # of the operation, in the run without the edit
    output: int = 0  # which of its tensors
    forward: int = 0  # which forward pass of an `editing` block


Compute = Callable[[Tensor, Moment, "Edit"], Tensor]
ApplyOne = Callable[["Edit", Tensor, Moment], Tensor]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Edit:
    """One change, made by the functions of `endoscope.edits`. It can be used for any number of operations."""

    text: str  # as it was typed
    compute: Compute  # whole tensor -> changed tensor
    part: Part
    arithmetic: bool = True  # it makes no sense for indices and masks
    constant: bool = False  # what it puts in place does not depend on the tensor

    def at(
        self, *, dims: Mapping[int, Indices] | None = None, outputs: int | list[int] | tuple[int, ...] | None = None
    ) -> Edit:
        """The same edit, restricted to indices of any dimensions, or to some of the tensors that are returned."""
        part = self.part.restricted(dims, outputs)
        return replace(self, part=part, text=f"{self.text}.at({', '.join(part.at_texts())})")

    def applies_to(self, tensor: Tensor, moment: Moment) -> bool:
        """Of several tensors, numbers that cannot be computed with and those not asked for are left alone."""
        chosen = self.part.outputs
        if chosen is not None:
            return moment.output in chosen
        return not self.arithmetic or tensor.is_floating_point() or tensor.is_complex()

    def apply(self, tensor: Tensor, moment: Moment) -> Tensor:
        """The changed tensor: a new one, never a part of somebody else's memory."""
        self._check_kind(tensor, moment)
        mask = self.part.mask(tensor, f"{self} of {moment.label}")
        changed = self.compute(tensor, moment, self)
        self._check_result(tensor, changed, moment)
        if mask is None and self.constant:  # stay connected, so that what lies upstream gets a gradient of zero
            mask = torch.ones((), dtype=torch.bool, device=tensor.device)
        if mask is not None:
            changed = torch.where(mask, changed, tensor)
        return _laid_out_like(tensor, changed, fresh=mask is not None)

    def _check_kind(self, tensor: Tensor, moment: Moment) -> None:
        if self.arithmetic and not (tensor.is_floating_point() or tensor.is_complex()):
            raise BadEdit(
                f"{self} cannot be applied to {moment.label}: its {numbers_of(tensor.dtype)} are indices, counts or "
                "flags, so computing with them makes no sense. Replace them with "
                "edits.replace(tensor), edits.patch_from(trace) or a function of the tensor."
            )
        plain = tensor.layout is torch.strided and not tensor.is_nested and not tensor.is_quantized
        if not plain and (self.constant or self.arithmetic or self.part):
            kind = "nested" if tensor.is_nested else "quantised" if tensor.is_quantized else str(tensor.layout)
            raise BadEdit(
                f"{self} cannot be applied to {moment.label}, which is a tensor of a special kind ({kind}). Use a "
                "function of the tensor, for the whole of it."
            )

    def _check_result(self, before: Tensor, after: Any, moment: Moment) -> None:
        if not isinstance(after, Tensor):
            raise BadEdit(
                f"{self} of {moment.label} returned {told(after)}. A function used as an edit must return the "
                "changed tensor."
            )
        problems = [
            f"the {name} from {old} to {new}"
            for name, old, new in (
                ("shape", shape_of(before), shape_of(after)),
                ("dtype", before.dtype, after.dtype),
                ("device", before.device, after.device),
            )
            if old != new
        ]
        if problems:
            raise BadEdit(
                f"{self} of {moment.label} changes {' and '.join(problems)}. What comes after it was written for the "
                "old one: return a tensor of the same shape, dtype and device."
            )

    def __repr__(self) -> str:
        return f"edits.{self.text}"


def apply_all(edits: Iterable[Applied], tensors: list[Tensor], apply_one: ApplyOne | None = None) -> list[Tensor]:
    """Edits of one operation, one after the other, to the tensors that it returned."""
    changed = list(tensors)
    for edit, label, forward in edits:
        moments = [Moment(label, output, forward) for output in range(len(tensors))]
        hit = [moment for moment in moments if edit.applies_to(tensors[moment.output], moment)]
        if not hit and edit.part.outputs is not None:
            raise BadEdit(
                f"{edit} of {label}: there is no output {max(edit.part.outputs)}, it returned "
                f"{len(tensors)} tensor{'s' * (len(tensors) != 1)}."
            )
        for moment in hit or moments[:1]:  # one that fits nowhere says why
            tensor = changed[moment.output]
            changed[moment.output] = apply_one(edit, tensor, moment) if apply_one else edit.apply(tensor, moment)
    return changed


def _laid_out_like(before: Tensor, after: Tensor, fresh: bool) -> Tensor:
    """The same numbers in the memory layout that the code downstream expects, in memory of their own."""
    if before.layout is not torch.strided or before.is_nested or before.is_quantized:
        return after
    if fresh and after.stride() == before.stride() and not (after.is_conj() or after.is_neg()):
        return after
    own = new_like(before)
    return own.copy_(after)


def new_like(tensor: Tensor) -> Tensor:
    """Unfilled memory for a tensor with the same shape and, where no two elements share a place, the same strides."""
    if any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True)):
        return torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    try:
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    except RuntimeError:  # strides that only make sense for a view
        return torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)


def told(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"tensor of shape {tuple(value.shape)}" if value.numel() != 1 else f"{value.item():g}"
    text = repr(value)
    return text if len(text) < 60 else f"{type(value).__name__} object"


def numbers_of(dtype: torch.dtype) -> str:
    if dtype is torch.bool:
        return "truth values (torch.bool)"
    whole = not (dtype.is_floating_point or dtype.is_complex)
    return f"{'whole numbers' if whole else 'numbers'} ({dtype})"


def shape_of(tensor: Tensor) -> tuple[Any, ...]:
    return tuple(tuple(part.shape) for part in tensor.unbind()) if tensor.is_nested else tuple(tensor.shape)
