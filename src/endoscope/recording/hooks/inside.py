"""Single operations inside of modules that are recorded, in a hooked step: a function mode that is on only there.

A traced step has learned which modules compute something that is recorded, such as the softmax of a hand-written
attention. When one of them is called, the mode is put on; when it returns, the mode is taken off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from endoscope.capture.patch.composites import OwnMode, close_composites, open_composites
from endoscope.capture.record.functions import facts_of
from endoscope.recording.hooks.modes import put_on, take_off

#: Holds the result of an operation: its type, the address of the module around it, the tensor.
Hold = Callable[[str, str, Tensor], None]


class InsideMode(OwnMode):
    """Of one hooked step."""

    def __init__(self, wanted: Mapping[str, set[str]], hold: Hold) -> None:
        super().__init__()
        self.wanted = wanted  # address of a module -> types of the operations in it
        self._hold = hold
        self._modules: list[str] = []  # that run, from the first one with such operations inwards

    def begin(self, address: str) -> None:
        """A module is called."""
        if not self._modules:
            if address not in self.wanted:
                return
            open_composites()
            put_on(self)
        self._modules.append(address)

    def end(self) -> None:
        """It has returned, or raised."""
        if self._modules:
            self._modules.pop()
            if not self._modules:
                self.stop()

    def stop(self) -> None:
        self._modules.clear()
        take_off(self)
        close_composites()

    def close(self) -> None:
        if self._modules:
            self.stop()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if self._modules and isinstance(out, Tensor):
            wanted = self.wanted.get(self._modules[-1])
            if wanted is not None:
                facts = facts_of(func)
                if facts.type in wanted:
                    self._hold(facts.type, self._modules[-1], out)
        return out
