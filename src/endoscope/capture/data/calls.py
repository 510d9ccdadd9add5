"""Calls of modules and custom functions: which run inside which, and what everything is called."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from endoscope.capture.data.nodes import NO_POSITION, Position, Read
from endoscope.schema.ops import Kind

if TYPE_CHECKING:
    import torch

OUTSIDE = -1  # instead of the number of a call: outside of every module


@dataclass(frozen=True, slots=True, eq=False)
class ModuleName:
    """Stands for a module in a trace from a file."""

    address: str
    type: str  # name of its class


@dataclass(slots=True)
class Call:
    """One call of a module, or one scope of a custom function (then `module` is its name)."""

    module: Any
    parent: int  # number of the call around it, or OUTSIDE
    pass_: int  # which call of its module, from 1
    first_node: int
    entered: list[int]  # slots that were handed in
    root: bool  # a call of the target itself, not from within itself
    position: Position  # the user's line that called
    last_node: int | None  # the first node after it, once it has returned
    returned: list[Read]

    @property
    def is_function(self) -> bool:
        return isinstance(self.module, str)

    @property
    def type(self) -> str:
        """The class of the module."""
        return self.module.type if self.module.__class__ is ModuleName else type(self.module).__name__

    @property
    def key(self) -> Hashable:
        """Equal for calls of the same module or function."""
        return self.module if isinstance(self.module, str) else id(self.module)


class Calls:
    """All calls of one trace, and the names of modules, parameters and buffers."""

    def __init__(self) -> None:
        self.entries: list[Call] = []
        self.current = OUTSIDE
        self._passes: dict[Hashable, int] = {}
        self.addresses: dict[int, tuple[str, Any]] = {}  # id of module -> address
        self.named: dict[int, tuple[Kind, str, torch.Tensor]] = {}  # id of tensor -> parameter or buffer
        self.namespace: dict[str, Any] = {}  # the names a plain function sees
        self._nameless: dict[str, int] = {}
        self._roots: list[tuple[str, torch.nn.Module]] = []
        self._adopted = False  # names are those of another one

    def begin(
        self,
        module: Any,
        first_node: int,
        entered: list[int],
        root: bool = False,
        position: Position = NO_POSITION,
    ) -> int:
        key = module if module.__class__ is str else id(module)
        self._passes[key] = pass_ = self._passes.get(key, 0) + 1
        self.entries.append(Call(module, self.current, pass_, first_node, entered, root, position, None, []))
        self.current = len(self.entries) - 1
        return self.current

    def leave(self, call: int) -> Call:
        entry = self.entries[call]
        self.current = entry.parent
        return entry

    # ---- names -----------------------------------------------------------------------------------

    def know(self, module: torch.nn.Module, address: str) -> None:
        """Give names to a module, what it contains, and all their parameters and buffers."""
        if self._adopted:
            self._adopted = False
            self.addresses, self.named, self._roots = self.addresses.copy(), self.named.copy(), self._roots.copy()
        self._roots.append((f"{address}." if address else "", module))
        prefix = f"{address}." if address else ""
        for name, part in module.named_modules():
            path = prefix + name if name else address
            self.addresses.setdefault(id(part), (path, part))
            inner = f"{path}." if path else ""
            for kind, tensors in ((Kind.PARAMETER, part._parameters), (Kind.BUFFER, part._buffers)):
                for key, tensor in tensors.items():
                    if tensor is not None:
                        self.named.setdefault(id(tensor), (kind, inner + key, tensor))

    def adopt(self, other: Calls) -> None:
        """Know the same names as another one, from the start; copied when another name is added."""
        self._adopted = True
        self.addresses, self.named, self._roots = other.addresses, other.named, other._roots

    def first_name(self, name: str) -> str | None:
        """Shared modules and tied weights have several names; all look-ups go by the first."""
        return self.other_names().get(name)

    def other_names(self) -> dict[str, str]:
        """Names of modules, parameters and buffers that have more than one -> the first."""
        found: dict[str, str] = {}
        for prefix, root in self._roots:
            for other, part in root.named_modules(remove_duplicate=False):
                found.setdefault(prefix + other, self.addresses[id(part)][0])
            tensors = (*root.named_parameters(remove_duplicate=False), *root.named_buffers(remove_duplicate=False))
            for other, tensor in tensors:
                if id(tensor) in self.named:
                    found.setdefault(prefix + other, self.named[id(tensor)][1])
        return {name: first for name, first in found.items() if name != first}

    def name_for(self, thing: Any) -> str:
        """A name for something that is not part of the target: what the user calls it, or its class."""
        for name, value in self.namespace.items():
            if value is thing:
                return name
        base = type(thing).__name__
        self._nameless[base] = self._nameless.get(base, 0) + 1
        return f"{base}_{self._nameless[base]}"

    def address(self, call: Call) -> str:
        return self.addresses[id(call.module)][0]

    def around(self, call: int) -> Iterator[Call]:
        """A call and all those around it, innermost first."""
        while call != OUTSIDE:
            entry = self.entries[call]
            yield entry
            call = entry.parent

    def modules_around(self, call: int) -> list[tuple[str, int]]:
        """Address and pass of the modules around a call, outermost first; the target's own is empty and left out."""
        found = [(self.address(c), c.pass_) for c in self.around(call) if not c.is_function and self.address(c)]
        return found[::-1]

    def path(self, call: int) -> tuple[str, ...]:
        """Addresses of the modules around a call, outermost first."""
        return tuple([address for address, _ in self.modules_around(call)])

    def functions(self, call: int) -> tuple[str, ...]:
        """Custom functions around a call, outermost first."""
        return tuple([c.module for c in self.around(call) if c.is_function][::-1])

    def module_calls(self) -> list[tuple[str, int, Call]]:
        """Address, pass and entry of every call of a named module, in order."""
        calls = [call for call in self.entries if not call.is_function]
        return [(self.address(call), call.pass_, call) for call in calls if self.address(call)]
