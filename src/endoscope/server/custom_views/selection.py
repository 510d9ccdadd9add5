"""What a custom view is told about the page: what the user has selected."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from endoscope.errors import BadArgument

_FIELDS = ("type", "step", "of", "sample", "node", "role")
_MOST_BYTES = 100_000


class Selection:
    """The page's current selection; a field that the user has not chosen is None.

    `which` goes straight into the methods of a recording:
    `recording.tensor(selection.node, selection.step, **selection.which)`.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.all: dict[str, Any] = dict(data)  # everything that the page sent, also what has no name here
        trials = data.get("trials")
        self.trials: list[str] = [str(name) for name in trials] if isinstance(trials, list) else []
        self.type: str | None = data.get("type")
        self.step: int | None = data.get("step")
        self.of: str | None = data.get("of")
        self.sample: int | None = data.get("sample")
        self.node: str | None = data.get("node")
        self.role: str | None = data.get("role")
        self.pass_: int | None = data.get("pass")

    @property
    def trial(self) -> str | None:
        """The first of the selected trials; the recording that a view gets is this one's."""
        return self.trials[0] if self.trials else None

    @property
    def which(self) -> dict[str, Any]:
        """Arguments that say which tensor of the node is meant."""
        return {"of": self.of or "value", "role": self.role, "pass_": self.pass_, "type": self.type}

    def __repr__(self) -> str:
        fields = [*_FIELDS, "pass_"]
        shown = [f"{name}={value!r}" for name in fields if (value := getattr(self, name)) is not None]
        return f"<Selection {', '.join([f'trials={self.trials!r}', *shown])}>"


def parse(text: str) -> Selection:
    """From what stands in the address."""
    try:
        data = json.loads(text) if len(text) <= _MOST_BYTES else None
    except (json.JSONDecodeError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise BadArgument(f"A selection is a JSON object of at most {_MOST_BYTES} bytes, not {text[:80]!r}.")
    return Selection(data)
