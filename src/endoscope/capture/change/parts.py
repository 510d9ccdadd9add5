"""Which part of a tensor an edit changes: units, positions, samples, or indices of any dimension.

samples    dimension 0 of tensors with at least two
units      the last dimension, [batch, …, features]; dimension 1 if there are four or more, [batch, channels, …]
positions  dimension 1 of tensors with three, [batch, position, features]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from endoscope.errors import BadEdit

Indices = int | slice | Sequence[int] | Tensor


def unit_dim(tensor: Tensor) -> int:
    return 1 if tensor.dim() >= 4 else tensor.dim() - 1


@dataclass(frozen=True, slots=True)
class Part:
    """Empty for the whole tensor."""

    named: tuple[tuple[str, Indices], ...] = ()  # "units", "positions", "samples" -> indices
    dims: tuple[tuple[int, Indices], ...] = ()
    outputs: tuple[int, ...] | None = None  # which of several tensors; None for all

    @classmethod
    def of(cls, units: Indices | None, positions: Indices | None, samples: Indices | None) -> Part:
        given = (("units", units), ("positions", positions), ("samples", samples))
        for name, indices in given:
            _check(name, indices)
        return cls(tuple((name, indices) for name, indices in given if indices is not None))

    def restricted(self, dims: Mapping[int, Indices] | None, outputs: Any) -> Part:
        for dim, indices in (dims or {}).items():
            if not isinstance(dim, int):
                raise BadEdit(f"dims={{{dim!r}: …}}: dimensions are whole numbers, such as dims={{2: [0, 5]}}.")
            _check(f"dims[{dim}]", indices)
        chosen = self.outputs if outputs is None else (outputs,) if isinstance(outputs, int) else tuple(outputs)
        if chosen is not None and not all(isinstance(number, int) and number >= 0 for number in chosen):
            raise BadEdit(f"outputs={outputs!r}: say which of the returned tensors, from 0.")
        return Part(self.named, (*self.dims, *(dims or {}).items()), chosen)

    def __bool__(self) -> bool:
        return bool(self.named or self.dims)

    def texts(self) -> list[str]:
        return [f"{name}={_told(indices)}" for name, indices in self.named]

    def at_texts(self) -> list[str]:
        dims = ", ".join(f"{dim}: {_told(indices)}" for dim, indices in self.dims)
        outputs = [] if self.outputs is None else [f"outputs={list(self.outputs)}"]
        return [*([f"dims={{{dims}}}"] if dims else []), *outputs]

    def mask(self, tensor: Tensor, edit: str) -> Tensor | None:
        """True where the tensor is changed; None for everywhere. `edit` is what errors call it."""
        mask: Tensor | None = None
        for name, dim, indices in self._by_dim(tensor, edit):
            line = torch.zeros(tensor.shape[dim], dtype=torch.bool, device=tensor.device)
            try:
                line[_plain(indices)] = True
            except IndexError:
                count = tensor.shape[dim]
                raise BadEdit(
                    f"{edit}: {name}={_told(indices)} is out of range. Its shape is "
                    f"{tuple(tensor.shape)}, so dimension {dim} has {count}: 0 to {count - 1}."
                ) from None
            line = line.view([-1 if d == dim else 1 for d in range(tensor.dim())])
            mask = line if mask is None else mask & line
        return mask

    def _by_dim(self, tensor: Tensor, edit: str) -> list[tuple[str, int, Indices]]:
        found = []
        for name, indices in self.named:
            dim = _dim_of(name, tensor)
            if dim is None:
                raise BadEdit(
                    f"{edit}: a tensor of shape {tuple(tensor.shape)} has no {name}, which are "
                    f"{_MEANING[name]}. Say the dimension instead: {edit.partition('(')[0]}(…)"
                    f".at(dims={{0: {_told(indices)}}})."
                )
            found.append((name, dim, indices))
        for dim, indices in self.dims:
            if not -tensor.dim() <= dim < tensor.dim():
                raise BadEdit(f"{edit}: there is no dimension {dim} in the shape {tuple(tensor.shape)}.")
            found.append((f"dims[{dim}]", dim % tensor.dim(), indices))
        return found

    def shape_in(self, tensor: Tensor) -> tuple[int, ...]:
        """The shape of what is changed."""
        return tuple(len(places) for places in self._places(tensor))

    def fill(self, value: Tensor, tensor: Tensor) -> Tensor | None:
        """A tensor of the whole shape that has `value` in the changed part; None if it does not fit there."""
        places = self._places(tensor)
        try:
            value = value.expand([len(place) for place in places])
        except RuntimeError:
            return None
        whole = torch.zeros(tensor.shape, dtype=value.dtype, device=value.device)
        if not places:
            return whole + value
        grid = torch.meshgrid([torch.tensor(place, device=value.device) for place in places], indexing="ij")
        return whole.index_put(grid, value)

    def _places(self, tensor: Tensor) -> list[list[int]]:
        places = [list(range(size)) for size in tensor.shape]
        chosen = [(_dim_of(name, tensor), indices) for name, indices in self.named]
        for dim, indices in [*chosen, *self.dims]:
            if dim is not None:
                found = torch.arange(tensor.shape[dim])[_plain(indices)].reshape(-1).tolist()
                places[dim] = [place for place in found if place in places[dim]]
        return places


_MEANING = {
    "units": "the last dimension, or dimension 1 of four or more",
    "positions": "dimension 1 of tensors with three dimensions [batch, position, features]",
    "samples": "dimension 0 of tensors with at least two dimensions",
}


def _dim_of(name: str, tensor: Tensor) -> int | None:
    if name == "units":
        return unit_dim(tensor) if tensor.dim() else None
    if name == "positions":
        return 1 if tensor.dim() == 3 else None
    return 0 if tensor.dim() >= 2 else None


def _check(name: str, indices: Any) -> None:
    if indices is None or isinstance(indices, slice) or (isinstance(indices, int) and not isinstance(indices, bool)):
        return
    if isinstance(indices, Tensor) and indices.dim() <= 1 and not indices.is_floating_point():
        return
    if isinstance(indices, Sequence) and all(isinstance(i, int) and not isinstance(i, bool) for i in indices):
        return
    raise BadEdit(f"{name}={indices!r}: use a number, a list of numbers, a slice, or a tensor of them.")


def _plain(indices: Indices) -> Any:
    return indices if isinstance(indices, (int, slice, Tensor)) else list(indices)


def _told(indices: Indices) -> str:
    if isinstance(indices, slice):
        parts = [indices.start, indices.stop, *([] if indices.step is None else [indices.step])]
        return ":".join("" if part is None else str(part) for part in parts)
    text = str(indices.tolist() if isinstance(indices, Tensor) else indices)
    return text if len(text) < 40 else f"{text[:36]}…"
