"""A message of which most bytes are known already, because the rows are about the same things as in the step before.

    metadata │ known │ fresh │ known │ fresh │ … │ padding

Names, keys, the lengths of lists and all that lies between the numbers are joined once. What is fresh is put between.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

from endoscope.schema.recording import TABLES
from endoscope.store.messages import Body, filled, padding_of


class Mould:
    """Made of one message, and good for all that differ from it in `fresh` buffers only.

    A buffer has the name of its column; `hist.offsets` tells where the lists (or texts) in `hist` begin.
    """

    def __init__(self, table: str, columns: Mapping[str, Any], fresh: Collection[str]) -> None:
        body, names = Body(table, columns), _buffer_names(table)
        *lengths, self._last = body.lengths
        self._filled = filled(table, tuple(lengths))
        self._has_fresh_end = names[-1] in fresh
        self._parts: list[Any] = [bytes(self._filled.ending_with(self._last))]  # fresh ones are every second from 2 on
        known: list[Any] = []
        for name, data, padding in zip(names, body.parts[::2], body.parts[1::2], strict=True):
            if name in fresh:
                self._parts += (b"".join(known), None)
                known = [padding]
            else:
                known += (data, padding)
        self._parts.append(b"".join(known))

    def fill(self, fresh: Sequence[Any]) -> bytes:
        """The message with these buffers, in the order of the file.

        They are as long as in the message that the mould was made of; only what the message ends with may have another
        length. Raises TypeError if an array does not lie in memory as it has to lie in the file.
        """
        parts = self._parts.copy()  # which would otherwise keep the numbers of a step until the next
        parts[2:-1:2] = fresh
        if self._has_fresh_end and len(fresh[-1]) != self._last:
            last = len(fresh[-1])
            parts[0], parts[-1] = self._filled.ending_with(last), padding_of(last * self._filled.width)
        return b"".join(parts)


@cache
def _buffer_names(table: str) -> list[str]:
    """Of all buffers but those of validity, in the order of the file."""
    names = []
    for name, word in TABLES[table]:
        depth = word.count("list<") + word.count("string")
        names += [name + ".offsets"] * depth + [name]
    return names
