"""Parameters of `fully_shard` are gathered before their module runs. That is no operation of the user's.

unshard, wait_for_unshard ─► no mode of ours is on meanwhile
                          └► the whole parameter has the name of the shard that stands in the module otherwise
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from endoscope.capture.patch.active import ACTIVE
from endoscope.capture.patch.composites import OwnMode
from endoscope.capture.patch.patch_list import Patch, PatchList
from endoscope.capture.patch.torch_private import pop_mode as _pop_mode
from endoscope.capture.patch.torch_private import push_mode as _push_mode
from endoscope.capture.patch.torch_private import sharded_group
from endoscope.capture.patch.torch_private import stack_at as _stack_at
from endoscope.capture.patch.torch_private import stack_depth as _stack_depth
from endoscope.capture.record.parts import Sharded


def unseen(original: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call it while the mode on top, if that is ours, is off."""
    if not (_stack_depth() and isinstance(_stack_at(_stack_depth() - 1), OwnMode)):
        return original(*args, **kwargs)
    mode = _pop_mode()
    try:
        return original(*args, **kwargs)
    finally:
        _push_mode(mode)


def _list_patches() -> list[Patch]:
    group = sharded_group()
    return [] if group is None else [Patch(group, name, _gathering) for name in ("unshard", "wait_for_unshard")]


#: Without a patch as long as nobody has imported `fully_shard`.
SHARDING = PatchList(_list_patches)


def _gathering(original: Callable[..., Any]) -> Callable[..., Any]:
    def gather(self: Any, *args: Any, **kwargs: Any) -> Any:
        thread = threading.get_ident()
        recorders = ACTIVE.get(thread)
        if not recorders:
            return original(self, *args, **kwargs)
        ACTIVE[thread] = []  # it makes parameters and calls custom functions
        try:
            return unseen(original, (self, *args), kwargs)
        finally:
            ACTIVE[thread] = recorders
            for recorder in recorders:
                name_wholes(recorder.calls.named, map(Sharded, self.fsdp_params))

    return gather


def name_wholes(named: dict[int, Any], sharded: Iterable[Sharded]) -> None:
    """Whole parameters and their shards have the same names."""
    for one in sharded:
        found = [tensor for tensor in (one.shard, one.whole) if tensor is not None]
        known = next((named[id(tensor)] for tensor in found if id(tensor) in named), None)
        if known is not None:
            for tensor in found:
                named.setdefault(id(tensor), (*known[:2], tensor))
