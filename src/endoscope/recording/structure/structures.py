"""The structure of a step: learned if the step was traced, looked up by its signature if it was hooked.

    traced step ─► learned from its operations: graph, source lines, what is overwritten, where targets come from
    hooked step ─► the one with its signature; if there is none, the step has no graph, and the next is traced

The signature is everything a step captured, in order: node, role, kind, and whether its module was training; and how
many operations autograd had noted when each backward pass began. So a skip connection that is taken only sometimes is
noticed, although the same modules are called.
"""

from __future__ import annotations

from typing import Any

from endoscope.recording.hooks.captured import Captured
from endoscope.recording.hooks.entries import End, size_of
from endoscope.recording.hooks.modes import quiet
from endoscope.recording.ranks.copies import copies_among
from endoscope.recording.ranks.specs import Spec, spec_of
from endoscope.recording.steps.names import Names
from endoscope.recording.structure.graph import Item, build_graph, edges_between, place_of
from endoscope.recording.structure.learned import Signature, Structure
from endoscope.recording.structure.remarks import remarks
from endoscope.recording.structure.selection import Selection
from endoscope.recording.structure.tracer import StepRecorder


def structure_of(captured: Captured, selection: Selection) -> Structure:
    """Where the structure of a hooked step is not known, the names are, and the graph is not."""
    tracer = captured.tracer
    if tracer is None or tracer.recorder.given_up:
        return captured.learned.structure_with(signature(captured)) or _without_graph(captured, selection)
    structure = _learned_from(captured, selection)
    is_whole = any(entry.kind == "output" for entry in captured.entries)
    captured.learned.keep(signature(captured), structure, is_whole)
    return structure


def signature(captured: Captured) -> Signature:
    """Equal for steps that captured the same things in the same order."""
    entries = [(e.node, e.role, e.kind, e.training) for e in captured.entries]
    links = tuple([(a.label, b.label) for a, b in captured.links])
    return captured.names.version, tuple(entries), tuple(captured.operations), links


def _without_graph(captured: Captured, selection: Selection) -> Structure:
    items = [*_owned(captured.names, {}), *_captured_items(captured)]
    chosen = selection.choose(captured, items)
    kept = [item for item, is_kept in zip(items, chosen, strict=True) if is_kept]
    return Structure(chosen[len(items) - len(captured.entries) :], kept, None, None, [])


def _learned_from(captured: Captured, selection: Selection) -> Structure:
    tracer, names, learned = captured.tracer, captured.names, captured.learned
    assert tracer is not None
    tracer.settle()
    for entry in captured.entries:
        if entry.slot >= 0 and tracer.was_copied(entry.slot):
            learned.overwritten.add((entry.node, entry.role))
    selection.name_functions(captured)
    items = [*_owned(names, tracer.named_slots()), *_captured_items(captured)]
    chosen = selection.choose(captured, items)
    kept = [item for item, is_kept in zip(items, chosen, strict=True) if is_kept]
    learned.sources |= {(i.node, i.role, i.kind): i.source for i in kept}
    shapes = _shapes(captured, names, chosen)
    graph = build_graph(tracer.recorder, kept, _stated(captured, kept), shapes.__getitem__)
    graph["remarks"] = remarks(tracer.recorder, kept, {name for name, _ in names.parameters}, captured.first_batch)
    slots = [entry.slot for entry in captured.entries]
    copies = _copies(captured, tracer.recorder, items)
    return Structure(chosen[len(items) - len(captured.entries) :], kept, graph, tracer.recorder, slots, copies)


def _copies(captured: Captured, recorder: StepRecorder, items: list[Item]) -> frozenset[int]:
    """Places of the captured tensors that all processes of a tensor-parallel group have in common."""
    relations = captured.names.relations
    if relations is None:
        return frozenset()
    with quiet():
        relations.look(captured.names)
        if not relations.has_copies:
            return frozenset()
        first = len(items) - len(captured.entries)
        specs: dict[int, Spec | None] = dict(enumerate(map(spec_of, captured.names.tensors)))
        specs |= {first + place: captured.spec_of(entry) for place, entry in enumerate(captured.entries)}
        specs |= {len(items) + place: spec for place, (_, spec) in enumerate(captured.declared_slots)}
        said = {place: relations.is_divided(spec) for place, spec in specs.items() if spec is not None}
    between = [Item("", "", 1, "", slot, "", "") for slot, _ in captured.declared_slots]
    found = copies_among(range(first, len(items)), said, edges_between(recorder, [*items, *between]))
    return frozenset(place - first for place in found)


def _owned(names: Names, slots: dict[str, int]) -> list[Item]:
    return [
        Item(name, "", 1, kind, slots.get(name, -1), name.rpartition(".")[0], "")
        for kind, named in (("parameter", names.parameters), ("buffer", names.buffers))
        for name, _ in named
    ]


def _captured_items(captured: Captured) -> list[Item]:
    recorder = None if captured.tracer is None else captured.tracer.recorder
    return [
        Item(
            e.node, e.role, e.pass_, e.kind, e.slot, e.module,
            place_of(recorder, e.slot) if recorder is not None and e.slot >= 0 else "",
        )
        for e in captured.entries
    ]  # fmt: skip


def _shapes(captured: Captured, names: Names, chosen: list[bool]) -> list[tuple[int, ...] | None]:
    with quiet():
        fixed: list[Any] = [size_of(t) for _, t in (*names.parameters, *names.buffers)]
        found = [*fixed, *[e.shape for e in captured.entries]]
    return [shape for shape, is_kept in zip(found, chosen, strict=True) if is_kept]


def _stated(captured: Captured, items: list[Item]) -> list[tuple[int, int]]:
    """The edges that the user stated, between positions of items."""
    by_name = {item.node: place for place, item in enumerate(items)}
    by_slot = {item.slot: place for place, item in enumerate(items)}

    def place_at(end: End) -> int | None:
        return by_name.get(end.label) if isinstance(end.label, str) else by_slot.get(end.slot)

    places = [(place_at(a), place_at(b)) for a, b in captured.links]
    return [(a, b) for a, b in places if a is not None and b is not None]
