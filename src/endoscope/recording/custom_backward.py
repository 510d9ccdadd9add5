"""Custom autograd functions have a backward pass of their own, which a second run cannot repeat.

If gradients are wrong above such a function and right below it, its backward pass made it.
"""

from __future__ import annotations

from endoscope.capture.reads import parents_of
from endoscope.capture.source import source_line
from endoscope.recording.tracer import StepRecorder
from endoscope.schema.origin import NONFINITE, Origin


def guilty_functions(recorder: StepRecorder, wrong: set[int], right: set[int]) -> list[Origin]:
    """The last such function; `wrong` and `right` are nodes whose gradients are known."""
    inside: dict[int, list[int]] = {}  # call of a function -> its nodes
    for number, raw in enumerate(recorder.nodes):
        if raw[12] >= 0 and recorder.calls.entries[raw[12]].is_function:
            inside.setdefault(raw[12], []).append(number)
    for call in sorted(inside, reverse=True):
        above, below = _above(recorder, inside[call]), _below(recorder, inside[call])
        if above & wrong and not below & wrong and (below & right or not below & (wrong | right)):
            return [_origin(recorder, call, inside[call][-1])]
    return []


def _origin(recorder: StepRecorder, call: int, last: int) -> Origin:
    entry, raw = recorder.calls.entries[call], recorder.nodes[last]
    path = recorder.calls.path(call)
    line = source_line(raw[10], raw[11])
    return Origin(
        sort=NONFINITE, of="gradient", node="", operation=str(entry.module), module=path[-1] if path else "",
        source="" if line is None else f"{line.file}:{line.line}", exact=False,
    )  # fmt: skip


def _above(recorder: StepRecorder, nodes: list[int]) -> set[int]:
    found = set(nodes)
    for number in range(max(nodes), -1, -1):
        if number in found:
            found |= parents_of(recorder, number)
    return found - set(nodes)


def _below(recorder: StepRecorder, nodes: list[int]) -> set[int]:
    found = set(nodes)
    for number in range(min(nodes), len(recorder.nodes)):
        if parents_of(recorder, number) & found:
            found.add(number)
    return found - set(nodes)
