"""What is data and what is a target: known by where tensors come from, not guessed by their shapes.

    between the model's calls and `backward`, every operation ─► Op(reads, results, selects)
    an operand that meets something the model made, and does not come from the model ─► back to its source ─► a target

The way back ends at a tensor that was there before, or at an operation that selects: in `loss(model(X[i]), Y[i])` the
target is `Y[i]`, the labels of the batch, and not all labels with an index. What a frozen teacher returns is a target;
so is a tensor that the step made out of nothing, such as the `torch.ones(n)` of a GAN. A parameter is none, and neither
is what was made of parameters alone, such as transposed weights by which the results are multiplied.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, NamedTuple

from torch import Tensor

from endoscope.capture.patch.composites import OwnMode, close_composites, open_composites
from endoscope.capture.record.leaves import argument_tensors
from endoscope.recording.hooks.modes import put_on, take_off

_READ_GRAD: Any = Tensor.grad.__get__  # type: ignore[union-attr]  # as `zero_grad` does for each parameter
MOST_OPS = 200  # that are looked at between two outermost calls of a hooked step
_SELECTING = frozenset(
    """getitem index select index_select gather take take_along_dim masked_select narrow slice split chunk unbind
    tensor_split unfold""".split()
)


class Op(NamedTuple):
    """One operation outside of the watched models. Tensors are known by slots or by ids."""

    reads: tuple[Hashable, ...]
    results: tuple[Hashable, ...]
    selects: bool


def selects(name: str) -> bool:
    return name.strip("_") in _SELECTING


class Known(NamedTuple):
    """What is asked about a tensor, by its slot or id."""

    is_named: Callable[[Any], bool]  # it is owned, or captured already
    is_owned: Callable[[Any], bool]  # it is a parameter or a buffer


def targets_of(ops: list[Op], derived: set[Any], known: Known) -> list[Any]:
    """Sources of what meets the model's results; `derived` grows by what comes of these."""
    made = _made(ops)
    found: dict[Any, None] = {}
    for op in ops:
        if any(read in derived for read in op.reads):
            for read in op.reads:
                if read not in derived:
                    found |= dict.fromkeys(_targets(read, made, derived, known))
            derived.update(op.results)
    return list(found)


def _made(ops: list[Op]) -> dict[Any, Op]:
    """Which operation made a tensor; one that hands its argument back has not."""
    return {result: op for op in ops for result in op.results if result not in op.reads}


def _targets(read: Any, made: dict[Any, Op], derived: set[Any], known: Known) -> list[Any]:
    origins = list(_origins(read, made, derived, known))
    sources = [one for one in origins if not known.is_named(one)]
    if sources or known.is_named(read) or read in derived:
        return sources
    is_of_parameters = bool(origins) and all(map(known.is_owned, origins))
    return [] if is_of_parameters else [read]


def data_of(ops: list[Op], entered: Iterable[Any], known: Known) -> list[Any]:
    """Sources of what is handed to a model, other than that itself."""
    made = _made(ops)
    found: dict[Any, None] = {}
    for key in entered:
        op = made.get(key)
        if op is not None and not op.selects:
            origins = _origins(key, made, set(), known)
            found |= dict.fromkeys(one for one in origins if one != key and not known.is_named(one))
    return list(found)


def _origins(key: Any, made: dict[Any, Op], derived: set[Any], known: Known) -> Iterator[Any]:
    """Where a tensor comes from: what has a name, was there before, or was selected from something."""
    waiting, seen = [key], set()
    while waiting:
        one = waiting.pop()
        if one in seen or one in derived:
            continue
        seen.add(one)
        op = None if known.is_named(one) else made.get(one)
        if op is None or (op.selects and not known.is_owned(op.reads[0])):
            yield one
        else:
            waiting += reversed(op.reads)


class OutsideMode(OwnMode):
    """Sees what a hooked step computes outside of the watched models, where hooks see nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.is_on = False
        self.calls: list[tuple[Any, Any, Any, Any]] = []
        self.is_full = False
        self._inside = 0  # calls that run; while one does, torch has taken the mode off and will put it back

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._inside += 1
        try:
            out = func(*args, **kwargs) if kwargs else func(*args)
        finally:
            self._inside -= 1
        if self.is_on and isinstance(out, (Tensor, tuple, list)) and not self.is_full and func != _READ_GRAD:
            self.calls.append((func, args, kwargs, out))
            self.is_full = len(self.calls) >= MOST_OPS
        return out

    def start(self) -> None:
        if not self.is_on and not self.is_full:
            self.is_on = True
            open_composites()
            if not self._inside:
                put_on(self)

    def stop(self) -> None:
        """From inside of `loss.backward()`, which torch calls through us, the mode cannot be taken off: then it hands
        everything on until it is stopped once more."""
        if self.is_on:
            self.is_on = False
            close_composites()
        take_off(self)

    def reaches(self, ids: set[int], tensors: list[Tensor]) -> bool:
        """Whether one of these tensors was computed, since the mode is on, from one of those with these ids."""
        derived = set(ids)
        for _, args, kwargs, out in self.calls:
            found: list[Tensor] = []
            argument_tensors([args, kwargs], found)
            if any(id(t) in derived for t in found):
                made: list[Tensor] = []
                argument_tensors(out, made)
                derived.update(map(id, made))
        return any(id(t) in derived for t in tensors)

    def take(self) -> tuple[list[Op], dict[int, Tensor]]:
        """The operations so far, by ids of tensors, and the tensors that these ids belong to."""
        tensors: dict[int, Tensor] = {}
        ops = []
        for func, args, kwargs, out in self.calls:
            read: list[Tensor] = []
            made: list[Tensor] = []
            argument_tensors(args, read)
            if kwargs:
                argument_tensors(kwargs, read)
            argument_tensors(out, made)
            if made:
                tensors |= {id(t): t for t in (*read, *made)}
                name = str(getattr(func, "__name__", ""))
                ops.append(Op(tuple(map(id, read)), tuple(map(id, made)), selects(name)))
        self.calls.clear()
        return ops, tensors
