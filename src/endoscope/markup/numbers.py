"""Numbers as people read them."""

from __future__ import annotations

import math
import time

_GAP = "\u202f"  # a narrow space that does not break


def number(value: float) -> str:
    """Three significant digits."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == int(value) and abs(value) < 1e6:
        return whole(int(value))
    return f"{value:.3g}".replace("-", "−", 1) if value < 0 else f"{value:.3g}"


def whole(value: int) -> str:
    """1 234 567."""
    return f"{value:,}".replace(",", _GAP).replace("-", "−")


def short(value: float) -> str:
    """For axes: as few characters as possible."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e5 or size < 1e-3:
        mantissa, exponent = f"{value:.1e}".split("e")
        return f"{mantissa.removesuffix('.0')}e{int(exponent)}".replace("-", "−")
    return f"{value:.4g}".replace("-", "−")


def step_number(value: float) -> str:
    """Of a step, on an axis: 400, 12k."""
    if value >= 10_000 and value % 100 == 0:
        return f"{value / 1000:g}k"
    return f"{value:g}"


def size(count: float) -> str:
    """18.2 MB."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError("unreachable")


def duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    if seconds < 7200:
        return f"{seconds / 60:.3g} min"
    return f"{seconds / 3600:.3g} h"


def moment(unix_seconds: float) -> str:
    """2026-11-16 09:12, or a dash."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(unix_seconds)) if unix_seconds else "–"


def plural(count: int, word: str) -> str:
    """1 step, 2 steps."""
    return f"{whole(count)} {word}{'' if count == 1 else 's'}"
