"""`with editing(model, {...}):` every forward pass of the model in the block runs with the edits.

model(x) ─► exchanged _call_impl (patches.py) ─► Block.run ─► the first time: dry_run ─► Plan
                                                       └─► under the trace that records this thread, or a recorder
                                                           of our own that keeps nothing ─► the model's own call
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

import torch

from endoscope.capture.change.choosing import Change, changes_in
from endoscope.capture.change.editor import following
from endoscope.capture.change.follower import Follower
from endoscope.capture.change.plan import Plan
from endoscope.capture.data.calls import Calls
from endoscope.capture.patch.active import recorders_here
from endoscope.capture.patch.compiled import without_compiled_calls
from endoscope.capture.patch.patches import activate, block_around, deactivate, put_block, remove_block
from endoscope.capture.patch.torch_private import DisableTorchFunction
from endoscope.capture.record.leaves import named_leaves
from endoscope.capture.record.recorder import Recorder
from endoscope.capture.trace import dry_run
from endoscope.errors import BadArgument


@contextlib.contextmanager
def editing(model: torch.nn.Module, edit: Mapping[Any, Any]) -> Iterator[None]:
    """Apply edits to every forward pass of `model` in the block, in this thread. Gradients flow through them.

    Selectors are resolved at the first call, by one more run whose effects are undone, and again when the model is
    switched between training and evaluation or is called in another way.
    """
    if not isinstance(model, torch.nn.Module):
        raise BadArgument(
            f"editing() needs a torch.nn.Module whose calls are to be edited, not {type(model).__name__}. "
            "For a function use endoscope.trace(function, inputs, edit=...)."
        )
    model = getattr(model, "_orig_mod", model)  # torch.compile wraps a module in another one
    outer = block_around(model)
    changes = changes_in(edit)
    block = Block(model, [*(outer.changes if outer is not None else ()), *changes])
    with without_compiled_calls([*model.modules()]):
        put_block(block)
        try:
            yield
        finally:
            remove_block(block, outer)


class Block:
    """One `editing` block."""

    def __init__(self, model: torch.nn.Module, changes: list[Change]) -> None:
        self.model = model
        self.changes = changes
        self.busy = False  # inside a call of the model: what it calls in turn is not edited once more
        self._plans: dict[Hashable, Plan] = {}
        self._names: Calls | None = None
        self._forwards = 0
        self._said: set[int] = set()

    def run(self, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        self.busy = True
        try:
            if not self.changes:
                return call(*args, **kwargs)
            plan = self._plan_for(args, kwargs)
            forward, self._forwards = self._forwards, self._forwards + 1
            with self._recorder(plan) as recorder, following(recorder, plan, forward) as (editor, run):
                out = editor.result(call(*args, **kwargs))
            self._say_missed(plan, run.applied)
            return out
        finally:
            self.busy = False

    def _plan_for(self, args: Any, kwargs: Any) -> Plan:
        key = self._signature_of(args, kwargs)
        if key not in self._plans:
            self._plans[key] = Plan.of(dry_run(self.model, args, kwargs), self.changes)
        return self._plans[key]

    def _signature_of(self, args: Any, kwargs: Any) -> Hashable:
        """What most likely decides which code of the model runs; sizes do not."""
        training = tuple([module.training for module in self.model.modules()])
        leaves = [(path, leaf) for path, leaf in named_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        with DisableTorchFunction():
            given = tuple([(path, leaf.dtype, leaf.dim()) for path, leaf in leaves])
        plain = tuple([name for name, value in kwargs.items() if value is not None])
        return training, given, plain, len(args), torch.is_grad_enabled()

    @contextlib.contextmanager
    def _recorder(self, plan: Plan) -> Iterator[Recorder]:
        """The innermost trace of this thread, or a follower that keeps nothing."""
        recorders = recorders_here()
        if recorders is not None:
            yield recorders[-1]
            return
        if self._names is None or plan.sources:  # parameters may have been exchanged since, modules rarely are
            self._names = Calls()
            self._names.know(self.model, "")
        recorder = Follower(self.model, self._names)
        activate(recorder)
        try:
            with recorder:
                yield recorder
        finally:
            deactivate(recorder)
            recorder.close()

    def _say_missed(self, plan: Plan, applied: set[int]) -> None:
        missed = set(range(len(plan.changes))) - applied - self._said
        for number in sorted(missed):
            self._said.add(number)
            warnings.warn(
                f"endoscope.editing: {plan.changes[number].key!r} was not reached in this forward pass, which took "
                "another path than the first call; its edit changed nothing.",
                stacklevel=5,
            )
