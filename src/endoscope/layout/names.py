"""What boxes are called, as it reads inside of the box around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from endoscope.layout.folding import Box
from endoscope.layout.tree import STORED, Tree


def relative(name: str, module: str) -> str:
    return name.removeprefix(f"{module}.") if module else name


def with_type(label: str, type_: str) -> str:
    """A bare number says nothing: the seventh child of a Sequential becomes `6 · relu`, a call `6:2 · relu`."""
    return f"{label} · {type_}" if label.partition(":")[0].isdigit() and type_ else label


def stack_label(addresses: Sequence[str]) -> str:
    """Of several equal modules: `0…11`."""
    first, last = (addresses[end].rpartition(".")[2] for end in (0, -1))
    return f"{first}…{last}"


def box_label(tree: Tree, box: Box, module_label: Callable[[int], str]) -> str:
    """Of a closed module, or of several equal ones."""
    if len(box.modules) > 1:
        return stack_label([tree.modules[module].address for module in box.modules])
    return module_label(box.modules[0])


def last_computed(tree: Tree, parts: Sequence[int]) -> int:
    """The part that stands for a module of which nobody knows what it returns."""
    return max(parts, key=lambda part: (tree.graph.parts[part].kind not in STORED, tree.order[part]))


def shape_text(shape: Sequence[int] | None) -> str:
    """4×3, or the word for a shape without dimensions; empty if it is not known."""
    if shape is None:
        return ""
    return "×".join(map(str, shape)) if shape else "scalar"
