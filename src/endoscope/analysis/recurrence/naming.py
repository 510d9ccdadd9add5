"""Names of layers and passes, after the scheme of the TorchLens paper.

`{type}_{n-th layer of that type}_{n-th layer overall}`, counted from 1 and from 0, with `:pass` behind it when a
layer runs more than once. What makes two operations passes of one layer is decided by whoever gives the keys: equal
keys are one layer, `None` is a layer of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Names:
    """Layers of a trace; the first two lists run over operations, the last three over layers."""

    layer: list[int]  # operation -> its layer
    pass_: list[int]  # operation -> which pass of that layer, from 1
    label: list[str]  # layer -> relu_3_6
    short: list[str]  # layer -> relu_3
    passes: list[int]  # layer -> how often it runs


def name_layers(types: Sequence[str], keys: Sequence[Hashable | None]) -> Names:
    """Number the layers in the order in which their first operation appears."""
    names = Names([], [], [], [], [])
    of_type: dict[str, int] = {}
    known: dict[Hashable, int] = {}
    layer, pass_, label, short, passes = names.layer, names.pass_, names.label, names.short, names.passes
    for type_, key in zip(types, keys, strict=True):
        number = known.get(key) if key is not None else None
        if number is None:
            number = len(label)
            nth = of_type[type_] = of_type.get(type_, 0) + 1
            brief = f"{type_}_{nth}"
            short.append(brief)
            label.append(f"{brief}_{number}")
            passes.append(0)
            if key is not None:
                known[key] = number
        passes[number] += 1
        layer.append(number)
        pass_.append(passes[number])
    return names
