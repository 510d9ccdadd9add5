"""The optimizers of a run: which of them move watched models, which end a step, what a step is called after them.

    forward ─► backward ─► a.step() ─► b.step() ─► forward …

Nobody says that b will follow a, so where several optimizers are known the first step waits for the next forward pass.
From then on it is known which optimizer ends a step.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

from torch.optim import Optimizer

from endoscope.recording.metrics import held_number
from endoscope.recording.watch import Watch


class Optimizers:
    """Those that move any of the watched models."""

    def __init__(self, watches: Sequence[Watch]) -> None:
        self._watches: Sequence[Watch] = watches
        self.everywhere = False  # all optimizers of the process are hooked
        self.running: list[int] = []  # ids of those whose `step` runs, the outermost first
        self._others_came = True  # another optimizer has stepped since the first one did
        self._has_looked = self._found = False
        self._several: bool | None = None  # None: not worked out
        self.iteration = -1  # returns to the first optimizer so far
        self._known: weakref.WeakKeyDictionary[Any, None] = weakref.WeakKeyDictionary()
        self._others: weakref.WeakSet[Any] = weakref.WeakSet()  # optimizers that move nothing that is watched
        self._ends: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()  # does a forward pass follow
        self._last: weakref.ref[Any] | None = None  # the one that stepped last, until a forward pass begins
        self._first: weakref.ref[Any] | None = None
        self._names: weakref.WeakKeyDictionary[Any, list[str]] = weakref.WeakKeyDictionary()

    def add(self, optimizers: Sequence[Any]) -> None:
        for optimizer in optimizers:
            self._known[optimizer] = None
        self._others.clear()
        self._names.clear()
        self._several = None

    def clear(self) -> None:
        self._watches = ()
        self._known.clear()

    @property
    def known(self) -> bool:
        return bool(self._known)

    @property
    def are_several(self) -> bool:
        """Whether there are several that do not move the same parameters: a wrapper and what it wraps are one."""
        if len(self._known) < 2:
            return False
        if self._several is None:
            sets = {frozenset(id(p) for group in o.param_groups for p in group["params"]) for o in list(self._known)}
            self._several = len(sets) > 1
        return self._several

    def exist(self) -> bool:
        """Whether any optimizer of this process holds a watched parameter. It looks through all objects, once."""
        if not self._has_looked:
            self._has_looked = True
            found = [one for one in gc.get_objects() if issubclass(type(one), Optimizer)]
            self._found = any(watch.moved_by(optimizer) for optimizer in found for watch in self._watches)
        return self._found

    @property
    def is_inner(self) -> bool:
        """Whether the optimizer that runs was called by another one."""
        return len(self.running) > 1

    # ---- updates ---------------------------------------------------------------------------------

    def begins(self, optimizer: Any) -> bool:
        """Whether an update begins that is of interest; hooks may tell twice."""
        if not self._moves(optimizer) or id(optimizer) in self.running:
            return False
        self.running.append(id(optimizer))
        last = self._last() if self._last is not None else None
        if last is not None and last is not optimizer and not self.is_inner:
            self._ends[last] = False
        return True

    def ends(self, optimizer: Any) -> bool:
        """Whether the outermost update ends."""
        if id(optimizer) not in self.running:
            return False
        is_outermost = self.running[0] == id(optimizer)
        del self.running[self.running.index(id(optimizer)) :]
        return is_outermost

    def _moves(self, optimizer: Any) -> bool:
        if optimizer in self._known:
            return True
        if optimizer in self._others:
            return False
        if any(watch.moved_by(optimizer) for watch in self._watches):
            self._known[optimizer] = None
            self._names.clear()
            self._several = None
            return True
        self._others.add(optimizer)
        return False

    def end_step(self, optimizer: Any) -> bool:
        """Whether a step ends with this update."""
        self._last = weakref.ref(optimizer)
        return len(self._known) == 1 or self._ends.get(optimizer, False)

    def forward_begins(self) -> None:
        """After an update: that optimizer ends steps, unless another one was seen to follow it."""
        last, self._last = self._last() if self._last is not None else None, None
        if last is not None:
            self._ends.setdefault(last, True)

    def came_late(self, optimizer: Any) -> bool:
        """Whether the step that has just ended should have waited for this one."""
        last = self._last() if self._last is not None else None
        if last is None or last is optimizer:
            return False
        self._ends[last] = False
        self._last = weakref.ref(optimizer)
        return True

    def count(self, optimizer: Any) -> int:
        """The number of the iteration: it grows with each return to the first optimizer."""
        if self._first is None or self._first() is None:
            self._first = weakref.ref(optimizer)
        if self._first() is optimizer and (self._others_came or not self.are_several):
            self.iteration += 1
        self._others_came = self._first() is not optimizer
        return self.iteration

    # ---- words -----------------------------------------------------------------------------------

    def type_of(self, ids: Sequence[int]) -> str:
        """What a step is called: the name of what it updates, where several optimizers take turns."""
        if not ids or len(set(ids)) >= len(self._known) or not self.are_several:
            return ""
        return ", ".join(dict.fromkeys(self._name(o) for o in list(self._known) if id(o) in ids))

    def _name(self, optimizer: Any) -> str:
        own = {id(p) for group in optimizer.param_groups for p in group["params"]}
        moved = [(watch, name) for watch in self._watches for name, p in watch.parameters() if id(p) in own]
        watches = list({id(watch): watch for watch, _ in moved}.values())
        if len(self._watches) > 1 and watches:
            return ", ".join(map(self._name_of, watches))
        parts = [name.split(".")[:-1] for _, name in moved]
        common = parts[0] if parts else []
        while not all(part[: len(common)] == common for part in parts):
            common = common[:-1]
        return ".".join(common) or f"optimizer {1 + list(self._known).index(optimizer)}"

    def _name_of(self, watch: Watch) -> str:
        """Its name, or else its class; with a number if that is the name of another one."""
        names = [other.name or type(other.module).__name__ for other in self._watches]
        name = watch.name or type(watch.module).__name__
        return name if names.count(name) == 1 else f"{name} {1 + list(self._watches).index(watch)}"

    def rates(self, optimizer: Any) -> Iterator[tuple[str, Any]]:
        """The learning rate of each group, under its name."""
        names = self._names.get(optimizer)
        groups = optimizer.param_groups
        if names is None or len(names) != len(groups):
            base = f"lr {self._name(optimizer)}" if self.are_several else "lr"
            names = [base] if len(groups) == 1 else [f"{base} {number}" for number in range(len(groups))]
            self._names[optimizer] = names
        for name, group in zip(names, groups, strict=True):
            rate = group.get("lr")
            if rate is not None:
                yield name, rate if rate.__class__ is float else held_number(rate)
