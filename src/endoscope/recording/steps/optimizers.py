"""The optimizers of a run: which of them move watched models, which end a step, what a step is called after them.

    forward ─► backward ─► a.step() ─► b.step() ─► forward …

Nobody says that b will follow a, so where several optimizers are known the first step waits for the next forward pass.
From then on it is known which optimizer ends a step.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from torch.optim import Optimizer

from endoscope.recording.output.metrics import held_number
from endoscope.recording.steps.watch import Watch

UNCERTAIN_STEPS = 8  # of one type in a row, after which the next one is taken for another of it


class Turns:
    """Guesses the type of the step that begins: as it went the last time, or else the type of the step before.

    So the generator is expected after as many steps of the critic in a row as the last time. While nobody knows how
    many that are, the type "" is guessed, which is that of no step here: then the first one of each type is not taken
    for one more of the type before.
    """

    def __init__(self) -> None:
        self._type, self._in_a_row = "", 0  # of the last steps
        self._before_others: dict[str, tuple[int, str]] = {}  # type -> how often in a row it came, and what came then

    def came(self, type_: str) -> None:
        if type_ == self._type:
            self._in_a_row += 1
        else:
            self._before_others[self._type] = self._in_a_row, type_
            self._type, self._in_a_row = type_, 1

    def next(self) -> str:
        known = self._before_others.get(self._type)
        if known is None:
            return "" if self._in_a_row <= UNCERTAIN_STEPS else self._type
        in_a_row, other = known
        return other if in_a_row == self._in_a_row else self._type


class _Known:
    """What is known of an optimizer that moves something that is watched."""

    def __init__(self, optimizer: Any, gone: Callable[[Any], object]) -> None:
        self.optimizer = weakref.ref(optimizer, gone)
        self.ends_steps: bool | None = None  # whether a forward pass follows its update; None: not seen yet
        self.name = ""  # "": not worked out
        self.rates: list[str] = []  # names of the learning rates of its groups; empty: not worked out
        self.is_told = False  # its settings are in the recording

    def parameters(self) -> frozenset[int]:
        """Their ids."""
        optimizer = self.optimizer()
        return frozenset(id(p) for group in (optimizer.param_groups if optimizer else ()) for p in group["params"])


class Optimizers:
    """Those that move any of the watched models."""

    def __init__(self, watches: Sequence[Watch]) -> None:
        self._watches: Sequence[Watch] = watches
        self.everywhere = False  # all optimizers of the process are hooked
        self.running: list[int] = []  # ids of those whose `step` runs, the outermost first
        self.closures = 0  # that they have called, and that run
        self.iteration = -1  # returns to the first optimizer so far
        self._known: dict[int, _Known] = {}  # by id: a dictionary of weak keys takes a microsecond for each look
        self._others: weakref.WeakSet[Any] = weakref.WeakSet()  # optimizers that move nothing that is watched
        self._last: _Known | None = None  # the one that stepped last, until a forward pass begins
        self._first: _Known | None = None  # the one that stepped first of all
        self._others_came = True  # another optimizer has stepped since the first one did
        self._several: bool | None = None  # None: not worked out
        self._exist: bool | None = None  # the same

    def add(self, optimizers: Sequence[Any]) -> None:
        for optimizer in optimizers:
            identity = id(optimizer)
            if identity not in self._known:
                self._known[identity] = _Known(optimizer, partial(self._forget, identity))
        self._several = None
        for known in self._known.values():
            known.name, known.rates = "", []

    def _forget(self, identity: int, _: Any) -> None:
        self._known.pop(identity, None)

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
            self._several = len({known.parameters() for known in self._known.values()}) > 1
        return self._several

    def exist(self) -> bool:
        """Whether any optimizer of this process holds a watched parameter. It looks through all objects, once."""
        if self._exist is None:
            found = [one for one in gc.get_objects() if issubclass(type(one), Optimizer)]
            self._exist = any(watch.moved_by(optimizer) for optimizer in found for watch in self._watches)
        return self._exist

    @property
    def is_inner(self) -> bool:
        """Whether the optimizer that runs was called by another one."""
        return len(self.running) > 1

    # ---- updates ---------------------------------------------------------------------------------

    def begins(self, optimizer: Any) -> bool:
        """Whether an update begins that is of interest; hooks may tell twice."""
        if id(optimizer) in self.running or not self._moves(optimizer):
            return False
        self.running.append(id(optimizer))
        if self._last is not None and self._last is not self._known[id(optimizer)] and not self.is_inner:
            self._last.ends_steps = False
        return True

    def _moves(self, optimizer: Any) -> bool:
        if id(optimizer) in self._known:
            return True
        if optimizer not in self._others:
            if any(watch.moved_by(optimizer) for watch in self._watches):
                self.add([optimizer])
            else:
                self._others.add(optimizer)
        return id(optimizer) in self._known

    def ends(self, optimizer: Any) -> bool:
        """Whether the outermost update ends."""
        if id(optimizer) not in self.running:
            return False
        is_outermost = self.running[0] == id(optimizer)
        del self.running[self.running.index(id(optimizer)) :]
        return is_outermost

    def forget_what_raised(self) -> None:
        """Nobody tells the end of an update that an exception has ended: it shows when the model is called outside of
        any closure."""
        if self.running and not self.closures:
            self.running.clear()

    def end_step(self, optimizer: Any) -> bool:
        """Whether a step ends with this update."""
        self._last = self._known[id(optimizer)]
        return len(self._known) == 1 or bool(self._last.ends_steps)

    def forward_begins(self) -> None:
        """After an update: that optimizer ends steps, unless another one was seen to follow it."""
        last, self._last = self._last, None
        if last is not None and last.ends_steps is None:
            last.ends_steps = True

    def came_late(self, optimizer: Any) -> bool:
        """Whether the step that has just ended should have waited for this one."""
        last, this = self._last, self._known[id(optimizer)]
        if last is None or last is this:
            return False
        last.ends_steps, self._last = False, this
        return True

    def count(self, optimizer: Any) -> int:
        """The number of the iteration: it grows with each return to the first optimizer."""
        if self._first is None or self._first.optimizer() is None:
            self._first = self._known[id(optimizer)]
        is_first = self._first.optimizer() is optimizer
        if is_first and (self._others_came or not self.are_several):
            self.iteration += 1
        self._others_came = not is_first
        return self.iteration

    # ---- words -----------------------------------------------------------------------------------

    def type_of(self, ids: Sequence[int]) -> str:
        """What a step is called: the name of what it updates, where several optimizers take turns."""
        if len(self._known) < 2 or not ids or len(set(ids)) >= len(self._known) or not self.are_several:
            return ""
        updated = [known for identity, known in list(self._known.items()) if identity in ids]
        return ", ".join(dict.fromkeys(map(self._name, updated)))

    def _name(self, known: _Known) -> str:
        """Of the models that it came with, or else moves; or of the part that it moves of the only one."""
        if not known.name:
            own = known.parameters()
            moved = [(watch, name) for watch in self._watches for name, p in watch.parameters() if id(p) in own]
            watches = self._handed_over_with(known) or list({id(watch): watch for watch, _ in moved}.values())
            if len(self._watches) > 1 and watches:
                known.name = ", ".join(map(self._name_of, watches))
            else:
                number = 1 + list(self._known.values()).index(known)
                known.name = _common_part([name for _, name in moved]) or f"optimizer {number}"
        return known.name

    def _handed_over_with(self, known: _Known) -> list[Watch]:
        optimizer = known.optimizer()
        return [watch for watch in self._watches if any(one is optimizer for one in watch.optimizers)]

    def _name_of(self, watch: Watch) -> str:
        """Its name, or else its class; with a number if that is the name of another one."""
        names = [other.name or type(other.module).__name__ for other in self._watches]
        name = watch.name or type(watch.module).__name__
        return name if names.count(name) == 1 else f"{name} {1 + list(self._watches).index(watch)}"

    def settings(self, optimizer: Any) -> dict[str, Any]:
        """Its class and the numbers of each group, such as momentum; empty if that was asked before."""
        known = self._known[id(optimizer)]
        if known.is_told:
            return {}
        known.is_told = True
        groups = [
            {name: value for name, value in group.items() if _is_plain(value)} for group in optimizer.param_groups
        ]
        return {"class": type(optimizer).__name__, "groups": groups}

    def rates(self, optimizer: Any) -> Iterator[tuple[str, Any]]:
        """The learning rate of each group, under its name."""
        known, groups = self._known[id(optimizer)], optimizer.param_groups
        if len(known.rates) != len(groups):
            base = "lr"
            if self.are_several:  # of one for each parameter, several have the name of the module in which they lie
                alike = [other for other in self._known.values() if self._name(other) == self._name(known)]
                base = f"lr {self._name(known)}" + (f"-{alike.index(known) + 1}" if alike[0] is not known else "")
            known.rates = [base] if len(groups) == 1 else [f"{base} {number}" for number in range(len(groups))]
        for name, group in zip(known.rates, groups, strict=True):
            rate = group.get("lr")
            if rate is not None:
                yield name, rate if rate.__class__ is float else held_number(rate)


def _is_plain(value: Any) -> bool:
    """A number, or several, such as the betas of Adam."""
    if isinstance(value, (tuple, list)):
        return all(isinstance(one, (int, float)) for one in value)
    return isinstance(value, (bool, int, float))


def _common_part(names: Sequence[str]) -> str:
    """The address of the module in which all these parameters lie."""
    parts = [name.split(".")[:-1] for name in names]
    common = parts[0] if parts else []
    while not all(part[: len(common)] == common for part in parts):
        common = common[:-1]
    return ".".join(common)
