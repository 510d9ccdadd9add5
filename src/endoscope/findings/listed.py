"""Lists of what was found: ordinary lists that also show themselves in a notebook."""

from __future__ import annotations

from typing import TypeVar

from endoscope.markup.notebook import Shown, fitting
from endoscope.markup.tags import Markup, tag

One = TypeVar("One", bound=Shown)


class Listed(list[One], Shown):
    """What `diagnose`, `differences` and `correlate` return."""

    __slots__ = ()

    def _block(self) -> Markup:
        if not self:
            return tag("p", "Nothing was found.")
        parts = [one._block() for one in self]
        return tag("div", fitting(parts, f"There are {len(self)} in all; print them to see the others."))
