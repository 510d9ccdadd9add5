"""What a traced step shows and its contracted graph does not: facts about operations between recorded tensors.

Each remark is plain data for `findings`, which judges it: {"what": …, "module": …, "source": file:line, "node": …}.
`node` is the first recorded tensor that is computed from it; empty if there is none.

    loss            a loss function: `type`, `reads` (what made each argument), `shapes` of these
    softmax         `dim` and `shape`
    normalised      one of the functions that normalise over the last dimensions, over a single number: `type`, `shape`
    dropout         `p`
    exchanged       a view that gives the first two dimensions each other's sizes: `shape`, `result`
    paired          (n, 1) and (n,) in one operation: `type`, `shapes`
    cut             a result without gradient, although its argument has one: `type`
    functions       all that the watched models have called: `types`
    unregistered    a parameter that learns, belongs to no watched model and is held by no optimizer: `name`, `shape`
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any, NamedTuple

from torch.optim import Optimizer

from endoscope.capture.data.calls import OUTSIDE
from endoscope.capture.data.nodes import Node, slots_of
from endoscope.recording.structure.graph import Item, place_of
from endoscope.recording.structure.tracer import StepRecorder
from endoscope.schema.ops import Kind

LOSSES = frozenset(
    "cross_entropy cross_entropy_loss nll_loss nll_loss_nd nll_loss2d binary_cross_entropy mse_loss l1_loss huber_loss "
    "binary_cross_entropy_with_logits smooth_l1_loss kl_div poisson_nll_loss gaussian_nll_loss "
    "ctc_loss".split()
)
_SAME_NUMBERS = frozenset(
    "view reshape flatten squeeze unsqueeze contiguous clone to float double half bfloat16 type type_as getitem "
    "output broadcast_tensors __getitem__ permute transpose t view_as expand select slice ravel".split()
)
_PAIRS = frozenset("sub mul add rsub div broadcast_tensors".split())
_NORMALISED = frozenset("layer_norm native_layer_norm rms_norm normalize".split())
_VIEWS = frozenset(("view", "reshape"))
_MOST = 200  # of one graph


class _Said(NamedTuple):
    """A remark about an operation, before it is known which recorded tensor comes from it."""

    number: int
    what: dict[str, Any]


def remarks(recorder: StepRecorder, items: list[Item], owned: set[str], batch: int) -> list[dict[str, Any]]:
    """All of one step; `owned` are the names of parameters of watched models, `batch` is the number of samples."""
    said = list(_all(recorder, owned, batch))[:_MOST]
    shown = _first_recorded_below(recorder, items, [one.number for one in said])
    found = []
    for one in said:
        node = recorder.nodes[one.number]
        path = recorder.calls.path(node.call)
        place = {"module": path[-1] if path else "", "source": place_of(recorder, node.slot)}
        found.append({**one.what, **place, "node": shown.get(one.number, "")})
    return [*found, _functions(recorder)]


def _functions(recorder: StepRecorder) -> dict[str, Any]:
    inside = {node.facts.type for n, node in enumerate(recorder.nodes) if node.call != OUTSIDE}
    return {"what": "functions", "types": sorted(map(str, inside)), "module": "", "source": "", "node": ""}


def _all(recorder: StepRecorder, owned: set[str], batch: int) -> Iterator[_Said]:
    unnamed = _unregistered(recorder, owned)
    for number, node in enumerate(recorder.nodes):
        if number in recorder.sources:
            continue
        for slot in _read(node) if unnamed else ():
            if slot in unnamed and node.call != OUTSIDE:
                name = unnamed.pop(slot)
                yield _Said(number, {"what": "unregistered", "name": name, "shape": _shape(recorder, slot)})
        yield from (_Said(number, what) for what in _of(recorder, node, batch))


def _of(recorder: StepRecorder, node: Node, batch: int) -> Iterator[dict[str, Any]]:
    type_, read = node.facts.type, _read(node)
    shapes = [_shape(recorder, slot) for slot in read]
    if type_ in LOSSES:
        yield {"what": "loss", "type": type_, "reads": [_maker(recorder, slot) for slot in read], "shapes": shapes}
    elif type_ in ("softmax", "log_softmax") and shapes and (dim := _argument(node, "dim", 1)) is not None:
        yield {"what": "softmax", "dim": dim % max(len(shapes[0]), 1), "shape": shapes[0], "batch": batch}
    elif type_ in _NORMALISED and shapes and shapes[0] and shapes[0][-1] == 1:
        yield {"what": "normalised", "type": type_, "shape": shapes[0]}
    elif type_ == "dropout" and _argument(node, "training", 2) is not False:
        yield {"what": "dropout", "p": _argument(node, "p", 1)}
    elif type_ in _VIEWS and shapes and _are_exchanged(shapes[0], result := _shape(recorder, node.slot), batch):
        yield {"what": "exchanged", "shape": shapes[0], "result": result}
    elif type_ in _PAIRS and len(shapes) == 2 and _are_paired(*shapes):
        yield {"what": "paired", "type": type_, "shapes": shapes}
    if _is_cut(recorder, node, read):
        yield {"what": "cut", "type": type_}


def _are_exchanged(before: list[int], after: list[int], batch: int) -> bool:
    """From (batch, time, …) to (time, batch, …): a view cuts the same order of numbers into other pieces."""
    if len(before) < 2 or len(after) < 2 or batch not in before[:2] or min(before[:2]) < 2:
        return False
    return before[0] != before[1] and after[:2] == before[1::-1] and after[2:] == before[2:]


def _are_paired(one: list[int], other: list[int]) -> bool:
    flat, column = sorted((one, other), key=len)
    return len(flat) == 1 and len(column) == 2 and column == [flat[0], 1] and flat[0] > 1


def _is_cut(recorder: StepRecorder, node: Node, read: list[int]) -> bool:
    """Whether a gradient could come to what is read, and not from the result; whole numbers have none anyway."""
    meta = recorder.metas.get(node.slot)
    dtype = node.dtype if node.dtype is not None else getattr(meta, "dtype", None)
    if dtype is None or not dtype.is_floating_point or node.facts.written is not None or _has_gradient(recorder, node):
        return False
    return any(_has_gradient(recorder, recorder.nodes[recorder.slot_node[slot]]) for slot in read)


def _has_gradient(recorder: StepRecorder, node: Node) -> bool:
    meta = recorder.metas.get(node.slot)
    if meta is not None:
        return bool(meta.requires_grad)
    return node.grad_fn is not None and node.grad_fn is not type(None)


def _unregistered(recorder: StepRecorder, owned: set[str]) -> dict[int, str]:
    """Slot -> name of the parameters that learn, belong to no watched model and are held by no optimizer."""
    found: dict[int, tuple[str, Any]] = {}
    for number, source in recorder.sources.items():
        slot = recorder.nodes[number].slot
        tensor = recorder.objects[slot]() if source.kind is Kind.PARAMETER and source.name not in owned else None
        if tensor is not None and tensor.requires_grad:
            found[slot] = source.name, tensor
    held = _held_by_optimizers() if found else set()
    return {slot: name for slot, (name, tensor) in found.items() if id(tensor) not in held}


def _held_by_optimizers() -> set[int]:
    """Ids of all parameters that any optimizer of this process moves. It looks through all objects."""
    optimizers = [one for one in gc.get_objects() if issubclass(type(one), Optimizer)]
    return {id(p) for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]}


def _read(node: Node) -> list[int]:
    return [slot for read in node.reads for slot in slots_of(read)]


def _shape(recorder: StepRecorder, slot: int) -> list[int]:
    node, meta = recorder.nodes[recorder.slot_node[slot]], recorder.metas.get(slot)
    shape = meta.shape if meta is not None else node.shape
    return [] if shape is None else list(shape)


def _maker(recorder: StepRecorder, slot: int) -> str:
    """The function that made the numbers of a tensor, looked for above what only arranges them."""
    node = recorder.nodes[recorder.slot_node[slot]]
    while node.facts.type in _SAME_NUMBERS and (read := _read(node)):
        # What several tensors are broadcast to comes out in the order in which they went in.
        place = slot - node.slot if node.facts.type == "broadcast_tensors" else 0
        slot = read[min(place, len(read) - 1)]
        node = recorder.nodes[recorder.slot_node[slot]]
    return str(node.facts.type)


def _argument(node: Node, name: str, position: int) -> Any:
    """A plain number or a truth value that was given to a function; None if it is neither."""
    value = (node.kwargs or {}).get(name, node.args[position] if len(node.args) > position else None)
    return value if isinstance(value, (bool, int, float)) else None


def _first_recorded_below(recorder: StepRecorder, items: list[Item], numbers: list[int]) -> dict[int, str]:
    """Number of an operation -> the first recorded tensor that depends on it, itself included."""
    names = {recorder.slot_node[item.slot]: item.node for item in reversed(items) if item.slot >= 0}
    waiting, found = set(numbers), dict[int, str]()
    from_: dict[int, set[int]] = {}  # operation -> those of the wanted ones that it comes from, without a name yet
    for number, node in enumerate(recorder.nodes if waiting else ()):
        parents = {recorder.slot_node[slot] for slot in _read(node)}
        open_ = {one for parent in parents for one in from_.get(parent, ()) if one not in found}
        open_ |= {number} if number in waiting else set()
        if number in names and number not in recorder.sources:
            found.update(dict.fromkeys(open_, names[number]))
        elif open_:
            from_[number] = open_
    return found
