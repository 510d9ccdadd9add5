"""A short list of names of torch and Python that stand for functions of ours while somebody needs them.

    put()      ─► the original is remembered, `make(original)` is called instead     counted: the first user puts,
    take_off() ─► the name is what it was, unless somebody else has patched it       the last one takes off

Plain `setattr`, and nothing else: whoever holds the original function under a name of their own calls the original.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

_MISSING = object()
lock = threading.RLock()  # held by whoever changes patches, or who traces where


class Patch(NamedTuple):
    """What stands for `owner.name`; `make` is given the original."""

    owner: Any
    name: str
    make: Callable[[Any], Any]


class _Place:
    """One patched name."""

    def __init__(self, patch: Patch) -> None:
        self.patch = patch
        self.found: Any = _MISSING  # what stood there when it was patched last; missing where a base class has it
        self.replacement: Any = None
        self.left: Any = _MISSING  # what somebody else has put over ours, which is below it

    def put(self) -> None:
        owner, name, make = self.patch
        found = vars(owner).get(name, _MISSING)
        if found is self.left is not _MISSING:
            return
        if found is not self.found or self.replacement is None:  # the same as the last time, in most cases
            self.found, self.replacement = found, make(getattr(owner, name))
        setattr(owner, name, self.replacement)
        self.left = _MISSING

    def take_off(self) -> None:
        owner, name, _ = self.patch
        now = vars(owner).get(name, _MISSING)
        if now is not self.replacement:
            self.left = now
        elif self.found is _MISSING:
            delattr(owner, name)
        else:
            setattr(owner, name, self.found)


class PatchList:
    """Patches that are put and taken off together, by whoever holds the lock."""

    def __init__(self, list_patches: Callable[[], Sequence[Patch]]) -> None:
        self._list_patches = list_patches  # asked when they are needed first
        self._places: list[_Place] = []
        self._users = 0

    @property
    def are_on(self) -> bool:
        return self._users > 0

    def put(self) -> None:
        self._users += 1
        if self._users == 1:
            self._places = self._places or [_Place(patch) for patch in self._list_patches()]
            for place in self._places:
                place.put()

    def take_off(self) -> None:
        self._users -= 1
        if self._users == 0:
            for place in reversed(self._places):
                place.take_off()
