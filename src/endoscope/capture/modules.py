"""Layers (operations that are passes of the same thing) and modules of a trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from endoscope.capture.op import Op
    from endoscope.capture.result import Trace


@dataclass(frozen=True, slots=True)
class Layer:
    """All passes of one layer, or all calls of one module. Behaves like a tuple of operations."""

    label: str
    ops: tuple[Op, ...]

    @property
    def type(self) -> str:
        return self.ops[0].type

    @property
    def kind(self) -> Any:
        return self.ops[0].kind

    @property
    def passes(self) -> int:
        return len(self.ops)

    @property
    def shape(self) -> Any:
        return self.ops[0].shape

    @property
    def values(self) -> tuple[Any, ...]:
        """The value of every pass, in order."""
        return tuple(op.value for op in self.ops)

    @property
    def value(self) -> Any:
        """The value if there is one pass, else the tuple of all."""
        return self.ops[0].value if len(self.ops) == 1 else self.values

    @property
    def modules(self) -> tuple[str, ...]:
        return self.ops[0].modules

    @property
    def seconds(self) -> float:
        return sum(op.seconds for op in self.ops)

    @property
    def bytes(self) -> int:
        return sum(op.bytes for op in self.ops)

    @property
    def flops(self) -> int | None:
        known = [op.flops for op in self.ops]
        return sum(f for f in known if f is not None) if any(f is not None for f in known) else None

    def __len__(self) -> int:
        return len(self.ops)

    def __getitem__(self, index: int) -> Op:
        return self.ops[index]

    def __repr__(self) -> str:
        return f"<Layer {self.label} (x{self.passes}): {', '.join(op.label for op in self.ops[:6])}>"

    __str__ = __repr__


@dataclass(frozen=True, slots=True)
class ModuleInfo:
    """One module of the target."""

    label: str  # its address; the target's own is empty
    type: str  # its class
    passes: int  # how often it was called
    children: tuple[str, ...]  # addresses of the modules directly inside
    parameters: int  # how many numbers it can learn, with everything inside
    trainable: int  # how many of them require a gradient
    bytes: int  # size of its parameters
    ops: tuple[Op, ...]  # operations inside, at any depth
    training: bool  # in training mode when the trace was taken

    @property
    def address(self) -> str:
        return self.label

    @property
    def seconds(self) -> float:
        return sum(op.seconds for op in self.ops)

    @property
    def flops(self) -> int:
        return sum(op.flops or 0 for op in self.ops)

    def __str__(self) -> str:
        times = "never called" if not self.passes else f"called {self.passes} time{'s' * (self.passes > 1)}"
        return f"{self.label or '(target)'}: {self.type}, {times}, {self.parameters:,} parameters"


def module_infos(trace: Trace) -> list[ModuleInfo]:
    calls = trace.recorder.calls
    counts: dict[int, int] = {}
    for call in calls.entries:
        if not call.is_function:
            counts[id(call.module)] = counts.get(id(call.module), 0) + 1
    inside: dict[str, list[Op]] = {}
    for op in trace.ops:
        for address in op.modules:
            inside.setdefault(address, []).append(op)
    infos = []
    for identity, (address, module) in calls.addresses.items():
        parameters = list(module.parameters())
        infos.append(
            ModuleInfo(
                label=address,
                type=type(module).__name__,
                passes=counts.get(identity, 0),
                children=tuple(
                    calls.addresses[id(c)][0] for _, c in module.named_children() if id(c) in calls.addresses
                ),
                parameters=sum(p.numel() for p in parameters),
                trainable=sum(p.numel() for p in parameters if p.requires_grad),
                bytes=sum(p.numel() * p.element_size() for p in parameters),
                ops=tuple(trace.ops) if not address else tuple(inside.get(address, ())),
                training=bool(module.training),
            )
        )
    return infos
