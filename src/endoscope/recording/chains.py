"""Containers whose modules are all known: they are called one after the other, and asked about all at once.

    known(x) ─► known(x) ─► …   each through `nn.Module.__call__`, an exchanged function and a question of its own
    chain(x)                    one question, then `forward` of each

Only for `nn.Sequential` itself, as torch wrote it, and only while nobody else can have a part in its call.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_
from typing import Any, NamedTuple

from torch import nn
from torch.nn.modules import container, module

from endoscope.recording.known_calls import HOOKS_OF_MODULE, Known, all_hold, own_code

IN_SEQUENCE = own_code(nn.Sequential.forward, container)
_FORWARD, _ITERATE = nn.Sequential.forward, nn.Sequential.__iter__
_CALL = nn.Module.__call__
_CALLS_AS_TORCH_DOES = own_code(_CALL, module) is not None


class Chain(NamedTuple):
    """A container and what its modules are."""

    modules: list[nn.Module]
    links: list[Known]

    def still_holds(self, sequence: nn.Module, slots: Mapping[int, int] | None, written: Mapping[int, Any]) -> bool:
        """Whether a call of the container is the calls of these modules and nothing else; see `all_hold`."""
        attributes, modules = sequence.__dict__, self.modules
        present = attributes["_modules"]
        return (
            len(present) == len(modules)
            and all(map(is_, present.values(), modules))
            and not any(HOOKS_OF_MODULE(attributes))
            and "forward" not in attributes
            and nn.Sequential.forward is _FORWARD
            and nn.Module.__call__ is _CALL
            and all_hold(self.links, slots, written)
        )


def chain_of(sequence: nn.Module, known: Mapping[int, Known]) -> Chain | None:
    """What is known about a container; None if that is not enough."""
    if sequence.__class__ is not nn.Sequential or IN_SEQUENCE is None or not _CALLS_AS_TORCH_DOES:
        return None
    modules = list(sequence._modules.values())
    links = [known.get(id(module)) for module in modules]
    if len(links) < 2 or None in links or nn.Sequential.__iter__ is not _ITERATE:
        return None
    return Chain(modules, links)  # type: ignore[arg-type]
