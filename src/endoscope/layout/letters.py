"""How wide text is in Helvetica and its likes, without a font at hand: close enough to reserve room for it."""

from __future__ import annotations

from functools import lru_cache

_NARROW = dict.fromkeys("ijl|'.,:;!", 0.26) | dict.fromkeys('ft()[]{}/\\r-`" \u00a0', 0.33)
_WIDE = dict.fromkeys("mMW@%…", 0.88) | dict.fromkeys("wABCDEGHKNOPQRSTUVXYZ&", 0.69)
_WIDTHS = _NARROW | _WIDE
_OTHER = 0.57
_IDEOGRAPH = 1.0  # above this letter, scripts with letters as wide as they are high
_FIRST_IDEOGRAPH = "\u2e80"
_BOLD = 1.07


@lru_cache(maxsize=4096)
def text_width(text: str, size: float, bold: bool = False) -> float:
    """In units of `size`."""
    units = sum(_IDEOGRAPH if letter >= _FIRST_IDEOGRAPH else _WIDTHS.get(letter, _OTHER) for letter in text)
    return units * size * (_BOLD if bold else 1.0)
