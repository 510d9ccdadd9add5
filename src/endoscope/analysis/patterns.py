"""The pattern language: one way to say which operations are meant, everywhere in the tool.

    relu_3           a label, short or full, with or without :pass          *  stands for any characters
    encoder.2        what a module returns (any nesting level, :pass too)   encoder.*.attn
    fc.weight        a parameter or buffer
    type:relu        all operations of a type                               type:conv*
    in:encoder.2     everything computed inside a module, however deep
    kind:generated   all nodes of a kind

Upper and lower case matter, dots are ordinary characters.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from endoscope.errors import BadArgument

PREFIXES = ("type", "in", "kind")


class Selectable(Protocol):
    """What a pattern looks at."""

    @property
    def type(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def keys(self) -> Iterable[str]: ...  # labels and module addresses under which it is found
    @property
    def modules(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class Pattern:
    """One pattern, parsed."""

    text: str
    field: str  # "type", "in", "kind", or "" for names
    body: str

    def matches(self, op: Selectable) -> bool:
        if self.field == "type":
            return _fits(self.body, op.type)
        if self.field == "kind":
            return _fits(self.body, str(op.kind))
        return any(_fits(self.body, name) for name in (op.modules if self.field == "in" else op.keys))

    def may_match_type(self, type_: str) -> bool:
        """Could a label of this type match? Asked before labels are known."""
        if self.field == "type":
            return _fits(self.body, type_)
        stem = re.match(r"(.+?)_[\d*?\[]", self.body)
        if stem:
            return _fits(stem.group(1), type_) or "*" in stem.group(1)
        return "*" in self.body or "?" in self.body


def parse(text: str) -> Pattern:
    if not isinstance(text, str) or not text.strip():
        raise BadArgument(f"A pattern is a non-empty string such as 'type:relu' or 'encoder.2', not {text!r}.")
    text = text.strip()
    prefix, colon, body = text.partition(":")
    if colon and body and prefix in PREFIXES:
        return Pattern(text, prefix, body.strip())
    if colon and re.fullmatch(r"[a-z]+", prefix) and not re.fullmatch(r"[\d*?]+", body):
        known = ", ".join(f"{p}:" for p in PREFIXES)
        raise BadArgument(f"Pattern {text!r} starts with {prefix + ':'!r}, which is none of {known}.")
    return Pattern(text, "", text)


@functools.lru_cache(maxsize=4096)
def _matcher(body: str) -> re.Pattern[str]:
    translated = "".join(".*" if c == "*" else "." if c == "?" else re.escape(c) for c in body)
    return re.compile(translated, re.DOTALL)


def _fits(body: str, text: str) -> bool:
    return _matcher(body).fullmatch(text) is not None


def nearest(wanted: str, known: Iterable[str], count: int = 5) -> list[str]:
    """The known names that look most like the wanted one, best first."""
    names = list(dict.fromkeys(known))
    close = difflib.get_close_matches(wanted, names, n=count, cutoff=0.5)
    if len(close) < count:
        stem = re.split(r"[_:.\d]", wanted, maxsplit=1)[0]
        close += [n for n in names if stem and stem in n and n not in close][: count - len(close)]
    return close or names[:count]
