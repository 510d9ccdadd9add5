"""Copies of parameters that are made when a module is about to read them anyway.

    optimizer.step()   needs copies of the parameters: they are made before it, at the latest
    module(x)          reads its parameters, mostly from memory that has left the cache of the processor since

Copying takes as long as reading that memory. Right before the call of a module it costs next to nothing, for the module
finds the numbers in the cache then. So a step copies them there. What has to be asked before is asked once for all
modules of a chain.

Only the first call of a module in a step counts, and only until somebody writes into parameters. Whether a copy still
is what the optimizer meets is asked before it is believed: see `Parameters.copy_those`. Where steps are decided against
before their update, when the loss is known, nothing is copied ahead any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from endoscope.stats import Copies

if TYPE_CHECKING:
    from endoscope.recording.chains import Chain
    from endoscope.recording.known_calls import Known

IN_VAIN_AT_MOST = 3  # steps in a row whose copies nobody took
AT_MOST = 4 * 2**20  # bytes of one module: more would have left the cache again when the module reads it


class ChainCopies(Copies):
    """Copies for all modules of a chain: where everything lies is asked once."""

    def __init__(self, parts: Sequence[Copies | None]) -> None:
        found = [part for part in parts if part is not None]
        super().__init__(
            [source for part in found for source in part.sources], [target for part in found for target in part.targets]
        )
        self._parts = found  # the kernels read tables that are theirs
        #: For each module, what copies its parameters; None if it has none.
        self.makes: list[Callable[[], object] | None] = [None if part is None else part.make_now for part in parts]


class Ahead:
    """What is copied ahead in the step that runs."""

    def __init__(self, rooms: Mapping[int, Tensor]) -> None:
        """`rooms` has memory for parameters that optimizers have moved, by their ids."""
        self._rooms = rooms
        self.waiting: dict[int, Any] = {}  # id of a module or container -> what is to be copied when it is called
        self.done: list[int] = []  # ids of the modules whose parameters are copied
        self._parts: dict[int, Copies] = {}
        self._known: Any = None
        self._count = 0  # of known modules
        self._in_vain = 0  # steps in a row whose copies nobody took
        self.helps = True  # so far

    def begin_step(self, known: Mapping[int, Known], chains: Mapping[int, Chain]) -> None:
        """Parameters of these modules are copied when they are called."""
        if self._known is not known or self._count != len(known):
            self._known, self._count = known, len(known)
            self._parts = self._look_at(known, chains.values())
        self.waiting.update(self._parts)

    def _look_at(self, known: Mapping[int, Known], chains: Iterable[Chain]) -> dict[int, Copies]:
        """Of single modules, which may be called without their container, and of containers."""
        single = {identity: _part_of(one, self._rooms) for identity, one in known.items()}
        parts: dict[int, Copies] = {key: ChainCopies([part]) for key, part in single.items() if part is not None}
        for chain in chains:
            first = {id(module): number for number, module in reversed([*enumerate(chain.modules)])}
            found = {number: single.get(identity) for identity, number in first.items()}
            if any(found.values()):
                parts[chain.key] = ChainCopies([found.get(number) for number in range(len(chain.modules))])
        return parts

    def look_again(self) -> None:
        """There is other memory for some parameters."""
        self._known, self._parts = None, {}
        self.end_step()

    def end_step(self) -> None:
        self.waiting.clear()
        if self.done:
            self._in_vain += 1
            self.helps = self._in_vain < IN_VAIN_AT_MOST
            self.done.clear()

    def take(self) -> list[int]:
        """Ids of the modules whose parameters are copied; from now on parameters are not what they were."""
        done, self._in_vain, self.helps = self.done.copy(), 0, True
        self.waiting.clear()
        self.done.clear()
        return done

    def copied(self, modules: list[int]) -> set[int]:
        """Ids of the parameters of these modules that are copied with them."""
        return {id(parameter) for module in modules for parameter in self._parts[module].sources}


def _part_of(known: Known, rooms: Mapping[int, Tensor]) -> Copies | None:
    """None if there is nothing to copy, or if that would take long."""
    found = [(p, identity) for _, p, identity, _ in known.parameters if p is not None and identity in rooms]
    if not found or sum(p.nbytes for p, _ in found) > AT_MOST:
        return None
    copies = Copies([p for p, _ in found], [rooms[identity] for _, identity in found])
    return copies if copies.are_quick else None
