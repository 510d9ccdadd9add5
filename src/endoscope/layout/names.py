"""What boxes are called, as it reads inside of the box around them."""

from __future__ import annotations

from collections.abc import Sequence


def relative(name: str, module: str) -> str:
    return name.removeprefix(f"{module}.") if module else name


def with_type(label: str, type_: str) -> str:
    """A bare number says nothing: the seventh child of a Sequential becomes `6 · relu`, a call `6:2 · relu`."""
    return f"{label} · {type_}" if label.partition(":")[0].isdigit() and type_ else label


def stack_label(addresses: Sequence[str]) -> str:
    """Of several equal modules: `0…11`."""
    first, last = (addresses[end].rpartition(".")[2] for end in (0, -1))
    return f"{first}…{last}"


def shape_text(shape: Sequence[int] | None) -> str:
    """4×3, or the word for a shape without dimensions; empty if it is not known."""
    if shape is None:
        return ""
    return "×".join(map(str, shape)) if shape else "scalar"
