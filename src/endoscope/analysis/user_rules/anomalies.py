"""`endoscope.anomaly`: what somebody wants to be told of, under a name of their own.

    endoscope.anomaly("big X", "encoder.2: abs_max > 1")
         ├─► known to the process ─► endoscope.diagnose, endoscope.correlate
         └─► the object that is returned ─► Run(when=…), diagnose(path, anomalies=[…])

Both sides of the tool use it, so nothing here needs torch or numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from endoscope.errors import BadArgument

if TYPE_CHECKING:  # what patterns need takes long to load; whoever has anomalies pays for it
    from endoscope.analysis.user_rules.rules import Rule, Where

SEVERITIES = ("info", "warning", "error")


@dataclass(frozen=True, slots=True)
class Look:
    """What a function of somebody's own is asked about: one tensor at one step."""

    node: str
    role: str
    pass_: int
    of: str  # value, parameter, update or gradient:<loss>
    kind: str  # input, parameter, buffer, computed, target, loss, output
    step: int
    type: str  # of the step
    statistics: Mapping[str, float]  # of the whole tensor
    samples: Mapping[str, Any]  # of every sample: statistic -> array; empty if the tensor has no samples


Function = Callable[[Look], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Anomaly:
    """A rule or a function with a name; made by `endoscope.anomaly`."""

    name: str
    severity: str
    where: Where
    rule: Rule | None = None
    function: Function | None = None

    def forget(self) -> None:
        """The process does not look for it any more."""
        if _known.get(self.name) is self:
            del _known[self.name]

    def __enter__(self) -> Anomaly:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: TracebackType | None) -> None:
        self.forget()

    def __repr__(self) -> str:
        said = repr(self.rule.text) if self.rule is not None else getattr(self.function, "__name__", "a function")
        return f"anomaly({self.name!r}, {said})"


_known: dict[str, Anomaly] = {}


def anomaly(name: str, rule: str | Function, *, severity: str = "warning", nodes: str = "") -> Anomaly:
    """Look for something of your own: `endoscope.anomaly("big X", "encoder.2: abs_max > 1")`.

    `rule` is a text, or a function of one tensor at one step (`Look`) that returns True or False, or one of these for
    each sample; `nodes` then says for which tensors it is called. Findings of this process report the anomaly from now
    on, until you call its `forget()`. A new anomaly replaces one of the same name. `Run(when=…)` takes anomalies, too.
    """
    made = make(name, rule, severity, nodes)
    _known[made.name] = made
    return made


def make(name: Any, rule: Any, severity: Any = "warning", nodes: Any = "") -> Anomaly:
    """The same, known to nobody."""
    from endoscope.analysis.user_rules.rules import EXAMPLE, read_rule, read_where

    if not isinstance(name, str) or not name.strip():
        raise BadArgument(f'An anomaly has a name to report it by, not {name!r}: anomaly("big X", "{EXAMPLE}").')
    if severity not in SEVERITIES:
        raise BadArgument(f"severity={severity!r} of {name!r} is none of {', '.join(map(repr, SEVERITIES))}.")
    if not callable(rule):
        if nodes:
            raise BadArgument(
                f"nodes={nodes!r} is for functions. The rule {rule!r} says before its colon which tensors it is about."
            )
        read = read_rule(rule)
        return Anomaly(name, severity, read.where, rule=read)
    return Anomaly(name, severity, read_where(nodes or "*"), function=rule)


def registered() -> list[Anomaly]:
    """Those that the process looks for, in the order in which they were made."""
    return list(_known.values())


def clear() -> None:
    """Look for none of them any more."""
    _known.clear()
