"""Parameters and buffers of the watched models, as the first nodes of every recorded step.

A trace meets them one by one, where they are first read. A recorded step has them from the start: what it notes of them
is the same in every step, so it is worked out once, and a step only copies the lists.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor

from endoscope.capture.calls import Calls
from endoscope.capture.records import SOURCE, Source, slots_of
from endoscope.capture.regions import is_uninitialised, storage_key

if TYPE_CHECKING:
    from endoscope.capture.recorder import Recorder


class Sources(NamedTuple):
    """What a recorder notes of them. Number, slot and node of each are the same."""

    ids: dict[int, int]
    objects: list[Any]
    nodes: list[Any]
    sources: dict[int, Source]
    storages: dict[tuple[int, ...], frozenset[int]]  # where their numbers are -> the storages that these are in

    @classmethod
    def of(cls, calls: Calls) -> Sources:
        named = [entry for entry in calls.named.values() if not is_uninitialised(entry[2])]
        return cls(
            ids={id(tensor): number for number, (_, _, tensor) in enumerate(named)},
            objects=[weakref.ref(tensor) for _, _, tensor in named],
            nodes=[
                (SOURCE[kind], None, (), None, [], number, 1, 0, 0, 0, None, -1, -1, None, True)
                for number, (kind, _, _) in enumerate(named)
            ],
            sources={number: Source(kind, name, -1) for number, (kind, name, _) in enumerate(named)},
            storages={},
        )

    def put_into(self, recorder: Recorder) -> None:
        """Before it hears anything."""
        recorder.ids.update(self.ids)
        recorder.objects.extend(self.objects)
        recorder.slot_node.extend(range(len(self.nodes)))
        recorder.nodes.extend(self.nodes)
        recorder.sources.update(self.sources)
        recorder.aliasing.put_off(self.storages_now())

    def storages_now(self) -> frozenset[int] | None:
        """Where all of them are, looked up only if one was moved; None if there is one that has no place."""
        tensors = [reference() for reference in self.objects]
        try:
            places = tuple(map(Tensor.data_ptr, tensors))
        except (AttributeError, TypeError, RuntimeError, NotImplementedError):
            return None
        if places not in self.storages:
            keys = [storage_key(tensor) for tensor in tensors]
            self.storages.clear()
            self.storages[places] = frozenset([key for key in keys if key is not None])
        return self.storages[places]


def first_calls(recorder: Recorder) -> dict[int, int]:
    """Slot -> the module call in which it was first read."""
    calls: dict[int, int] = {}
    for node in recorder.nodes:
        for read in node[4]:
            for slot in slots_of(read):
                calls.setdefault(slot, node[12])
    return calls
