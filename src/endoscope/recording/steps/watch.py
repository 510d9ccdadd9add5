"""A watched model: its names, its parameters, and the hooks that tell when a step begins and ends.

    model(x)          ─► before_forward ─► the first one begins a step
    optimizer.step()  ─► before_update ─► parameters are copied   ─► after_update ─► the step ends

Hooks are the only thing left on the user's objects between steps. Copies and pickles of the model do not carry them.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from endoscope.capture.patch.torch_private import compiler_here, never_compile
from endoscope.capture.patch.torch_private import exchange_compiler as _exchange_compiler
from endoscope.errors import BadArgument

if TYPE_CHECKING:
    from endoscope.analysis.selecting.patterns import Selector

Hook = Callable[..., None]
_INNER = ("optimizer", "base_optimizer", "_optimizer")  # where wrappers keep the optimizer that does the work
KEEP_OUT, LET_IN = "keep out", "let in"  # what a hook can say about the compiler


class OptimizerLike(Protocol):
    """An optimizer, or an object that holds one as `.optimizer`."""

    def step(self, *args: Any, **kwargs: Any) -> Any: ...


def do_nothing(*_: Any, **__: Any) -> None:
    """What a copy of a watched model has in the place of our hooks."""


_compiler_here: Callable[[], Any] = compiler_here or (lambda: "not known")


class Stopwatch:
    """What passes inside of our hooks in one step; they look at it while it is on."""

    def __init__(self) -> None:
        self.is_on = False
        self.seconds = 0.0

    def start(self) -> None:
        self.is_on, self.seconds = True, 0.0

    def time(self, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        started = time.perf_counter()
        try:
            return call(*args, **kwargs)
        finally:
            self.seconds += time.perf_counter() - started

    def stop(self) -> float:
        self.is_on = False
        return self.seconds


_NO_STOPWATCH = Stopwatch()


class OwnHook:
    """A hook that stays behind when its model is copied or pickled, and that is never compiled with it.

    Where a compiled model calls it, the forward pass has begun already. If a recorded step begins here, the compiler is
    kept out until the hook at the end of that pass lets it in again.
    """

    def __init__(
        self, call: Callable[..., Any], kept_out: list[Any] | None = None, stopwatch: Stopwatch = _NO_STOPWATCH
    ) -> None:
        self._call = call
        self._stopwatch = stopwatch
        self._kept_out = [] if kept_out is None else kept_out  # compilers, one for each recorded pass that runs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _compiler_here() is None and not self._kept_out:  # nothing compiled runs here
            if self._stopwatch.is_on:
                said = self._stopwatch.time(self._call, args, kwargs)
            else:
                said = self._call(*args, **kwargs)
            return said if said.__class__ is tuple else None
        compiler, said = _exchange_compiler(None), None
        try:
            said = self._call(*args, **kwargs)
        finally:
            if said == KEEP_OUT:
                self._kept_out.append(compiler)
            else:
                _exchange_compiler(self._kept_out.pop() if said == LET_IN and self._kept_out else compiler)
        return said if said.__class__ is tuple else None  # new arguments for an optimizer

    def __deepcopy__(self, _: Any) -> Hook:
        return do_nothing

    def __reduce__(self) -> Any:
        return _make_nothing, ()


never_compile(OwnHook.__call__)


def _make_nothing() -> Hook:
    return do_nothing


class Watch:
    """One watched model."""

    def __init__(
        self,
        model: torch.nn.Module,
        optimizers: Sequence[Any],
        name: str,
        what: Iterable[str] | None,
        batch_dim: int | None,
    ) -> None:
        self.outer = model
        self.module: torch.nn.Module = getattr(model, "_orig_mod", model)  # inside of torch.compile
        self.name = name
        self.batch_dim = batch_dim
        self.patterns = None if what is None else [_pattern(text) for text in what if text != "default"]
        self.default = what is None or "default" in what
        self._optimizers = [weakref.ref(o) for o in optimizers]
        self._handles: list[Any] = []

    @property
    def optimizers(self) -> list[Any]:
        """Those that the user named and that still exist."""
        return [optimizer for reference in self._optimizers if (optimizer := reference()) is not None]

    @property
    def prefix(self) -> str:
        return f"{self.name}." if self.name else ""

    def parameters(self) -> list[tuple[str, torch.nn.Parameter]]:
        return [(self.prefix + name, p) for name, p in self.module.named_parameters() if _is_there(p)]

    def buffers(self) -> list[tuple[str, torch.Tensor]]:
        return [(self.prefix + name, b) for name, b in self.module.named_buffers() if _is_there(b)]

    def moved_by(self, optimizer: Any) -> bool:
        """Whether `optimizer` trains this model."""
        if self._optimizers:
            return any(one is optimizer for one in self.optimizers)
        own = {id(p) for p in self.module.parameters()}
        return any(id(p) in own for group in optimizer.param_groups for p in group["params"])

    def hook(
        self,
        before: Callable[..., Any],
        after: Callable[..., Any],
        before_update: Hook,
        after_update: Hook,
        everywhere: bool,
        stopwatch: Stopwatch,
    ) -> None:
        """Nothing stays on the model or the optimizers if any of it fails.

        With `everywhere` all optimizers are hooked: whichever holds parameters of a watched model is meant.
        """
        kept_out: list[Any] = []
        first, last = OwnHook(before, kept_out, stopwatch), OwnHook(after, kept_out, stopwatch)
        begins, ends = OwnHook(before_update, None, stopwatch), OwnHook(after_update, None, stopwatch)
        put_on = self._handles.append
        try:
            put_on(self.outer.register_forward_pre_hook(first, with_kwargs=True))
            put_on(self.outer.register_forward_hook(last, with_kwargs=True, always_call=True))
            for optimizer in self.optimizers:
                put_on(optimizer.register_step_pre_hook(begins))
                put_on(optimizer.register_step_post_hook(ends))
            if everywhere:
                put_on(register_optimizer_step_pre_hook(begins))
                put_on(register_optimizer_step_post_hook(ends))
        except BaseException:
            self.unhook()
            raise

    def unhook(self) -> None:
        while self._handles:
            self._handles.pop().remove()


def _pattern(text: Any) -> Selector:
    from endoscope.analysis.selecting.patterns import parse  # most runs have no patterns

    pattern = parse(text)
    if pattern.related:
        raise BadArgument(
            f"what={text!r}: this pattern uses relations such as child_of(…), which are known only when a step has "
            "ended. Then it is too late to hold values. Use names, type:, in: and kind: instead."
        )
    return pattern


def _is_there(tensor: Any) -> bool:
    return tensor is not None and not torch.nn.parameter.is_lazy(tensor)


# ---- what the user passed ------------------------------------------------------------------------


def make_watch(
    model: torch.nn.Module,
    optimizer: OptimizerLike | Sequence[OptimizerLike] | None,
    what: str | Iterable[str] | None,
    name: str | None,
    batch_dim: int | None,
    taken: list[str],
) -> Watch:
    """Check what the user passed."""
    if isinstance(model, type):
        raise BadArgument(f"run.watch got the class {model.__name__}. Pass the model itself: {model.__name__}(...).")
    if not isinstance(model, torch.nn.Module):
        raise BadArgument(
            f"run.watch needs a torch.nn.Module, not {type(model).__name__}. To record tensors of plain functions, "
            "use `with run.step() as step:` and `step.tag(name, tensor)`."
        )
    named = list(optimizer) if isinstance(optimizer, (list, tuple)) else [] if optimizer is None else [optimizer]
    optimizers = list({id(found): found for entry in named for found in _unwrapped(entry)}.values())
    return Watch(
        model, optimizers, _free_name(name, model, taken), [what] if isinstance(what, str) else what, batch_dim
    )


def _unwrapped(entry: Any) -> list[Optimizer]:
    """The optimizer, and those inside of it: `AcceleratedOptimizer` and the like have it as `.optimizer`, SAM as
    `.base_optimizer`."""
    seen: dict[int, Any] = {}
    waiting = [entry]
    while waiting:
        one = waiting.pop()
        if id(one) not in seen and not isinstance(one, torch.nn.Module):
            seen[id(one)] = one
            waiting += [getattr(one, name, None) for name in _INNER]
    found = [one for one in seen.values() if isinstance(one, Optimizer)]
    if not found:
        raise BadArgument(
            f"run.watch got {type(entry).__name__} as optimizer; it must be a torch.optim.Optimizer, or an object that "
            "holds one as `.optimizer`. With any other kind, leave it out and put `with run.step():` around each "
            "training step."
        )
    # A wrapper that hands its calls on, and is an optimizer only by name, has no hooks of its own.
    return [one for one in found if hasattr(one, "_optimizer_step_pre_hooks")] or found


def _free_name(name: str | None, model: Any, taken: list[str]) -> str:
    """The first model needs no name; another one is called after its class."""
    if name is None:
        name = "" if not taken else type(getattr(model, "_orig_mod", model)).__name__
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name or 'model'}-{number}"
    return free
