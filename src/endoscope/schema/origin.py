"""Where something wrong begins: the operation that made it, and what it was made from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

NONFINITE, OUTLIER = "nonfinite", "outlier"


@dataclass(frozen=True, slots=True)
class Operand:
    """One tensor that an operation read."""

    name: str  # what made it: an operation, a parameter, an input, a recorded node; empty if that is not known
    argument: str  # through which argument it is read: 0, 1[2], weight
    shape: tuple[int, ...] = ()
    low: float = math.nan  # smallest and largest finite number in it, of the samples concerned where these are known
    high: float = math.nan
    nonfinite: int = 0  # how many of these elements are NaN or infinite
    at: float | None = None  # the element from which the first wrong result was made, where that can be told

    def __str__(self) -> str:
        told = f"{self.argument}={self.name or 'tensor'}"
        if self.at is not None:
            return f"{told} is {self.at:g} there"
        if self.low != self.low:
            return f"{told} has no finite number there" if self.nonfinite else told
        return f"{told} from {self.low:g} to {self.high:g}"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where NaN, infinity or an unusual sample begins."""

    sort: str  # "nonfinite" or "outlier"
    of: str  # "value", "parameter", "gradient" of a trace, "gradient:<loss>" of a recording
    node: str  # label of the operation in a trace; in a recording the node, or the first node behind the operation
    operation: str  # plain name of what made it: log, softmax, input, parameter; of a gradient, whose backward did
    module: str = ""  # address of the module around it
    source: str = ""  # file:line
    step: int | None = None  # of a recording
    samples: tuple[int, ...] = ()  # of the batch; empty if it belongs to no single one, or that is not known
    elements: int = 0  # how many are wrong
    value: float = math.nan  # the first wrong element; of an outlier, by how many usual spreads the sample is off
    inputs: tuple[Operand, ...] = ()
    path: tuple[str, ...] = ()  # nodes from here to where it was asked about
    exact: bool = True  # False: the operation could not be repeated, so it is only known that it is around here

    def __str__(self) -> str:
        return " ".join(filter(None, (self._what(), self._where(), self._from())))

    def _what(self) -> str:
        samples = f" of sample{'s' if len(self.samples) > 1 else ''} {_listed(self.samples)}" if self.samples else ""
        if self.sort == OUTLIER:
            return f"{self._unusual()}{samples} is {self.value:.3g} usual spreads away from the others"
        if self.of.startswith("gradient") and self.operation in _HOLDERS:
            return f"the gradient of {self.node} has {self.value:g}{samples}"
        if self.operation in _HOLDERS:
            return f"{self.node} holds {self.value:g}{samples}"
        name = f"the backward pass of {self.operation}" if self.of.startswith("gradient") else self.operation
        return f"{name} {'made' if self.exact else 'or what is before it made'} {self.value:g}{samples}"

    def _unusual(self) -> str:
        """What an operation returned; where only nodes are known, the first of them that shows it."""
        if self.step is None or self.operation in _HOLDERS or not self.exact:
            return self.node
        return f"the result of {self.operation}"

    def _where(self) -> str:
        place = f"at {self.source}" if self.source else ""
        return place if self.step is None else f"{place}{', ' if place else ''}step {self.step}"

    def _from(self) -> str:
        if self.sort == OUTLIER and not self.exact:
            names = [one.name for one in self.inputs if one.name and one.name != self.node]
            named = ", ".join(names[-_MOST_NAMED:])
            between = f"between {named} and {self.node}" if named else f"in {self.node} or before it"
            return f"(the operation that made it so is somewhere {between})"
        return f"({'; '.join(map(str, self.inputs))})" if self.inputs else ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, in which numbers that are not finite are texts."""
        data = asdict(self)
        data["value"] = _plain(self.value)
        for operand in data["inputs"]:
            operand.update({name: _plain(operand[name]) for name in ("low", "high", "at")})
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Origin:
        """The reverse; what is not known is left out."""
        known = {field.name: data[field.name] for field in fields(cls) if field.name in data}
        known |= {name: tuple(known[name]) for name in ("samples", "path") if name in known}
        known["inputs"] = tuple(_operand(one) for one in known.get("inputs", ()))
        known["value"] = _number(known.get("value"))
        return cls(**known)


_HOLDERS = frozenset(("input", "target", "parameter", "buffer", "constant"))
_MOST_LISTED = 8
_MOST_NAMED = 2  # nodes before an outlier: the nearest


def _listed(samples: tuple[int, ...]) -> str:
    more = len(samples) - _MOST_LISTED
    return ", ".join(map(str, samples[:_MOST_LISTED])) + (f" and {more} more" if more > 0 else "")


def _operand(data: Mapping[str, Any]) -> Operand:
    known = {field.name: data[field.name] for field in fields(Operand) if field.name in data}
    known["shape"] = tuple(known.get("shape", ()))
    known |= {name: _number(known[name]) for name in ("low", "high") if name in known}
    if known.get("at") is not None:
        known["at"] = _number(known["at"])
    return Operand(**known)


def _plain(value: float | None) -> float | str | None:
    return value if value is None or math.isfinite(value) else str(value)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
