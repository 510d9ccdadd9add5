"""Decisions as JSON: plain data but for the comparison that a test makes, which is stored by its name."""

from __future__ import annotations

import dataclasses
import operator
from typing import Any

from endoscope.analysis.branching.branches import Decision
from endoscope.analysis.branching.constructs import Branch, Construct, Test, Unlocated
from endoscope.analysis.branching.steering import Step
from endoscope.analysis.branching.syntax import CallText, Span

_CLASSES: dict[str, Any] = {one.__name__: one for one in (Decision, Test, Unlocated, Branch, Step, Span, CallText)}
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne", "is_", "is_not", "contains")
_BY_NAME = {name: getattr(operator, name) for name in _COMPARISONS}
_NAMES = {function: name for name, function in _BY_NAME.items()}


def encode_decision(value: Any) -> Any:
    """JSON: tuples as lists, our own classes as {"is": name, field: ...}."""
    if isinstance(value, Construct):
        return {"is": "Construct", "value": str(value)}
    name = type(value).__name__
    if _CLASSES.get(name) is type(value):
        fields = getattr(value, "_fields", None) or [one.name for one in dataclasses.fields(value)]
        return {"is": name, **{field: encode_decision(getattr(value, field)) for field in fields}}
    if isinstance(value, (tuple, list)):
        return [encode_decision(item) for item in value]
    if callable(value):
        return {"is": "comparison", "name": _NAMES.get(value, "")}
    if isinstance(value, float) and not float("-inf") < value < float("inf"):
        return {"is": "float", "value": repr(value)}
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def decode_decision(data: Any) -> Any:
    if isinstance(data, list):
        return tuple(map(decode_decision, data))
    if not isinstance(data, dict):
        return data
    name = data["is"]
    if name == "Construct":
        return Construct(data["value"])
    if name == "float":
        return float(data["value"])
    if name == "comparison":
        return _BY_NAME.get(data["name"])
    return _CLASSES[name](**{field: decode_decision(item) for field, item in data.items() if field != "is"})
