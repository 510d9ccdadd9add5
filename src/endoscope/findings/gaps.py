"""The gaps of a recording, summed up: which reasons were given, how often each, and for what."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from endoscope.query.recording import Gap

_STEP_NUMBER = re.compile(r"\b([Ss]tep) \d+\b")


class Reason(NamedTuple):
    """One reason, the same for all steps."""

    text: str
    times: int
    nodes: tuple[str, ...]  # that it was given for, without repetitions; "" is the step as a whole


def summed_up(gaps: Iterable[Gap]) -> list[Reason]:
    """The reasons, the most frequent first."""
    nodes_of: dict[str, list[str]] = {}
    for gap in gaps:
        nodes_of.setdefault(without_number(gap.reason), []).append(gap.node)
    found = [Reason(text, len(nodes), tuple(dict.fromkeys(nodes))) for text, nodes in nodes_of.items()]
    return sorted(found, key=lambda reason: -reason.times)


def without_number(reason: str) -> str:
    """A reason that names its step is another one at every step; this is what they have in common."""
    return _STEP_NUMBER.sub(r"\1 …", reason)


def as_sentence(reason: str) -> str:
    """With a capital letter and a full stop."""
    return reason[:1].upper() + reason[1:] + ("" if not reason or reason.endswith((".", "…")) else ".")
