"""A plain pattern: one name, type, place or kind. `patterns.py` combines them."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterable, Iterator, Sequence
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


class Early(Protocol):
    """What is known of an operation the moment it has run, or before."""

    @property
    def type(self) -> str: ...
    @property
    def kinds(self) -> Sequence[str]: ...  # what it may turn out to be
    @property
    def modules(self) -> tuple[str, ...] | None: ...  # None: not known yet
    @property
    def parents(self) -> Sequence[Early] | None: ...
    @property
    def older(self) -> bool: ...  # a module that ran since, or runs still, may return it under its own name


@dataclass(frozen=True, slots=True)
class Pattern:
    """One plain pattern, parsed."""

    text: str
    field: str  # "type", "in", "kind", or "" for names
    body: str

    related = False  # it can be decided by looking at one operation alone

    def matches(self, op: Selectable) -> bool:
        if self.field == "type":
            return _fits(self.body, op.type)
        if self.field == "kind":
            return _fits(self.body, str(op.kind))
        return any(_fits(self.body, name) for name in (op.modules if self.field == "in" else op.keys))

    def mark(self, ops: Sequence[Selectable], parents: Sequence[Sequence[int]]) -> bytearray:
        """1 for every operation that matches."""
        return bytearray(map(self.matches, ops))

    def early(self, op: Early) -> bool | None:
        """Will it match? None if that cannot be told yet."""
        if self.field == "type":
            return _fits(self.body, op.type)
        if self.field == "kind":
            found = {_fits(self.body, str(kind)) for kind in op.kinds}
            return found.pop() if len(found) == 1 else None
        if op.modules is None:
            return None
        if self.field == "in":
            return any(_fits(self.body, name) for name in op.modules)
        may_be_named = op.older or self.may_match_type(op.type) or any(map(self.may_name, op.modules))
        return None if may_be_named else False

    def may_match_type(self, type_: str) -> bool:
        """Could a label of this type match? Asked before labels are known."""
        if self.field == "type":
            return _fits(self.body, type_)
        name = self.body.removeprefix("orphan_")
        stems = [name[: found.start()] for found in re.finditer(r"_(?=[\d*?])", name)]
        if stems:
            return any(_fits(stem, type_) or "*" in stem for stem in stems)
        return "*" in name or "?" in name

    def may_name(self, module: str) -> bool:
        """Could it mean what this module returns? A pass may be named (`fc:2`), which is only known later."""
        return self.field == "" and _fits(self.body.partition(":")[0], module)

    def atoms(self) -> Iterator[Pattern]:
        yield self


def parse_plain(text: str) -> Pattern:
    """A pattern without combinations; the text is stripped and not empty."""
    prefix, colon, body = text.partition(":")
    field = prefix if colon and prefix in PREFIXES else ""
    name = unquoted(body if field else text)
    if not name:
        raise BadArgument(
            f"Pattern {text!r} names nothing. Say what is meant, for example type:relu, in:encoder.2, relu_1."
        )
    if field:
        return Pattern(text, field, name)
    if colon and re.fullmatch(r"[a-z]+", prefix) and not re.fullmatch(r"[\d*?]+", body):
        known = ", ".join(f"{p}:" for p in PREFIXES)
        raise BadArgument(f"Pattern {text!r} starts with {prefix + ':'!r}, which is none of {known}.")
    return Pattern(text, "", name)


def unquoted(body: str) -> str:
    """Quotes only keep the characters of combinations apart; they are no part of the name."""
    body = body.strip()
    return body[1:-1] if len(body) > 1 and body[0] in "'\"" and body[-1] == body[0] else body


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
