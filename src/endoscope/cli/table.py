"""Rows as an aligned table for a terminal."""

from collections.abc import Sequence
from typing import Any

_WIDEST = 60  # characters of one cell


def format_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """The names of the columns, a rule, and one line per row; numbers stand to the right."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    right = [bool(rows) and all(isinstance(row[n], (int, float)) for row in rows) for n in range(len(columns))]
    lines = [list(columns), ["-" * width for width in widths], *cells]
    return "\n".join(_line(line, widths, right) for line in lines)


def human_bytes(size: int) -> str:
    """1234567 -> 1.2 MB"""
    amount = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = [
        cell.rjust(width) if is_right else cell.ljust(width)
        for cell, width, is_right in zip(cells, widths, right, strict=True)
    ]
    return "  ".join(padded).rstrip()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
