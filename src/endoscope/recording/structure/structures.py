"""What a run has learned about its steps: structures from traced steps, looked up by the signature of a hooked one.

    traced step ─► learn: graph, source lines, what is overwritten, where targets come from
    hooked step ─► find(signature) ─► Structure, or None: the step has no graph, and the next of its type is traced

The signature is everything a step captured, in order: node, role, kind, and whether its module was training; and how
many operations autograd had noted when each backward pass began. So a skip connection that is taken only sometimes is
noticed, although the same modules are called.

Traced are the first captured step, the 2nd, 4th, 8th … 64th, every 64th after that, and the next one of a type that had
an unknown signature. Where more than one in eight recorded steps of a type were unknown, or where two steps with one
signature had different graphs, hooks cannot tell the structure: from then on all steps (of that type) are traced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

from endoscope.recording.hooks.captured import Captured, End
from endoscope.recording.hooks.modes import quiet
from endoscope.recording.hooks.parameters import Room
from endoscope.recording.output.meter import size_of
from endoscope.recording.steps.names import Names
from endoscope.recording.structure.graph import Item, build_graph, place_of
from endoscope.recording.structure.remarks import remarks
from endoscope.recording.structure.selection import Selection
from endoscope.recording.structure.tracer import StepRecorder

MOST_STRUCTURES = 256
MOST_ROOMS = 16
_UNTIL_A_MODEL_RUNS = 8  # captured steps without a whole forward pass teach little
_EVERY = 64  # captured steps: so often structures are learned anew
_UNKNOWN_SHARE = 8  # one in so many unknown steps is too many

Signature = tuple[Any, ...]


class Structure(NamedTuple):
    """What all steps of one signature share."""

    chosen: list[bool]  # which of the captured tensors are recorded
    items: list[Item]  # parameters, buffers, then the chosen tensors
    graph: dict[str, Any] | None  # None: not known
    recorder: StepRecorder | None  # operations of the traced step
    slots: list[int]  # of all captured tensors there


class Learned:
    """Of one run."""

    def __init__(self) -> None:
        self.overwritten: set[tuple[str, str]] = set()  # node and role of results that somebody writes into
        self.written_parameters: set[int] = set()  # positions of parameters that somebody moves who is no optimizer
        self.outside: set[tuple[str, int, int]] = set()  # after which calls and passes there is something to see
        self.gradients_are_overwritten = False  # by an optimizer, or before the step ends: they are copied
        self.used_up: set[int] = set()  # positions of parameters whose gradient is gone when its pass ends
        self._rooms: dict[tuple[int, ...], Room] = {}  # memory for copies of parameters, by their positions
        self.sources: dict[tuple[str, str, str], str] = {}  # node, role, kind -> file:line
        self.always = ""  # why every step is traced; "" if not
        self.functions = False  # patterns mean single operations, which only a traced step names
        self.inside: dict[str, set[str]] = {}  # address of a module -> types of its operations that are recorded
        self._structures: dict[Signature, Structure] = {}
        self._version = 0  # of the names
        self._captured = 0
        self._expected = ""  # type of the captured step, as it was guessed when the step began
        self._due: set[str] = set()  # types whose next captured step is traced
        self._is_due = False  # whichever comes next is
        self._has_seen_a_model = False  # a whole forward pass was traced
        self._recorded: Counter[str] = Counter()
        self._unknown: Counter[str] = Counter()
        self._traced_types: set[str] = set()

    def renew(self, names: Names) -> None:
        """Modules or parameters were replaced: nothing that was learned holds any more."""
        if names.version != self._version:
            self._version = names.version
            self._structures.clear()
            self._rooms.clear()
            for known in (self.overwritten, self.written_parameters, self.outside, self.used_up, self.inside):
                known.clear()
            self._captured, self._is_due = 0, False

    def room_for(self, tensors: Sequence[Tensor], positions: Sequence[int]) -> Room:
        """For copies of these parameters; the same as the last time, in most steps."""
        key = tuple([position for position in positions if tensors[position].requires_grad])
        room = self._rooms.get(key)
        if room is None or not room.fits():
            if len(self._rooms) >= MOST_ROOMS:
                self._rooms.clear()
            room = self._rooms[key] = Room(tensors, key)
        return room

    def next_is_traced(self, type_: str) -> bool:
        """Asked once for each captured step."""
        self._captured += 1
        self._expected = type_
        number, due, self._is_due = self._captured, self._is_due or type_ in self._due, False
        self._due.discard(type_)
        grid = number & (number - 1) == 0 if number <= _EVERY else number % _EVERY == 0
        grid |= not self._has_seen_a_model and number <= _UNTIL_A_MODEL_RUNS
        return due or grid or self.functions or bool(self.always) or type_ in self._traced_types

    def structure_of(self, captured: Captured, selection: Selection) -> Structure:
        """Learned from this step if it was traced, or else from one with the same signature; if there is none, the
        names are known, and the graph is not."""
        tracer = captured.tracer
        if tracer is not None and not tracer.recorder.given_up:
            return self.learn(captured, selection)
        known = self._structures.get(signature(captured))
        return known if known is not None else _without_graph(captured, selection)

    def learn(self, captured: Captured, selection: Selection) -> Structure:
        """From a traced step."""
        structure = _structure_of(captured, selection)
        self._has_seen_a_model |= any(entry.kind == "output" for entry in captured.entries)
        key = signature(captured)
        known = self._structures.pop(key, None)
        if known is not None and _hash(known) != _hash(structure) and not self.always:
            self.always = "steps that call the same modules in the same order were not built alike"
        if len(self._structures) >= MOST_STRUCTURES:  # a model that never does the same twice
            self._structures.pop(next(iter(self._structures)))
        self._structures[key] = structure
        return structure

    def count(self, type_: str, is_known: bool) -> str:
        """A hooked step was recorded; returns a sentence when all steps of its type are traced from now on."""
        self._recorded[type_] += 1
        if is_known:
            return ""
        self._due |= {type_, self._expected}
        self._unknown[type_] += 1
        too_many = self._unknown[type_] > 1 and self._unknown[type_] * _UNKNOWN_SHARE > self._recorded[type_]
        if not too_many or type_ in self._traced_types:
            return ""
        self._traced_types.add(type_)
        which = f"steps of type {type_!r}" if type_ else "steps"
        return f"{which} differ in what they call and compute, so from now on each of them is traced as a whole"

    def trace_next(self) -> None:
        """Something was not seen in a hooked step that a traced one sees."""
        self._is_due = True


def signature(captured: Captured) -> Signature:
    """Equal for steps that captured the same things in the same order."""
    entries = [(e.node, e.role, e.kind, e.training) for e in captured.entries]
    links = tuple([(a.label, b.label) for a, b in captured.links])
    return captured.names.version, tuple(entries), tuple(captured.operations), links


def _hash(structure: Structure) -> str:
    return "" if structure.graph is None else str(structure.graph["hash"])


def _without_graph(captured: Captured, selection: Selection) -> Structure:
    items = [*_owned(captured.names, {}), *_captured_items(captured)]
    chosen = selection.choose(captured, items)
    kept = [item for item, is_kept in zip(items, chosen, strict=True) if is_kept]
    return Structure(chosen[len(items) - len(captured.entries) :], kept, None, None, [])


def _structure_of(captured: Captured, selection: Selection) -> Structure:
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
    return Structure(chosen[len(items) - len(captured.entries) :], kept, graph, tracer.recorder, slots)


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
