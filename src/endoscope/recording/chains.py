"""Containers whose modules are all known: they are called one after the other, and asked about all at once.

    known(x) ─► known(x) ─► …   each through `nn.Module.__call__`, an exchanged function and a question of its own
    chain(x)                    one question, then the operation of each, and one note for all of them

Only for `nn.Sequential` itself, as torch wrote it, and only while nobody else can have a part in its call. A known
module by itself is a chain without a container.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import is_
from typing import Any, NamedTuple

from torch import nn
from torch.nn.modules import container, module

from endoscope.recording.bare_calls import BareCalls, bare_calls
from endoscope.recording.following import can_be_followed
from endoscope.recording.known_calls import HOOKS_OF_MODULE, Known, all_hold, own_code

IN_SEQUENCE = own_code(nn.Sequential.forward, container)
_FORWARD, _ITERATE = nn.Sequential.forward, nn.Sequential.__iter__
_CALL, _IMPLEMENTATION = nn.Module.__call__, nn.Module._call_impl
_CALLS_AS_TORCH_DOES = own_code(_CALL, module) is not None
RELU = nn.ReLU.forward


class Chain(NamedTuple):
    """A container and what its modules are."""

    key: int  # the id of what is called: the container, or the module
    container: nn.Module | None
    modules: list[nn.Module]
    links: list[Known]
    classes: set[Any]
    calls: BareCalls
    no_copies: list[None]  # one for each
    rectified: list[int]  # numbers of the ReLUs whose argument nobody but the container has had
    held: list[int]  # numbers of the results that are no such argument
    can_be_followed: bool  # the gradients of all results follow from that of the last

    def still_holds(
        self, slots: Mapping[int, int] | None, written: Mapping[int, Any], whatever_hooks: bool = False
    ) -> bool:
        """Whether a call of the container is the calls of these modules and nothing else; see `all_hold`."""
        if self.container is not None:
            attributes, modules = self.container.__dict__, self.modules
            present = attributes["_modules"]
            if (
                len(present) != len(modules)
                or not all(map(is_, present.values(), modules))
                or (any(HOOKS_OF_MODULE(attributes)) and not whatever_hooks)
                or "forward" in attributes
                or nn.Sequential.forward is not _FORWARD
                or nn.Module.__call__ is not _CALL
            ):
                return False
            for one in self.classes:
                if one.__call__ is not _CALL or one._call_impl is not _IMPLEMENTATION:
                    return False
        return all_hold(self.links, slots, written)


class Chains:
    """Those of the watched models, by the ids of what is called; steps share them until more modules are known."""

    def __init__(self) -> None:
        self.count = -1  # of known modules
        self.single: dict[int, Chain] = {}
        self.containers: dict[int, Chain] = {}
        self.proven: set[int] = set()  # keys of those whose gradients were seen to follow from each other

    def look(self, modules: Iterable[nn.Module], known: Mapping[int, Known]) -> None:
        if self.count != len(known):
            self.count = len(known)
            found = [_chain_of(module, known) for module in modules if module.__class__ is nn.Sequential]
            self.containers = {chain.key: chain for chain in found if chain is not None}
            self.single = {identity: chain_of_one(one) for identity, one in known.items()}


def chain_of_one(known: Known) -> Chain:
    return Chain(id(known.module), None, [known.module], [known], set(), bare_calls([known]), [None], [], [0], False)


def _chain_of(sequence: nn.Module, known: Mapping[int, Known]) -> Chain | None:
    """What is known about a container; None if that is not enough."""
    modules: list[Any] = list(sequence._modules.values())
    links = [one for one in map(known.get, map(id, modules)) if one is not None]
    if IN_SEQUENCE is None or not _CALLS_AS_TORCH_DOES or nn.Sequential.__iter__ is not _ITERATE:
        return None
    if len(links) < 2 or len(links) < len(modules):
        return None
    rectified: list[int] = []
    for number, link in enumerate(links):
        # What comes out of a ReLU is held, also if it goes into another one.
        if number and link.forward is RELU and number - 1 not in rectified:
            rectified.append(number)
    held = [number for number in range(len(links)) if number + 1 not in rectified]
    classes, calls, no_copies = set(map(type, modules)), bare_calls(links), [None] * len(links)
    lists = links, classes, calls, no_copies, rectified, held
    return Chain(id(sequence), sequence, modules, *lists, can_be_followed(links))
