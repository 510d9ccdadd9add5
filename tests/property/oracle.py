"""The slow twin of the tracer: who wrote each byte of memory, kept in plain dictionaries.

It never asks torch for strides or storages of a view: every variable is an array of byte addresses, and a view is
the same numpy view of that array. What it claims about an operation:

- reading a tensor reads what the tensor's producer left in it (the operation that returned this very object, or
  changed it in place), except for the bytes that were written through another object since; those come from
  whoever wrote them last;
- an operation that returns views of its operand reads only what can be seen through them;
- a blind write (`copy_`, `zero_`, `fill_`, `out=`) does not read what it overwrites;
- an operation that changes an object changes all of it, also where only a part gets new numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from tests.property.program import CONSTANTS, Program, Step, Variables, copy_together, results_of

#: Who made something: ("input", number), ("constant", name) or ("op", number).
Maker = tuple[str, Any]


@dataclass
class Known:
    """One tensor object."""

    tensor: Tensor
    addresses: np.ndarray  # of the first byte of every element
    maker: Maker
    time: int  # when it was made, or last changed through this object


@dataclass
class Heard:
    """What the trace should say about one operation."""

    step: Step
    parents: set[Maker]
    values: list[Tensor]


class Oracle:
    """Runs a program and keeps the books."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.ops: list[Heard] = []
        self.conditions: set[Maker] = set()
        self._known: dict[int, Known] = {}
        self._last_write: dict[int, tuple[int, Maker]] = {}  # byte -> time, writer
        self._clock = 0
        self._free = 0  # next byte that nobody uses
        inputs = copy_together(program.inputs)
        self.input_values = [t.detach().clone() for t in inputs]
        self._meet_inputs(inputs)
        out = program.run(inputs, self._perform)
        self.outputs = [(self._read(t), t.detach().clone()) for t in {id(t): t for t in out}.values()]

    def _meet_inputs(self, inputs: list[Tensor]) -> None:
        begins: dict[int, int] = {}
        for number, tensor in enumerate(inputs):
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in begins:
                begins[storage.data_ptr()] = self._allocate(storage.nbytes())
            start = begins[storage.data_ptr()] + tensor.storage_offset() * tensor.element_size()
            self._meet(tensor, start + _layout(tensor), ("input", number))
        for name, tensor in CONSTANTS.items():
            self._meet(tensor, self._allocate(tensor.nbytes) + _layout(tensor), ("constant", name))

    def _allocate(self, size: int) -> int:
        self._free += size + 16
        return self._free - size - 16

    def _meet(self, tensor: Tensor, addresses: np.ndarray, maker: Maker) -> None:
        self._known[id(tensor)] = Known(tensor, addresses, maker, self._clock)

    def _read(self, tensor: Tensor, seen: list[int] | None = None) -> set[Maker]:
        """Everybody who left something in the bytes seen through the tensor, or in some of these bytes."""
        known = self._known[id(tensor)]
        makers = set()
        for byte in _bytes(tensor, known.addresses) if seen is None else seen:
            time, writer = self._last_write.get(byte, (-1, None))
            makers.add(writer if writer is not None and time > known.time else known.maker)
        return makers or {known.maker}

    def _perform(self, step: Step, variables: Variables) -> Any:
        if step.drops:
            return step.call(variables)
        operands = [variables[i] for i in step.reads] + [CONSTANTS[name] for name in step.constants]
        parents: set[Maker] = set()
        for operand in operands[1:] if step.moves else operands:
            parents |= self._read(operand)
        whole = self._read(operands[0]) if step.moves else set()
        out = step.call(variables)
        if step.branch is not None:
            self.conditions |= parents
            return out
        self._clock += 1
        maker = ("op", len(self.ops))
        found = results_of(step, out)
        if step.moves:
            parents |= self._note_views(step, operands[0], found, maker, whole)
        changed = [variables[i] for i in step.writes]
        if step.turns:
            self._turn(step, operands[0], maker)
            changed = [operands[0]]
        for tensor in changed if not step.turns else ():
            self._write(tensor, maker)
        for tensor in found:
            if not step.moves and not any(tensor is c for c in changed):
                self._meet(tensor, self._allocate(_extent(tensor)) + _layout(tensor), maker)
        shown = found if found else changed
        self.ops.append(Heard(step, parents, [t.detach().clone() for t in shown]))
        return out

    def _note_views(
        self, step: Step, operand: Tensor, found: list[Tensor], maker: Maker, whole: set[Maker]
    ) -> set[Maker]:
        if any(t is operand for t in found):  # nothing to do: torch hands the very object back
            known = self._known[id(operand)]
            known.maker, known.time = maker, self._clock
            return whole
        storage = operand.untyped_storage().data_ptr()
        if any(t.untyped_storage().data_ptr() != storage for t in found if t.numel()):
            for tensor in found:
                self._meet(tensor, self._allocate(_extent(tensor)) + _layout(tensor), maker)
            return whole
        assert step.moves is not None
        seen: set[Maker] = set()
        parts = step.moves(self._known[id(operand)].addresses, operand.element_size())
        assert [p.shape for p in parts] == [tuple(t.shape) for t in found], step.text
        for part, tensor in zip(parts, found, strict=True):
            if tensor.numel():
                seen |= self._read(operand, _bytes(tensor, part))
            self._meet(tensor, part, maker)
        return seen or {self._known[id(operand)].maker}

    def _turn(self, step: Step, tensor: Tensor, maker: Maker) -> None:
        assert step.turns is not None
        known = self._known[id(tensor)]
        (known.addresses,) = step.turns(known.addresses, tensor.element_size())
        known.maker, known.time = maker, self._clock

    def _write(self, tensor: Tensor, maker: Maker) -> None:
        known = self._known[id(tensor)]
        known.maker, known.time = maker, self._clock
        for byte in _bytes(tensor, known.addresses):
            self._last_write[byte] = (self._clock, maker)

    def addresses_of(self, tensor: Tensor) -> np.ndarray:
        return self._known[id(tensor)].addresses

    @property
    def tensors(self) -> list[Tensor]:
        return [known.tensor for known in self._known.values()]


def _layout(tensor: Tensor) -> np.ndarray:
    """Addresses of the elements of a tensor that was not made as a view, counted from its first byte."""
    addresses = np.zeros(tuple(tensor.shape), dtype=np.int64)
    for index in np.ndindex(*tensor.shape):
        addresses[index] = sum(i * s for i, s in zip(index, tensor.stride(), strict=True)) * tensor.element_size()
    return addresses


def _bytes(tensor: Tensor, addresses: np.ndarray) -> list[int]:
    """All bytes of elements like those of the tensor that begin at these addresses."""
    return [int(a) + i for a in addresses.reshape(-1) for i in range(tensor.element_size())]


def _extent(tensor: Tensor) -> int:
    return int(tensor.untyped_storage().nbytes())
