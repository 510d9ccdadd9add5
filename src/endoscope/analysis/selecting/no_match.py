"""What to say when a pattern selects nothing."""

from __future__ import annotations

from collections.abc import Sequence

from endoscope.analysis.selecting.patterns import Pattern, Selectable, Selector, nearest
from endoscope.errors import NothingMatches
from endoscope.schema.ops import NUMBERED, Kind


def nothing_matches(selectors: Sequence[Selector], ops: Sequence[Selectable], name: str) -> NothingMatches:
    """The error for patterns that select none of the operations of `name`."""
    told = " ".join(_explained(selector, ops, name) for selector in selectors)
    return NothingMatches(told + " See docs/reference/patterns.md for the pattern language.")


def part_without_match(selector: Selector, ops: Sequence[Selectable]) -> Pattern | None:
    """The first plain pattern inside that selects nothing by itself: most likely what was mistyped."""
    return next((atom for atom in selector.atoms() if not any(map(atom.matches, ops))), None)


def _explained(selector: Selector, ops: Sequence[Selectable], name: str) -> str:
    beginning = f"The pattern {selector.text!r} matches no operation of {name}."
    if isinstance(selector, Pattern):
        return f"{beginning} Nearest: {_near(selector, ops)}."
    part = part_without_match(selector, ops)
    if part is None:
        return f"{beginning} Each part of it matches something, but nothing fits the whole."
    return f"{beginning} Nothing in it matches {part.text!r}. Nearest: {_near(part, ops)}."


def _near(atom: Pattern, ops: Sequence[Selectable]) -> str:
    if atom.field == "kind":
        return ", ".join(f"kind:{kind}" for kind in Kind)
    known = [f"type:{op.type}" for op in ops if op.kind in NUMBERED]
    if atom.field == "in":
        known = [f"in:{address}" for op in ops for address in op.modules]
    elif atom.field == "":
        known = [*(key for op in ops for key in op.keys), *known]
    return ", ".join(nearest(atom.text, known)) or "none, as no module was called"
