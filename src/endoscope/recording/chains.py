"""Containers whose modules are all known: they are called one after the other, and asked about all at once.

    known(x) ─► known(x) ─► …   each through `nn.Module.__call__`, an exchanged function and a question of its own
    chain(x)                    one question, then the operation of each, and one note for all of them

Only for `nn.Sequential` itself, as torch wrote it, and only while nobody else can have a part in its call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import is_
from typing import Any, NamedTuple

from torch import nn
from torch.nn.modules import container, module

from endoscope.recording.bare_calls import BareCalls, bare_calls
from endoscope.recording.known_calls import HOOKS_OF_MODULE, Known, all_hold, own_code

IN_SEQUENCE = own_code(nn.Sequential.forward, container)
_FORWARD, _ITERATE = nn.Sequential.forward, nn.Sequential.__iter__
_CALL = nn.Module.__call__
_CALLS_AS_TORCH_DOES = own_code(_CALL, module) is not None
_RELU = nn.ReLU.forward


class Chain(NamedTuple):
    """A container and what its modules are."""

    container: nn.Module
    modules: list[nn.Module]
    links: list[Known]
    calls: BareCalls
    no_copies: list[None]  # one for each
    rectified: list[int]  # numbers of the ReLUs whose argument nobody but the container has had
    held: list[int]  # numbers of the results that are no such argument

    def still_holds(self, slots: Mapping[int, int] | None, written: Mapping[int, Any]) -> bool:
        """Whether a call of the container is the calls of these modules and nothing else; see `all_hold`."""
        return not any(HOOKS_OF_MODULE(self.container.__dict__)) and self.is_its_forward(slots, written)

    def is_its_forward(self, slots: Mapping[int, int] | None, written: Mapping[int, Any]) -> bool:
        """The same for its `forward`."""
        attributes, modules = self.container.__dict__, self.modules
        present = attributes["_modules"]
        return (
            len(present) == len(modules)
            and all(map(is_, present.values(), modules))
            and "forward" not in attributes
            and nn.Sequential.forward is _FORWARD
            and nn.Module.__call__ is _CALL
            and all_hold(self.links, slots, written)
        )


def chains_among(modules: Iterable[nn.Module], known: Mapping[int, Known]) -> dict[int, Chain]:
    """By the ids of their containers."""
    found = [chain_of(module, known) for module in modules if module.__class__ is nn.Sequential]
    return {id(chain.container): chain for chain in found if chain is not None}


def chain_of(sequence: nn.Module, known: Mapping[int, Known]) -> Chain | None:
    """What is known about a container; None if that is not enough."""
    if sequence.__class__ is not nn.Sequential or IN_SEQUENCE is None or not _CALLS_AS_TORCH_DOES:
        return None
    modules = list(sequence._modules.values())
    links = [one for one in map(known.get, map(id, modules)) if one is not None]
    if len(links) < 2 or len(links) < len(modules) or nn.Sequential.__iter__ is not _ITERATE:
        return None
    rectified: list[int] = []
    for number, link in enumerate(links):
        # What comes out of a ReLU is held, also if it goes into another one.
        if number and link.forward is _RELU and number - 1 not in rectified:
            rectified.append(number)
    held = [number for number in range(len(links)) if number + 1 not in rectified]
    return Chain(sequence, modules, links, bare_calls(links), [None] * len(links), rectified, held)
