"""Operations of known modules, called without the functions of Python around them.

    linear(x)   nn.Linear.forward ─► nn.Module.__getattr__, twice ─► F.linear(x, weight, bias)
    bare        F.linear(x, weight, bias)

The same function gets the same arguments, so nobody can tell the difference who does not look at Python itself, as
debuggers, profilers and coverage do. While one of them does, nothing is called in another way than by torch; and where
anybody has exchanged a name on that way, `forward` is called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from operator import getitem, is_
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional
from torch.nn.modules import activation, linear

from endoscope.recording.known_calls import Known, own_code

#: A function, and what it is called with behind the input.
Call = tuple[Callable[..., Any], tuple[Any, ...]]
_Name = tuple[Mapping[str, Any], str, Any]  # where it stands, and for what

_trace, _profile = sys.gettrace, sys.getprofile
_monitoring: Any = getattr(sys, "monitoring", None)  # from Python 3.12 on


def _way(forward: Any, module: Any, *names: tuple[Any, str]) -> tuple[Any, list[_Name]]:
    """A `forward` and the names that it goes through, as torch has them; None if it is somebody else's by now."""
    own = forward if own_code(forward, module) is not None else None
    return own, [(vars(owner), name, vars(owner)[name]) for owner, name in names]


#: Class -> its `forward` and the names that it goes through; the last one is the operation.
_WAYS: dict[type, tuple[Any, list[_Name]]] = {
    nn.Linear: _way(nn.Linear.forward, linear, (functional, "linear")),
    nn.ReLU: _way(nn.ReLU.forward, activation, (functional, "relu"), (torch, "relu")),
    nn.Tanh: _way(nn.Tanh.forward, activation, (torch, "tanh")),
    nn.Sigmoid: _way(nn.Sigmoid.forward, activation, (torch, "sigmoid")),
}


class BareCalls(NamedTuple):
    """How several modules are called: all in the same manner."""

    forwards: list[Call]
    bare: list[Call]
    tables: list[Mapping[str, Any]]
    names: list[str]
    found: list[Any]

    def now(self) -> list[Call] | None:
        """None while somebody looks."""
        if _trace() is not None or _profile() is not None or (_monitoring is not None and _is_monitored()):
            return None
        return self.bare if all(map(is_, map(getitem, self.tables, self.names), self.found)) else self.forwards


def bare_calls(known: Iterable[Known]) -> BareCalls:
    forwards: list[Call] = []
    bare: list[Call] = []
    names: dict[tuple[int, str], _Name] = {}
    for one in known:
        forward, way = _WAYS.get(one.module.__class__, (None, []))
        forwards.append((partial(one.forward, one.module), ()))
        parameters = _behind_input(one)
        if one.forward is not forward or one.func is not way[-1][2] or parameters is None:
            bare.append(forwards[-1])
        else:
            bare.append((one.func, parameters))
            names |= {(id(table), name): (table, name, found) for table, name, found in way}
    tables, keys, found = zip(*names.values(), strict=True) if names else ((), (), ())
    return BareCalls(forwards, bare, list(tables), list(keys), list(found))


def _behind_input(known: Known) -> tuple[Any, ...] | None:
    """What its operation was given after the input: parameters, or None in the place of one; None if anything else."""
    if known.kwargs or not known.reads or known.reads[0] != -1 or known.inputs != (0,):
        return None
    owned = {slot: parameter for _, parameter, _, slot in known.parameters if parameter is not None}
    read, found = iter(known.reads[1:]), list[Any]()
    for argument in known.args[1:]:
        parameter = None if argument is None else owned.get(next(read, -1))
        if parameter is None and argument is not None:
            return None
        found.append(parameter)
    return tuple(found)


def _is_monitored() -> bool:
    return any(map(_monitoring.get_tool, range(6)))
