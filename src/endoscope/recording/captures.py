"""Makes the `Capture` of each step; that of a step of which there were only notes is used again."""

from __future__ import annotations

from collections.abc import Callable

from endoscope.recording.capture import Capture
from endoscope.recording.following import NOBODY, OFTEN
from endoscope.recording.inventory import Inventory
from endoscope.recording.rooms import Rooms
from endoscope.recording.selection import Selection
from endoscope.recording.watch import Watch


class Captures:
    """What the steps of a run have in common: models, their names, what is recorded of them, memory for copies."""

    def __init__(self, watches: list[Watch], failed: Callable[[str, BaseException], None]) -> None:
        self._watches = watches
        self._failed = failed
        self._inventory = Inventory(watches)
        self._rooms = Rooms()
        self._blank: Capture | None = None
        self._against = 0  # steps in a row that had a backward pass, and of which there were only notes in the end
        self.selection = Selection(())

    def watch_more(self) -> None:
        """Another model is watched."""
        self._inventory.look_again()
        self.selection = Selection(self._watches)

    def make(self, postpones: bool) -> Capture:
        """For a step that begins; `postpones` if it may be decided against."""
        blank, self._blank = self._blank, None
        if blank is not None and postpones and blank.renew(self.selection):
            blank.gradients.following = self._inventory.chains.proven if self._against >= OFTEN else NOBODY
            return blank
        parts = self._watches, self._inventory, self.selection, self._rooms
        return Capture(*parts, self._failed, postpones)

    def use_again(self, capture: Capture) -> None:
        """There were only notes of a step, and nobody needs them any more."""
        if capture.gradients.may_have_come:
            self._against += 1
            if self._against == OFTEN:
                self._inventory.chains.proven |= capture.heard.notes.chains_that_can_be_followed()
        capture.wipe()
        self._blank = capture

    def was_kept(self) -> None:
        """A step is kept, and so may the next ones be."""
        self._against = 0

    def clear(self) -> None:
        """The run has ended."""
        if self._blank is not None:
            self._blank.let_go()
        self._blank = None
        self._watches.clear()
        self._inventory.clear()
        self._rooms.clear()
