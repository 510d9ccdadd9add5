"""The language of own anomalies: which tensors, and what must be true of their statistics.

    encoder.2: abs_max > 1                                     a node, a colon, a condition
    in:encoder of=gradient type="long inputs": norm > 10        a pattern; then of=, role=, pass=, type= as for reading
    type:relu: zeros / count > 0.9 and mean < 1e-3              any statistic of the whole tensor; + - * / abs()
    head: sample.abs_max > 4 * abs_max or q99 > 3               of each sample: sample.<statistic>

The text is parsed as a Python expression and never run as one: only what is listed here is understood. The same rule is
asked about recorded numbers and about those of a step that has just ended, so nothing here needs torch or numpy.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

from endoscope.analysis.selecting.patterns import Selectable, Selector, parse
from endoscope.analysis.selecting.plain_patterns import PREFIXES
from endoscope.analysis.user_rules.conditions import Condition, read_condition
from endoscope.errors import BadArgument
from endoscope.schema.recording import GRADIENT

EXAMPLE = "encoder.2: abs_max > 1"
_OPTIONS = ("of", "role", "pass", "type")
_OPTION = re.compile(r"""\s(\w+)=("[^"]*"|'[^']*'|[^\s'"]+)\s*$""")
_OF = ("value", "parameter", "gradient", "update")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")


@dataclass(frozen=True, slots=True)
class Where:
    """Which tensors a rule is about."""

    text: str
    pattern: Selector
    of: str = "value"
    role: str | None = None
    pass_: int | None = None
    type: str | None = None

    def may_be(self, of: str) -> bool:
        """Whether tensors of this sort are meant at all."""
        if self.of == "value":
            return of in ("value", "parameter")
        return of.startswith(GRADIENT) if self.of == "gradient" else of == self.of

    def names(self, named: Selectable, role: str, pass_: int) -> bool:
        """Whether something of this tensor is meant: its value, its gradients, or its update."""
        return self.role in (None, role) and self.pass_ in (None, pass_) and self.pattern.matches(named)

    def selects(self, named: Selectable, of: str, role: str, pass_: int) -> bool:
        """Whether this tensor is meant."""
        return self.may_be(of) and self.names(named, role, pass_)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, parsed."""

    text: str
    where: Where
    condition: Condition


@dataclass(frozen=True, slots=True)
class Named:
    """A tensor as patterns look at it."""

    keys: tuple[str, str]
    type: str  # of the function that made it
    kind: str
    modules: tuple[str, ...]


def named(node: str, pass_: int, type_: str, kind: str, module: str) -> Named:
    """What patterns are asked about."""
    parts = module.split(".") if module else []
    modules = tuple(".".join(parts[: count + 1]) for count in range(len(parts)))
    return Named((node, f"{node}:{pass_}"), type_, kind, modules)


def read_rule(text: Any) -> Rule:
    """A rule from its text; an error says what is wrong with it and shows the place."""
    if not isinstance(text, str) or not text.strip():
        raise BadArgument(f"A rule is a text such as {EXAMPLE!r}, not {text!r}.")
    at = _colon(text)
    if at is None:
        raise BadArgument(
            f"The rule {text!r} has no colon, so it does not say which tensors it is about. Write the node, a colon, a "
            f"blank and the condition: {EXAMPLE!r}; '*' as the node means all."
        )
    return Rule(text, read_where(text[:at]), read_condition(text, at + 1))


def read_where(text: Any) -> Where:
    """The part in front of the colon: a pattern, and perhaps of=, role=, pass=, type=."""
    if not isinstance(text, str) or not text.strip():
        raise BadArgument(f"{text!r} names no tensors. Write a node or a pattern, such as 'encoder.2' or '*'.")
    rest, said = text, dict[str, str]()
    while found := _OPTION.search(rest):
        name, value = found[1].rstrip("_"), found[2]
        if name not in _OPTIONS or name in said:
            why = "is said twice" if name in said else f"is none of {', '.join(f'{word}=' for word in _OPTIONS)}"
            raise BadArgument(f"{text.strip()!r}: {found[1]}= {why}. Write it like 'encoder.2 of=gradient'.")
        said[name] = value[1:-1] if value[0] in "'\"" else value
        rest = rest[: found.start()]
    pattern = parse(rest.strip())
    if pattern.related:
        raise BadArgument(
            f"{text.strip()!r} uses relations such as child_of(…), which are not known while a step runs. Use names, "
            "type:, in: and kind:, combined by &, | and !."
        )
    pass_ = _number(text, said["pass"]) if "pass" in said else None
    return Where(text.strip(), pattern, _of(text, said.get("of", "value")), said.get("role"), pass_, said.get("type"))


def _colon(text: str) -> int | None:
    """Where the condition begins: a colon before a blank, outside of quotes, that belongs to no `type:` or `in:`."""
    plain = _QUOTED.sub(lambda found: "·" * len(found[0]), text)
    for found in re.finditer(r":(?=\s|$)", plain):
        word = re.search(r"[\w.*?]*$", plain[: found.start()])
        if word is None or word[0] not in PREFIXES or _is_condition(plain[found.end() :]):
            return found.start()
    return None


def _is_condition(text: str) -> bool:
    """A node may be called `type` or `in`: then no other colon comes before the condition."""
    return not re.search(r":(?=\s)", text)


def _of(text: str, said: str) -> str:
    if said in _OF or (said.startswith(GRADIENT) and said != GRADIENT):
        return said
    raise BadArgument(
        f"{text.strip()!r}: of={said} is none of value, gradient, gradient:<loss>, update, parameter. Write it like "
        "'encoder.2 of=gradient'."
    )


def _number(text: str, said: str) -> int:
    try:
        number = int(ast.literal_eval(said))
    except (ValueError, SyntaxError, TypeError):
        number = 0
    if number < 1:
        raise BadArgument(f"{text.strip()!r}: pass={said} is no pass. They count from 1: pass=2.")
    return number
