"""How a DTensor lies in the processes of its mesh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

from endoscope.capture.record.parts import PLAIN, is_distributed

_ORDINARY = frozenset((*PLAIN, type(None)))


class Spec(NamedTuple):
    """Hashable, and without the tensor."""

    mesh: Any
    placements: tuple[Any, ...]
    shape: tuple[int, ...]


def spec_of(tensor: Tensor | None) -> Spec | None:
    """None for a tensor that is whole in this process."""
    if tensor is None or not is_distributed(tensor):
        return None
    found: Any = tensor
    return Spec(found.device_mesh, tuple(found.placements), tuple(found.shape))


def specs_of(tensors: Sequence[Tensor | None]) -> list[Spec | None]:
    """The same for several, without a turn in Python for each where all are whole."""
    if _ORDINARY.issuperset(map(type, tensors)):
        return [None] * len(tensors)
    return list(map(spec_of, tensors))


def is_summand(spec: Spec | None) -> bool:
    """Whether each process has only a summand of the tensor."""
    return spec is not None and any(one.is_partial() for one in spec.placements)


def of_gradient(spec: Spec) -> Spec:
    """Of the gradient of a tensor that was taken out of a distributed one: where that is a summand, all have the same.

    So DTensor promises it, in `to_local` and in `from_local`.
    """
    if not is_summand(spec):
        return spec
    from torch.distributed.tensor import Replicate  # whoever has such a tensor has imported it

    return spec._replace(placements=tuple(Replicate() if one.is_partial() else one for one in spec.placements))
