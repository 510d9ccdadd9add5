"""The pattern language: one way to say which operations are meant, everywhere in the tool.

    relu_3           a label, short or full, with or without :pass          *  stands for any characters
    encoder.2        what a module returns (any nesting level, :pass too)   encoder.*.attn
    fc.weight        a parameter or buffer
    type:relu        all operations of a type                               type:conv*
    in:encoder.2     everything computed inside a module, however deep
    kind:generated   all nodes of a kind
    a & b   a | b   !a   (a)                                                & binds tighter than |, ! tightest
    child_of(a)   parent_of(a)   descendant_of(a)   ancestor_of(a)   sibling_of(a)

Upper and lower case matter, dots are ordinary characters. Quotes around a name take the meaning from `&|()`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from endoscope.analysis.selecting.combinations import RELATIONS, Either, Every, Not, Related, Selector
from endoscope.analysis.selecting.plain_patterns import PREFIXES, Pattern, Selectable, nearest, parse_plain
from endoscope.errors import BadArgument

__all__ = ["Either", "Every", "Not", "Pattern", "Related", "Selectable", "Selector", "nearest", "parse"]

_DEEPEST = 100  # nested parentheses; nobody reads more
_ENDS = re.compile(r"[&|()]")
_QUOTED = re.compile(rf"(?:(?:{'|'.join(PREFIXES)}):\s*)?(['\"])")
#: A blank behind which another pattern begins.
_JOINED = re.compile(rf"\s(?=\s*(?:(?:{'|'.join(PREFIXES)}):|(?:{'|'.join(RELATIONS)})$))")


def parse(text: str) -> Selector:
    """One pattern, or several combined."""
    if not isinstance(text, str) or not text.strip():
        raise BadArgument(f"A pattern is a non-empty string such as 'type:relu' or 'encoder.2', not {text!r}.")
    return _Parser(text).whole()


class _Parser:
    """Reads from left to right; one method for each level of binding."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def whole(self) -> Selector:
        found = self.alternatives()
        if self.at < len(self.text):
            raise self.error("there is no ( that this ) closes" if self.peek() == ")" else "& or | is missing here")
        return found

    def alternatives(self) -> Selector:
        start, parts = self.skip(), [self.all_of()]
        while self.takes("|"):
            parts.append(self.all_of())
        return parts[0] if len(parts) == 1 else Either(self.since(start), tuple(parts))

    def all_of(self) -> Selector:
        start, parts = self.skip(), [self.one()]
        while self.takes("&"):
            parts.append(self.one())
        return parts[0] if len(parts) == 1 else Every(self.since(start), tuple(parts))

    def one(self) -> Selector:
        start = self.skip()
        if self.takes("!"):
            inner = self.nested(self.one)
            return Not(self.since(start), inner)
        if self.takes("("):
            return self.closed()
        body = self.plain()
        if self.peek() != "(":
            if not body:
                raise self.error(self.expected())
            return parse_plain(body)
        if body not in RELATIONS:
            raise self.error(self.unknown(body), start)
        self.takes("(")
        inner = self.closed()
        return Related(self.since(start), body, inner)

    def closed(self) -> Selector:
        opened = self.at - 1
        inner = self.nested(self.alternatives)
        if not self.takes(")"):
            if self.at < len(self.text):
                raise self.error("& or | is missing here")
            raise self.error("this ( is never closed", opened)
        return inner

    def nested(self, level: Callable[[], Selector]) -> Selector:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error(f"more than {_DEEPEST} levels of ( and !")
        found = level()
        self.depth -= 1
        return found

    def plain(self) -> str:
        """A plain pattern, or the word before a parenthesis."""
        start = self.at
        quote = _QUOTED.match(self.text, start)
        if quote:
            closing = self.text.find(quote[1], quote.end())
            if closing < 0:
                raise self.error(f"this {quote[1]} is never closed", quote.end() - 1)
            self.at = closing + 1
        else:
            end = _ENDS.search(self.text, start)
            self.at = end.start() if end else len(self.text)
        body = self.text[start : self.at].rstrip()
        joined = None if quote else _JOINED.search(body)
        if joined:
            raise self.error("& or | is missing here", start + joined.start())
        self.skip()
        return body

    # ---- characters ------------------------------------------------------------------------------

    def skip(self) -> int:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.at

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def takes(self, character: str) -> bool:
        self.skip()
        if self.peek() != character:
            return False
        self.at += 1
        self.skip()
        return True

    def since(self, start: int) -> str:
        return self.text[start : self.at].strip()

    # ---- what is wrong ---------------------------------------------------------------------------

    def expected(self) -> str:
        seen = f", not {self.peek()!r}" if self.at < len(self.text) else ", and the text ends"
        return f"a pattern is expected here{seen}"

    def unknown(self, word: str) -> str:
        known = ", ".join(f"{name}(…)" for name in RELATIONS)
        close = nearest(word, RELATIONS, 1)[0]
        return f"{word!r} is no relation, did you mean {close!r}? There are {known}"

    def error(self, what: str, at: int | None = None) -> BadArgument:
        place = " " * (self.at if at is None else at)
        return BadArgument(
            f"The pattern cannot be read: {what}.\n    {self.text.rstrip()}\n    {place}^\nWrite it like "
            "type:max_pool2d & child_of(type:relu), or put a name that contains one of & | ( ) into quotes."
        )
