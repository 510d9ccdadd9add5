"""Memory that nobody has filled yet (`torch.empty`): who fills which part of it, and who computes with the rest?

    empty ─► a mask over its memory: nothing is filled       kept until all of it is
    y[0] = … · y.copy_(…) · y[index] = … ─► filled there
    an operation reads y ─► is every element of y filled?     if not, it was written unseen, or by nobody

Nothing is asked while every `empty` of the run has been filled, which is nearly always.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from endoscope.capture.data.functions import SHARING, FunctionFacts
from endoscope.capture.patch.torch_private import out_of_sight
from endoscope.capture.record.functions import OVERWRITERS, overwritten
from endoscope.capture.record.leaves import tensors_in
from endoscope.capture.record.regions import storage_key, unwrapped

#: Functions for which the values of an argument do not matter: they take its shape, or hand its memory on.
SHAPE_READERS = frozenset(
    """zeros_like ones_like empty_like full_like rand_like randn_like new_zeros new_ones new_full new_empty detach
    view view_as reshape flatten unflatten transpose permute movedim swapaxes T t mT getitem select narrow unbind
    chunk split tensor_split unfold expand expand_as diagonal squeeze unsqueeze as_strided data to contiguous set
    resize Parameter as_subclass swapdims view_as_real view_as_complex real imag""".split()
)

_EVERYTHING = (*OVERWRITERS, "_foreach_copy_", "_foreach_zero_", "data=", "real=", "imag=")


def _at_index(mask: Tensor, args: Any, kwargs: Any) -> None:
    mask[args[1]] = True


def _along_dim(mask: Tensor, args: Any, kwargs: Any) -> None:
    dim, index = (*args[1:3], *(kwargs.get(name) for name in ("dim", "index")[len(args) - 1 :]))[:2]
    mask.index_fill_(dim, index, True)


def _scattered(mask: Tensor, args: Any, kwargs: Any) -> None:
    dim, index = (*args[1:3], *(kwargs.get(name) for name in ("dim", "index")[len(args) - 1 :]))[:2]
    mask.scatter_(dim, index, True)


def _under_mask(mask: Tensor, args: Any, kwargs: Any) -> None:
    mask.logical_or_(args[1] if len(args) > 1 else kwargs["mask"])


def _put(mask: Tensor, args: Any, kwargs: Any) -> None:
    index = args[1] if len(args) > 1 else kwargs["index"]
    mask.put_(index, torch.ones(index.shape, dtype=torch.bool, device=mask.device))


def _at_indices(mask: Tensor, args: Any, kwargs: Any) -> None:
    indices = args[1] if len(args) > 1 else kwargs["indices"]
    mask.index_put_(indices, torch.ones((), dtype=torch.bool, device=mask.device))


#: In-place functions that fill a part and read nothing of what was there.
_PARTS: dict[str, Callable[[Tensor, Any, Any], None]] = {
    "__setitem__": _at_index,
    "index_put_": _at_indices,
    "index_copy_": _along_dim,
    "index_fill_": _along_dim,
    "scatter_": _scattered,
    "masked_fill_": _under_mask,
    "masked_scatter_": _under_mask,
    "put_": _put,
}


class _Memory:
    """One storage that was handed out unfilled."""

    def __init__(self, tensor: Tensor, maker: str) -> None:
        inner = unwrapped(tensor)
        self.maker = maker
        self.storage = inner.untyped_storage()  # held, so that its address stays its own
        self.width = inner.element_size()
        self.filled = torch.zeros(self.storage.nbytes() // self.width, dtype=torch.bool, device=inner.device)

    def mask(self, tensor: Tensor) -> Tensor:
        """The part of the mask that lies under a tensor; elements of another width are several, or a part of one."""
        inner = unwrapped(tensor)
        if inner.element_size() != self.width:
            return self.filled
        return self.filled.as_strided(inner.shape, inner.stride(), inner.storage_offset())


class Unfilled:
    """The unfilled memory of one run."""

    def __init__(self) -> None:
        self.pending: dict[int, _Memory] = {}  # memory -> what is known of it; the hot path asks whether it is empty

    def add(self, tensor: Tensor, maker: str) -> None:
        key = storage_key(tensor)
        if key is not None and tensor.numel() and tensor.layout is torch.strided and not tensor.is_meta:
            with out_of_sight(), contextlib.suppress(RuntimeError):
                self.pending[key] = _Memory(tensor, maker)

    def read_by(self, facts: FunctionFacts, args: Any, kwargs: Any) -> str | None:
        """What made the unfilled memory that a coming call computes with; None if it computes with none."""
        if facts.type in SHAPE_READERS or facts.name in SHARING:
            return None
        written = overwritten(facts, args, kwargs) if facts.written or "out" in kwargs else []
        for tensor in tensors_in((args, kwargs)):
            memory = self.pending.get(storage_key(tensor) or 0)
            if memory is None or (any(tensor is other for other in written) and _only_fills(facts, kwargs)):
                continue
            if not self._is_filled(memory, tensor):
                del self.pending[storage_key(tensor) or 0]
                return memory.maker
        return None

    def written_by(self, facts: FunctionFacts, args: Any, kwargs: Any, written: list[Tensor]) -> None:
        for tensor in written:
            key = storage_key(tensor) or 0
            memory = self.pending.get(key)
            if memory is not None and self._fill(memory, facts, tensor, (args, kwargs)):
                del self.pending[key]

    def _is_filled(self, memory: _Memory, tensor: Tensor) -> bool:
        with out_of_sight():
            return bool(memory.mask(tensor).all())

    def _fill(self, memory: _Memory, facts: FunctionFacts, tensor: Tensor, given: tuple[Any, Any]) -> bool:
        """Whether all of the memory is filled now, or nobody can say."""
        part = _PARTS.get(facts.name)
        with out_of_sight(), torch.no_grad():
            try:
                mask = memory.mask(tensor)
                if part is None:
                    mask.fill_(True)
                elif unwrapped(tensor) is tensor and mask is not memory.filled:
                    part(mask, *given)
                else:
                    return True
                return bool(memory.filled.all())
            except Exception:  # an index inside of `vmap`, or on another device
                return True


def _only_fills(facts: FunctionFacts, kwargs: Any) -> bool:
    return facts.name in _EVERYTHING or facts.name in _PARTS or "out" in kwargs
