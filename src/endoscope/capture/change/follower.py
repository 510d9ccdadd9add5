"""Follows a run just well enough to apply edits to it; nothing is written down.

A recorder that nobody reads would be a waste in a training loop. What an edit needs is the place in the code where
an operation runs (which module, which call of it, which line), and that only for operations it may concern. All others
pass with one look-up.
"""

from __future__ import annotations

from types import MethodType
from typing import Any

import torch
from torch import Tensor

from endoscope.capture.data.calls import Calls
from endoscope.capture.data.functions import FunctionFacts, Role
from endoscope.capture.data.nodes import NO_POSITION
from endoscope.capture.patch.torch_private import backward_task as _in_backward
from endoscope.capture.record.functions import facts_of, overwritten
from endoscope.capture.record.leaves import named_arguments, tensors_in
from endoscope.capture.record.recorder import Recorder
from endoscope.capture.record.records import TorchCall
from endoscope.capture.record.registered import call_inside
from endoscope.capture.record.source import user_position
from endoscope.schema.ops import Kind


class Follower(Recorder):
    """Stands where a recorder stands, for one forward pass of one model."""

    def __init__(self, model: torch.nn.Module, names: Calls) -> None:
        """`names` knows the modules of the model; they are looked up, not changed."""
        super().__init__(full=False)
        self.target = model
        self.calls.addresses = dict(names.addresses)
        self.calls.named = dict(names.named)
        self._given: list[Tensor] = []
        self._calls_made = 0
        plain: set[Any] = set()  # functions without a Python body of their own

        def handle(mode: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func not in plain:
                facts = facts_of(func)
                if facts.role == Role.OPEN:
                    return self._open(func, facts, args, kwargs or {})
                plain.add(func)
            self._calls_made += 1
            return func(*args, **kwargs) if kwargs else func(*args)

        self.__torch_function__ = MethodType(handle, self)  # type: ignore[method-assign]

    # ---- operations that may be edited -----------------------------------------------------------

    def record_unusual(self, func: Any, facts: FunctionFacts, args: Any, kwargs: dict[str, Any]) -> Any:
        if facts.role == Role.OPEN:
            return self._open(func, facts, args, kwargs)
        self._calls_made += 1
        if self.editor is None or facts.role in (Role.PASS, Role.LEAVE, Role.COPY) or facts.reshapes:
            return func(*args, **kwargs)
        if _in_backward() != -1:
            return func(*args, **kwargs)
        position, written = user_position(), overwritten(facts, args, kwargs)
        out = self.editor.call(func, facts, position, written, args, kwargs)
        return self.after_call(TorchCall(func, facts, args, kwargs, [], 0, 0, position), out, written)

    def after_call(self, call: TorchCall, out: Any, written: list[Tensor] | tuple[()] = ()) -> Any:
        found = tensors_in(out) or list(written)
        if not found or self.editor is None:
            return out
        self._given = tensors_in((call.args, call.kwargs))
        return self.editor.edited(call, out, found)[0]

    def _open(self, func: Any, facts: FunctionFacts, args: Any, kwargs: dict[str, Any]) -> Any:
        position, before = user_position(), self._calls_made
        scope = self.calls.begin(f"{func}".removesuffix(".default"), 0, [])
        try:
            out = call_inside(self, func, args, kwargs)
        finally:
            self.calls.leave(scope)
        if self._calls_made > before:
            return out
        return self.after_call(TorchCall(func, facts, args, kwargs, [], 0, 0, position), out)

    # ---- modules and sources ---------------------------------------------------------------------

    def begin_module(self, module: torch.nn.Module, args: Any, kwargs: Any) -> int:
        root = not self.inside_target and module is self.target
        if id(module) not in self.calls.addresses:
            self.calls.know(module, self.calls.name_for(module))
        if root:
            self.inside_target = True
            self.add_inputs(named_arguments(module.forward, args, kwargs))
        begins = self.editor is not None and self.editor.begins_with(len(self.calls.entries))
        return self.calls.begin(module, 0, [], root, user_position(3) if begins else NO_POSITION)

    def end_module(self, call: int, out: Any) -> None:
        """What a module returns is of no interest here."""

    def add_source(self, kind: Kind, name: str, tensor: Tensor) -> int:
        if self.editor is not None:
            self.editor.source(kind, name, tensor)
        return 0

    def knows(self, tensor: Tensor) -> bool:
        """It was an argument of the call that has just been made: the call handed it back."""
        return any(tensor is given for given in self._given)

    def read(self, tensor: Tensor) -> tuple[()]:
        return ()

    def before_call(self, written: list[Tensor], facts: FunctionFacts, generator: torch.Generator | None) -> None:
        """Nothing is kept, so nothing has to be saved."""

    def renew_versions(self, value: Any) -> None:
        """Nothing is kept, so no version counter matters."""
