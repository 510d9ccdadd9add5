"""Which tensors were recorded at which steps: what the page may offer, and where it leads to."""

from __future__ import annotations

from typing import NamedTuple

from endoscope.query.recording import Recording
from endoscope.query.steps import Steps
from endoscope.schema.recording import Key


class Presence(NamedTuple):
    """Which tensors steps have. Most steps have the same ones, so each collection is listed once."""

    tensors: list[tuple[Key, int]]  # different shapes of one tensor are one; with its largest number of samples
    sets: list[list[int]]  # places in `tensors`, ascending
    ordinals: list[int]
    set_of: list[int]  # for each step, the place in `sets`; -1: its statistics have gone


def presence(recording: Recording) -> Presence:
    """Which tensors were recorded at which steps, of all kinds."""
    place: dict[tuple[str, str, int, str], int] = {}
    keys: list[Key] = []
    batches: list[int] = []
    place_of: dict[int, int] = {}  # number of a key -> place
    for number, key in recording.tables.keys.by_number.items():
        at = place.setdefault((key.node, key.role, key.pass_, key.of), len(keys))
        if at == len(keys):
            keys.append(key)
            batches.append(0)
        batches[at] = max(batches[at], key.shape[key.batch_dim] if 0 <= key.batch_dim < len(key.shape) else 0)
        place_of[number] = at

    def find(steps: Steps) -> Presence:
        sets: list[list[int]] = []
        recorded: dict[int, int] = {}  # ordinal -> place in `sets`
        for layout in recording.tables.columns("stats").layouts:
            recorded |= dict.fromkeys(layout.ordinals, len(sets))
            sets.append(sorted({place_of[n] for n in layout.keys.tolist() if n in place_of}))
        set_of = [recorded.get(step.ordinal, -1) for step in steps.list]
        ordinals = [step.ordinal for step in steps.list]
        return Presence(list(zip(keys, batches, strict=True)), sets, ordinals, set_of)

    return recording.tables.steadily(find)
