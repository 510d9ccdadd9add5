"""Checks of numbers that users type, with errors that say what to type instead."""

from __future__ import annotations

import math
import operator
from typing import Any

from endoscope.errors import BadArgument


def whole(name: str, value: Any, least: int) -> int:
    """A whole number of at least `least`."""
    try:
        number = operator.index(value)  # also numpy's integers
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise BadArgument(f"{name}={value!r} must be a whole number of at least {least}.")
    return number


def nonnegative(name: str, value: Any) -> float:
    """A finite number, 0 or more."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise BadArgument(f"{name}={value!r} must be a number, 0 or more.")
    return float(value)
