"""Hold a program's trace against the oracle, and say where they disagree."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import endoscope
from endoscope.errors import EndoscopeError
from tests.property.oracle import Maker, Oracle
from tests.property.program import CONSTANTS, Program, copy_together


def identical(left: Tensor, right: Tensor) -> bool:
    """Bit for bit, NaN included."""
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    a, b = (t.detach().resolve_conj().resolve_neg() for t in (left, right))
    if a.numpy().tobytes() == b.numpy().tobytes():
        return True
    return bool(torch.isclose(a, b, rtol=0, atol=0, equal_nan=True).all())


def complaints(program: Program, *, save: Any = "all", prove: bool = True) -> list[str]:
    """Empty if trace, oracle and proof agree."""
    torch.manual_seed(0)
    oracle = Oracle(program)
    torch.manual_seed(0)
    try:
        trace = endoscope.trace(program, tuple(copy_together(program.inputs)), save=save)
    except Exception as error:  # the program itself raises nothing, as the oracle has seen
        return [f"trace: raised {type(error).__name__}: {error}"]
    found = _Comparison(oracle, trace, values=save != "none").found
    return found + _what_the_proof_says(program) if prove else found


def _what_the_proof_says(program: Program) -> list[str]:
    torch.manual_seed(0)
    try:
        report = endoscope.validate(program, tuple(copy_together(program.inputs)))
    except Exception as error:
        return [f"proof: raised {type(error).__name__}: {error}"]
    return [f"proof: {failure}" for failure in report.failures]


class _Comparison:
    def __init__(self, oracle: Oracle, trace: Any, values: bool) -> None:
        self.found: list[str] = []
        self._makers: dict[int, Maker] = {op.node: ("input", i) for i, op in enumerate(trace.inputs)}
        for op in trace.constants:
            self._makers[op.node] = ("constant", _constant_like(op))
        made = sorted([o for o in (*trace.ops, *trace.orphans) if _is_made(o)], key=lambda o: o.node)
        self._makers.update((op.node, ("op", i)) for i, op in enumerate(made))
        self._labels = {maker: trace.op_at(node).label for node, maker in self._makers.items()}
        self._compare_types(oracle, made)
        if self.found:
            return
        for op, recorded in zip(made, oracle.ops, strict=True):
            self._compare(f"{op.label} ({recorded.step.text})", op, recorded.parents, recorded.values if values else [])
        for op, value in zip(trace.inputs, oracle.input_values, strict=True):
            self._compare(op.label, op, set(), [value] if values else [])
        for op, (parents, value) in zip(trace.outputs, oracle.outputs, strict=True):
            self._compare(op.label, op, parents, [value] if values else [])
        self._compare_makers(
            "the program's branches", {self._makers[o.node] for o in trace.conditions}, oracle.conditions
        )

    def _compare_types(self, oracle: Oracle, made: list[Any]) -> None:
        recorded, expected = [op.type for op in made], [entry.step.type for entry in oracle.ops]
        if recorded != expected:
            self.found.append(f"operations: the trace has {recorded}, the program is {expected}")

    def _compare(self, name: str, op: Any, parents: set[Maker], values: list[Tensor]) -> None:
        self._compare_makers(f"parents of {name}", {self._makers[p.node] for p in op.parents}, parents)
        if not values:
            return
        try:
            kept = op.outputs
        except EndoscopeError as error:
            self.found.append(f"value of {name}: {type(error).__name__}: {error}")
            return
        if len(kept) > len(values) or not all(map(identical, kept, values)):
            self.found.append(f"value of {name}: kept {kept}, expected {tuple(values)}")

    def _compare_makers(self, name: str, found: set[Maker], expected: set[Maker]) -> None:
        if found != expected:
            self.found.append(f"{name}: the trace says {self._named(found)}, the oracle {self._named(expected)}")

    def _named(self, makers: set[Maker]) -> list[str]:
        return sorted(self._labels.get(m, str(m)) for m in makers)


def _is_made(op: Any) -> bool:
    return op.kind in ("computed", "generated")


def _constant_like(op: Any) -> str:
    return next(n for n, t in CONSTANTS.items() if tuple(t.shape) == op.shape and t.dtype == op.dtype)
