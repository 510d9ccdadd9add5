"""What a run has learned about its steps: structures by their signatures, what is overwritten, where targets come from.

Traced are the first captured step, the 2nd, 4th, 8th … 64th, every 64th after that, and the next one of a type that had
an unknown signature. Where more than one in eight recorded steps of a type were unknown, or where two steps with one
signature had different graphs, hooks cannot tell the structure: from then on all steps (of that type) are traced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor

from endoscope.recording.hooks.room import Room

if TYPE_CHECKING:
    from endoscope.recording.steps.names import Names
    from endoscope.recording.structure.graph import Item
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
    copies: frozenset[int] = frozenset()  # captured tensors that all processes of a tensor-parallel group have

    @property
    def hash(self) -> str:
        return "" if self.graph is None else str(self.graph["hash"])


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

    def structure_with(self, key: Signature) -> Structure | None:
        return self._structures.get(key)

    def keep(self, key: Signature, structure: Structure, is_whole: bool) -> None:
        """Of a traced step; it is whole if a watched model has run to its end."""
        self._has_seen_a_model |= is_whole
        known = self._structures.pop(key, None)
        if known is not None and known.hash != structure.hash and not self.always:
            self.always = "steps that call the same modules in the same order were not built alike"
        if len(self._structures) >= MOST_STRUCTURES:  # a model that never does the same twice
            self._structures.pop(next(iter(self._structures)))
        self._structures[key] = structure

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
        return f"{which} differ from each other in what they compute, so from now on each of these steps is traced"

    def trace_next(self) -> None:
        """Something was not seen in a hooked step that a traced one sees."""
        self._is_due = True
