"""Tensors of which this process has a part, or that a collective still fills: what of them is in this process.

    DTensor                ─► its local tensor: a shard, a copy or a summand of the whole
    AsyncCollectiveTensor  ─► the tensor that the collective fills; whoever reads its numbers has to wait

Modules of `fully_shard` have shards of their parameters, and for the time of a call the whole ones: see `Sharded`.

What is computed on a DTensor may talk to other processes, which need not compute the same just now: they would wait for
each other for ever. So whatever we compute, we compute on these parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from torch import Tensor
from torch.nn import Parameter

PLAIN = (Tensor, Parameter)
_PLACES = {"DTensor": "_local_tensor", "AsyncCollectiveTensor": "elem"}  # where each keeps what is in this process


def part_of(tensor: Tensor) -> Tensor:
    """What is in this process; of an ordinary tensor that is the tensor."""
    while tensor.__class__ not in PLAIN:
        place = _place_in(tensor.__class__)
        if not place:
            break
        tensor = getattr(tensor, place)
    return tensor


def here(tensor: Tensor) -> Tensor:
    """The same to be read: a collective that fills it has ended."""
    while tensor.__class__ not in PLAIN:
        place = _place_in(tensor.__class__)
        if not place:
            break
        wait: Any = getattr(tensor, "wait", None) if place == "elem" else None
        tensor = getattr(tensor, place) if wait is None else wait()
    return tensor


def is_distributed(tensor: Any) -> bool:
    """Whether other processes have parts of it."""
    return tensor.__class__ not in PLAIN and _place_in(tensor.__class__) == "_local_tensor"


@lru_cache(256)
def _place_in(kind: type) -> str:
    """Named by their classes: importing these takes a large part of a second, and most processes never need them."""
    ours = (base.__name__ for base in kind.__mro__ if base.__module__.startswith("torch.distributed."))
    return next((_PLACES[name] for name in ours if name in _PLACES), "")


class Sharded:
    """A parameter of `fully_shard`: the optimizer has a shard, and the whole is put into the module for a call."""

    def __init__(self, parameter: Any) -> None:
        self._parameter = parameter

    @property
    def shard(self) -> Tensor:
        return self._parameter.sharded_param  # type: ignore[no-any-return]

    @property
    def whole(self) -> Tensor | None:
        """None before the first call. It stays the same object; its memory comes and goes."""
        return getattr(self._parameter, "_unsharded_param", None)

    @property
    def there(self) -> Tensor | None:
        """What stands in the module now."""
        info = self._parameter._module_info
        return getattr(info.module, info.param_name, None)


def sharded_in(modules: Iterable[Any]) -> Iterator[Sharded]:
    """All parameters that `fully_shard` has taken over."""
    for module in modules:
        if is_sharded(module):
            state = module._get_fsdp_state()
            groups = getattr(state, "_fsdp_param_groups", None)  # older versions of torch have one at most
            for group in [state._fsdp_param_group] if groups is None else groups:
                if group is not None:
                    yield from map(Sharded, group.fsdp_params)


def is_sharded(module: Any) -> bool:
    """Whether `fully_shard` was called with this module."""
    return _is_sharded(module.__class__)


@lru_cache(4096)
def _is_sharded(kind: type) -> bool:
    ours = (base.__name__ for base in kind.__mro__ if base.__module__.startswith("torch.distributed."))
    return "FSDPModule" in ours
