"""From the selectors of an edit to the nodes of a trace.

    {"relu_2": edits.zero()} ─► changes_in ─► [(key, Edit)] ─► chosen ─► {node: edits, in the order given}

A plain name means what `trace[name]` gives: of a module that returns several tensors, the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from endoscope.analysis.selecting.no_match import nothing_matches
from endoscope.analysis.selecting.patterns import Pattern, parse
from endoscope.capture.change.edit import Edit
from endoscope.capture.change.edits import as_edit
from endoscope.capture.data.functions import Role
from endoscope.capture.data.nodes import slots_of
from endoscope.capture.record.functions import RESHAPING
from endoscope.capture.views.modules import Layer
from endoscope.capture.views.op import Op
from endoscope.capture.views.result import Trace
from endoscope.errors import BadArgument, BadEdit
from endoscope.schema.ops import Kind

#: In-place calls that put other memory, or a tensor of another size, in the tensor's place.
_REPLACING_MEMORY = frozenset("data= set_ resize_ resize_as_".split())
_BOUNDARIES = frozenset("_add_batch_dim _remove_batch_dim _wrap_for_grad _unwrap_for_grad".split())


class Change(NamedTuple):
    """One entry of what the user wrote."""

    key: Any  # a pattern, a position, an operation
    edit: Edit


class _Named(NamedTuple):
    """A single key, dressed up for `Pattern.matches`."""

    keys: tuple[str, ...]
    type: str = ""
    kind: str = ""
    modules: tuple[str, ...] = ()


def changes_in(edit: Any) -> list[Change]:
    if not isinstance(edit, Mapping):
        raise BadArgument(
            f"edit={edit!r} is no dict from selectors to changes, such as {{'relu_2': endoscope.edits.zero()}}."
        )
    return [Change(key, as_edit(change, key)) for key, change in edit.items()]


def chosen(trace: Trace, changes: list[Change]) -> dict[int, list[tuple[int, Edit]]]:
    """Node -> the edits that apply to it, in the order given, each with the number of its change."""
    found: dict[int, list[tuple[int, Edit]]] = {}
    for number, change in enumerate(changes):
        nodes = dict.fromkeys(_maker(trace, op) for op in _ops_behind(trace, change.key))
        for node in nodes:
            _check_editable(trace, node, change)
            found.setdefault(node, []).append((number, change.edit))
    return dict(sorted(found.items()))


def _ops_behind(trace: Trace, key: Any) -> list[Op]:
    if isinstance(key, Layer):
        return [op for one in key.ops for op in _ops_behind(trace, one)]
    if isinstance(key, Op):  # of this trace, or of another one of the same model
        key = key.node if key._trace is trace else key.label
        if isinstance(key, int):
            return [trace.op_at(key)]
    if isinstance(key, int) and not isinstance(key, bool):
        return [trace[key]]
    selector = parse(key)
    name = selector if isinstance(selector, Pattern) and selector.field == "" else None
    if name is not None and not any(sign in name.body for sign in "*?"):
        if name.body not in trace:
            raise nothing_matches([selector], list(trace.everything()), trace.name)
        found = trace[name.body]
        return list(found.ops) if isinstance(found, Layer) else [found]
    ops = [op for op in trace.graph.select(key) if name is None or _is_meant(trace, op, name)]
    if not ops:
        raise nothing_matches([selector], list(trace.everything()), trace.name)
    return ops


def _is_meant(trace: Trace, op: Op, pattern: Pattern) -> bool:
    """Of the tensors that a module returns its name means the first, as in `trace[name]`."""
    for key in op.keys:
        if pattern.matches(_Named((key,))):
            found = trace[key]
            if found is op or (isinstance(found, Layer) and op in found.ops):
                return True
    return False


def _maker(trace: Trace, op: Op) -> int:
    """An output is edited where it is made."""
    if op.kind is not Kind.OUTPUT:
        return op.node
    slots = slots_of(op._raw.reads[0]) if op._raw.reads else ()
    if len(slots) != 1:
        raise BadEdit(
            f"several operations wrote into the memory of {op.label}: "
            f"{', '.join(parent.label for parent in op.parents)}. Edit these."
        )
    return trace.recorder.slot_node[slots[0]]


def _check_editable(trace: Trace, node: int, change: Change) -> None:
    op = trace.op_at(node)
    reason = _why_not(trace, op)
    if reason:
        raise BadEdit(f"edit={{{change.key!r}: {change.edit}}}: {op.label} cannot be edited: {reason}")


def _why_not(trace: Trace, op: Op) -> str:
    facts, kind = op._raw.facts, op.kind
    if kind is Kind.CONSTANT or (kind is Kind.INPUT and not op.path):
        return "it existed before the traced code ran, and has no name. Edit the operation that reads it."
    if kind in (Kind.PARAMETER, Kind.BUFFER, Kind.INPUT):
        if not trace.children[op.node]:
            return "nothing reads it in this run."
        hidden = [n for n, reads in trace.recorder.hidden_reads.items() for r in reads if op._raw.slot in slots_of(r)]
        if hidden:
            return f"it is read inside {trace.op_at(hidden[0]).label}, whose body is closed. Edit that operation."
        return ""
    if facts.name in _BOUNDARIES:
        return "it is the boundary of a function transform (vmap, grad). Edit an operation outside."
    if facts.type in ("Parameter", "as_subclass"):
        return "it only wraps a tensor in another class. Edit the operation that made the tensor."
    if facts.role is Role.OPEN and facts.written is not None:
        return (
            "it is a registered operator that writes into its arguments. Edit the operations that read these arguments."
        )
    if facts.name in _REPLACING_MEMORY or facts.name in RESHAPING or facts.role is Role.COPY:
        return f"{facts.name} changes what the tensor is, not its numbers. Edit the operation before or after it."
    return ""
