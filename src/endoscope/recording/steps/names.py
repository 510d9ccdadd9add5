"""Names of everything in the watched models, worked out again only when a module or a tensor was replaced.

Asking torch for all names takes longer than a small network takes to run; comparing identities does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, compress
from operator import attrgetter, is_, methodcaller
from typing import Any

import torch
from torch import Tensor

from endoscope.capture.data.calls import Calls
from endoscope.capture.patch.sharding import name_wholes
from endoscope.capture.record.parts import Sharded, sharded_in
from endoscope.capture.record.regions import is_uninitialised
from endoscope.recording.ranks.relations import Relations
from endoscope.recording.steps.watch import Watch

_values, _forward_hooks = methodcaller("values"), attrgetter("_forward_hooks")


class Names:
    """Modules, parameters and buffers of all watched models."""

    def __init__(self, watches: Sequence[Watch]) -> None:
        self._watches = watches
        self._tables: list[dict[str, Any]] = []  # in which modules keep their parameters, buffers and modules
        self._seen: list[Any] = []  # what stood there when names were worked out last
        self._all_modules: list[torch.nn.Module] = []
        self.sharded: list[Sharded] = []  # parameters that `fully_shard` puts into modules and takes out again
        self._buffer_places: list[tuple[dict[str, Any], str, Any]] = []  # where each stands, and what stood there
        self._lazy: list[Any] = []  # parameters that had no shape then
        self.version = 0  # counts how often names were worked out
        self.calls = Calls()  # the same names for a recorder of operations
        self.modules: dict[int, str] = {}  # id of a module -> its address
        self._addresses: set[str] = set()
        self.roots: dict[int, Watch] = {}  # id of a watched model -> its watch
        self.parameters: list[tuple[str, Tensor]] = []
        self.exchanged: list[str] = []  # parameters that were another object at the last look
        self.tensors: list[Tensor] = []  # the parameters without their names
        self.positions: dict[int, int] = {}  # id of a parameter -> its place in the list
        self.buffers: list[tuple[str, Tensor]] = []
        self.buffer_ids: set[int] = set()
        self.batch_dim: int | None = 0  # of the first model
        self.relations: Relations | None = None  # to the other processes of the job, if there are any

    def refresh(self) -> None:
        """Look again if any module or parameter was replaced, added or removed since."""
        self.exchanged = []
        if not self.version or not self._is_the_same():
            before = dict(self.parameters)
            self._take()
            self.exchanged = [name for name, p in self.parameters if before.get(name, p) is not p]

    def refresh_buffers(self) -> None:
        """The same for buffers, before a step is measured or traced."""
        if any(table.get(key) is not seen for table, key, seen in self._buffer_places):
            self._take_buffers()
        name_wholes(self.calls.named, self.sharded)

    def look_again(self) -> None:
        """There is another model."""
        self._seen, self._tables = [None], []

    def clear(self) -> None:
        """Let go of the models."""
        self._watches = []
        self._take()

    def all_modules(self) -> list[torch.nn.Module]:
        return self._all_modules

    def modules_with_hooks(self) -> list[torch.nn.Module]:
        """Those with forward hooks; without a turn in Python for each, where there are none but ours."""
        return list(compress(self._all_modules, map(_forward_hooks, self._all_modules)))

    def _is_the_same(self) -> bool:
        seen = self._contents()
        same = len(seen) == len(self._seen) and all(map(is_, seen, self._seen))
        # A lazy parameter that gets its shape stays the same object.
        return same and all(map(is_uninitialised, self._lazy))

    @property
    def are_waiting_for_shapes(self) -> bool:
        """Whether the last look has met lazy parameters, which cannot be recorded before they have a shape."""
        return bool(self._lazy)

    def _contents(self) -> list[Any]:
        found = list(chain.from_iterable(map(_values, self._tables)))
        return [*found, *[one.shard for one in self.sharded]] if self.sharded else found

    def _take(self) -> None:
        modules = {id(m): m for watch in self._watches for m in watch.module.modules()}
        self._all_modules = list(modules.values())
        self.sharded = list(sharded_in(self._all_modules))
        shards = {id(one.there): one.shard for one in self.sharded}
        changing = {id(m) for m in self._all_modules if any(id(p) in shards for p in m._parameters.values())}
        self._tables = [m._parameters for m in self._all_modules if id(m) not in changing]
        self._tables += [m._modules for m in self._all_modules]
        self._seen = self._contents()
        self._lazy = [found for found in self._seen if isinstance(found, Tensor) and is_uninitialised(found)]
        self.version += 1
        parameters: dict[int, tuple[str, Tensor]] = {}
        self.roots = {id(watch.module): watch for watch in self._watches}
        for watch in self._watches:
            for name, there in watch.parameters():
                parameter = shards.get(id(there), there)
                parameters.setdefault(id(parameter), (name, parameter))
        self.parameters = list(parameters.values())
        self.tensors = [parameter for _, parameter in self.parameters]
        self.positions = {identity: position for position, identity in enumerate(parameters)}
        self.batch_dim = self._watches[0].batch_dim if self._watches else 0
        self._take_buffers()
        self.modules = {identity: address for identity, (address, _) in self.calls.addresses.items()}
        self._addresses = set(self.modules.values())

    def _take_buffers(self) -> None:
        """A module may put another tensor there in each step, so this is done again for steps that are traced."""
        buffers: dict[int, tuple[str, Tensor]] = {}
        self.calls = Calls()
        for watch in self._watches:
            self.calls.know(watch.module, watch.name)
            for name, buffer in watch.buffers():
                buffers.setdefault(id(buffer), (name, buffer))
        self.buffers = [entry for identity, entry in buffers.items() if identity not in self.positions]
        self.buffer_ids = {id(buffer) for _, buffer in self.buffers}
        tables = [m._buffers for m in self._all_modules if isinstance(m._buffers, dict)]  # those of TorchScript are not
        self._buffer_places = [(table, key, seen) for table in tables for key, seen in table.items()]

    def free(self, word: str) -> str:
        """`input` and `output`, unless a module has that very name."""
        return f"({word})" if word in self._addresses else word
