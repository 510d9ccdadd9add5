"""Finds the model that a script trains, and its optimizers, just before the first training step begins.

    Optimizer.__init__ ─► an optimizer is known
    module(x) ─► in training mode, and a known optimizer holds a parameter of it ─► found: the call has not begun yet
    optimizer.step(closure) ─► found: neither the step nor the call has begun yet

The outermost module is called first. Two names of torch are patched until then, and put back before the call goes on.
"""

from __future__ import annotations

import functools
import gc
import os
import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch.nn import Module
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook


class Found(NamedTuple):
    """A model, and the optimizers that hold parameters of it."""

    model: Module
    optimizers: list[Optimizer]


class Seen:
    """What was looked at, for the sentence that says why nothing was found."""

    def __init__(self) -> None:
        self.called: Counter[tuple[str, str]] = Counter()  # (class, mode) -> calls
        self.sizes: dict[str, int] = {}  # class -> parameters of the first module of it
        self.optimizers: Counter[str] = Counter()  # class -> steps; 0 of one that was made and never used
        self.held: dict[str, int] = {}  # class -> parameters of the largest optimizer of it

    def count_call(self, module: Module, mode: str) -> None:
        name = type(module).__name__
        if name not in self.sizes:
            self.sizes[name] = sum(1 for _ in module.parameters())
        self.called[name, mode] += 1

    def count_optimizer(self, optimizer: Optimizer, steps: int) -> None:
        name = type(optimizer).__name__
        self.optimizers[name] += steps
        self.held[name] = max(self.held.get(name, 0), len(_held_by(optimizer)))

    @property
    def largest(self) -> str:
        """The class of the module with the most parameters; empty if none with parameters was called."""
        name = max(self.sizes, key=lambda one: self.sizes[one], default="")
        return name if self.sizes.get(name) else ""


class Search:
    """Looks at calls of modules until it has found something; `found` is called then, once."""

    def __init__(self, found: Callable[[list[Found]], None]) -> None:
        self.seen = Seen()
        self._found = found
        self._is_over = False
        self._process = os.getpid()
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()
        self._rejected: weakref.WeakSet[Module] = weakref.WeakSet()
        self._calling: Any = Module.__call__
        self._making: Any = Optimizer.__init__
        self._our_call: Any = None
        self._our_init: Any = None
        self._hook: Any = None

    def begin(self) -> None:
        search, calling, making = self, self._calling, self._making

        @functools.wraps(calling)
        def call(module: Module, *args: Any, **kwargs: Any) -> Any:
            search.look(module)
            return calling(module, *args, **kwargs)

        @functools.wraps(making)
        def init(optimizer: Optimizer, *args: Any, **kwargs: Any) -> None:
            making(optimizer, *args, **kwargs)
            search.know(optimizer, 0)

        self._our_call, self._our_init = call, init
        Module.__call__ = call  # type: ignore[method-assign]
        Optimizer.__init__ = init  # type: ignore[method-assign, assignment]
        self._hook = register_optimizer_step_pre_hook(self._step_begins)

    def end(self) -> None:
        """Nothing is left on torch. A patch of somebody else's that stands on ours goes on calling it, for nothing."""
        self._is_over = True
        if Module.__call__ is self._our_call:
            Module.__call__ = self._calling  # type: ignore[method-assign]
        if Optimizer.__init__ is self._our_init:
            Optimizer.__init__ = self._making  # type: ignore[method-assign]
        if self._hook is not None:
            self._hook.remove()

    def know(self, optimizer: Optimizer, steps: int) -> None:
        if self._is_over:
            return
        if optimizer not in self._known:
            self._known.add(optimizer)
            self._rejected.clear()
        self.seen.count_optimizer(optimizer, steps)

    def look(self, module: Module) -> None:
        """Whether this call is the first one of the training."""
        if self._is_over or os.getpid() != self._process:
            return
        trains = module.training and torch.is_grad_enabled()
        self.seen.count_call(module, "training" if trains else "no gradients" if module.training else "evaluation")
        if not trains or module in self._rejected:
            return
        found = choose(module, list(self._known))
        if found:
            self._end_with(found)
        else:
            self._rejected.add(module)

    def _step_begins(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        """An optimizer with a closure calls the model inside of its step, which is watched from its start."""
        self.know(optimizer, 1)
        has_closure = any(map(callable, [*args[1:], *kwargs.values()]))
        if not has_closure or self._is_over or os.getpid() != self._process:
            return
        found = choose(None, [optimizer, *(self._known - {optimizer})])
        if any(one.model.training for one in found):
            self._end_with(found)

    def _end_with(self, found: list[Found]) -> None:
        self.end()
        self._found(found)


def choose(called: Module | None, optimizers: Iterable[Optimizer]) -> list[Found]:
    """The models that these optimizers train, the called one first; nothing if none of them trains that one."""
    models: dict[Module, list[Optimizer]] = {}
    own = set() if called is None else _parameters(called)
    by_use = sorted(optimizers, key=lambda one: not _held_by(one) & own)
    if called is not None and not (by_use and _held_by(by_use[0]) & own):
        return []
    for optimizer in by_use:
        for model in _holders(_held_by(optimizer), called, list(models)):
            models.setdefault(model, []).append(optimizer)
    return [Found(_unwrapped(model), their) for model, their in models.items()]


def _holders(held: set[int], called: Module | None, chosen: list[Module]) -> list[Module]:
    """The module that has all of these parameters, the called one if it has; else all outermost ones that have some."""
    known = [model for model in [*chosen, called] if model is not None and held <= _parameters(model)]
    if known or not held:
        return known[:1]
    taken = set().union(*map(_parameters, chosen)) - held  # by models that have an optimizer of their own
    others = [one for one in gc.get_objects() if issubclass(type(one), Module)]
    holders = {one: own for one in others if (own := _parameters(one)) & held and not own & taken}
    whole = [own for own in holders.values() if held <= own]
    if whole:
        smallest = min(whole, key=len)
        return _outermost([one for one, own in holders.items() if own == smallest])[:1]
    return _outermost(list(holders))


def _outermost(modules: list[Module]) -> list[Module]:
    inner = {id(child) for one in modules for child in one.modules() if child is not one}
    return [one for one in modules if id(one) not in inner]


def _parameters(module: Module) -> set[int]:
    return {id(parameter) for parameter in module.parameters()}


def _held_by(optimizer: Optimizer) -> set[int]:
    return {id(parameter) for group in getattr(optimizer, "param_groups", ()) for parameter in group["params"]}


def _unwrapped(model: Module) -> Module:
    """The model inside of torch's wrappers for several devices, whose names would stand before all others."""
    wrappers = (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)
    return model.module if isinstance(model, wrappers) else model
