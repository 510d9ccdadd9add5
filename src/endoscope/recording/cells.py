"""Gradients of tensors whose slots are not known yet.

gather(tensors)       each gets a cell: a list that autograd itself appends to, for its hook is `list.append`
a backward pass       fills cells, and runs no line of ours
empty(loss)           what lies in the cells came in a pass of that loss
give_slot(slot, …)    the tensor is understood now, and its gradients get their place

What goes into a ReLU and nowhere else needs no cell: its gradient is that of what comes out, where that is positive. It
is computed, by the function that autograd uses, only if somebody asks. So it is not held meanwhile: memory that is held
cannot be used again by the backward pass, and other memory has to be fetched for it. Where steps are hardly ever kept,
more gradients follow from others: see `following.py`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from torch import Tensor

from endoscope.recording.following import Followed, through, through_relu
from endoscope.recording.grad_hooks import GradHooks, numbers

if TYPE_CHECKING:
    from endoscope.recording.known_calls import Known

#: A loss and what came of it in one pass.
Came = tuple[str, list[Tensor]]
#: A slot and what came for it.
Placed = tuple[int, list[Tensor]]
#: What went into a ReLU, what came out of it, and the version of that.
Rectified = tuple[Tensor, Tensor, int]
#: The hooks of a tensor, the number of the one that tells, what that one gathers, and the version of the tensor.
Told = tuple[dict[Any, Any], int, list[Tensor], int]
#: A module, what came out of it, and the version of that.
Source = tuple["Known | None", Tensor, int]


class Cells:
    """Those of one step, by the ids of their tensors, which are held."""

    def __init__(self) -> None:
        self._cells: dict[int, tuple[Tensor, list[Tensor]]] = {}
        self._slots: dict[int, list[int]] = {}
        self._came: dict[int, list[Came]] = {}  # in earlier passes
        self._rectified: list[Rectified] = []
        self._followed: list[Followed] = []
        self._told: dict[int, Told] = {}
        self.parameters: Any = None  # tell what modules were called with
        self.failed: Callable[[Exception], None] = _pass_on

    def clear(self) -> None:
        self._cells.clear()
        self._rectified.clear()
        self._followed.clear()
        self._told.clear()
        self._slots.clear()
        self._came.clear()

    def gather(
        self,
        tensors: list[Tensor],
        rectified: list[Rectified],
        followed: list[Followed],
        places: list[tuple[dict[Any, Any], int]],
    ) -> bool:
        """Take the gradients of ordinary tensors; False if that cannot be. `places` gets the hooks, to be taken off.

        What came out of a ReLU is among the tensors, what went into it is not; of a chain that is followed, the result.
        """
        cells, number = self._cells, next(numbers)
        self._rectified += rectified
        self._followed += followed
        for tensor in tensors:
            grad_fn = tensor.grad_fn
            if grad_fn is None:
                if tensor.requires_grad:
                    return False
            elif id(tensor) not in cells:
                told, hooks = self._told.get(id(tensor)), tensor._backward_hooks
                if told is not None and told[0] is hooks and told[3] == tensor._version:
                    cells[id(tensor)] = (tensor, told[2])
                    _put_first(told[0], told[1])
                    continue
                cell: list[Tensor] = []
                cells[id(tensor)] = (tensor, cell)
                if hooks is None:
                    hooks = tensor._backward_hooks = OrderedDict()
                    grad_fn._register_hook_dict(tensor)
                if hooks:  # what others make of the gradient is theirs, so ours, with negative numbers, are the first
                    others = list(hooks.items())
                    hooks.clear()
                    hooks[number] = cell.append
                    hooks.update(others)
                else:
                    hooks[number] = cell.append
                places.append((hooks, number))
        return True

    def tell(self, tensor: Tensor, hook: Callable[[list[Tensor], Tensor], None], hooks: GradHooks) -> None:
        """Put a hook on a tensor that tells of its gradient, and gathers it if that is wanted when a pass begins."""
        told = self._told.get(id(tensor))
        if told is None or told[0] is not tensor._backward_hooks:  # it is not held: its id may be that of another one
            cell: list[Tensor] = []
            hooks.on_gradient(tensor, partial(hook, cell))
            self._told[id(tensor)] = (*hooks.places[-1], cell, tensor._version)

    def settle(self, places: list[tuple[dict[Any, Any], int]]) -> None:
        """Another pass begins, and may leave the graph anywhere: what follows from earlier ones is computed, and
        nothing follows from this one."""
        inner = [tensor for _, results, _ in self._followed for tensor in results[:-1]]
        for tensor in inner:
            self._came_for(tensor)
        self._followed.clear()
        self.gather(inner, [], [], places)

    def unfollow(self) -> None:
        """A pass has failed, nobody knows where."""
        self._followed.clear()

    def gathered(self, tensor: Tensor) -> list[Tensor]:
        """What lies in the cell of a tensor."""
        return self._cells.get(id(tensor), (tensor, []))[1]

    def has(self, tensor: Tensor) -> bool:
        return id(tensor) in self._cells or self._follows(tensor) is not None

    def give_slot(self, slot: int, tensor: Tensor, past: bool) -> list[Came]:
        """Returns what has come so far, if that is meant, too."""
        slots = self._slots.setdefault(id(tensor), [])
        if slot in slots:
            return []
        slots.append(slot)
        return self._came_for(tensor) if past else []

    def _came_for(self, tensor: Tensor) -> list[Came]:
        """Of gradients that follow from others, each is computed once."""
        source = None if id(tensor) in self._came else self._follows(tensor)
        if source is not None:
            self._came[id(tensor)] = [
                (loss, self._through(given, *source)) for loss, given in self._came_for(source[1])
            ]
        return self._came.get(id(tensor), [])

    def _follows(self, tensor: Tensor) -> Source | None:
        """Whose gradient that of a tensor follows from, and through which module: None for a ReLU of any kind."""
        if id(tensor) in self._cells:
            return None
        for given, result, version in self._rectified:
            if given is tensor:
                return None, result, version
        for links, results, versions in self._followed:
            for number, result in enumerate(results[:-1], 1):
                if result is tensor and tensor.grad_fn is not None:
                    return links[number], results[number], versions[number]
        return None

    def _through(self, given: list[Tensor], link: Known | None, result: Tensor, version: int) -> list[Tensor]:
        """Nothing, if that cannot be told any more: only these gradients are lost then."""
        try:
            if link is None:
                return through_relu(given, result, version)
            return through(link, given, result, version, self.parameters)
        except RuntimeError as error:
            self.failed(error)
            return []

    def empty(self, loss: str | None) -> tuple[bool, list[Placed]]:
        """Whether anything lay in them, and what of it has slots. It is thrown away if it belongs to no loss."""
        came, placed = False, list[Placed]()
        for identity, (tensor, cell) in self._cells.items():
            if cell:
                gradients = cell.copy()
                cell.clear()
                if loss is not None:
                    came = True
                    self._came.setdefault(identity, []).append((loss, gradients))
                    placed += [(slot, gradients) for slot in self._slots.get(identity, ())]
                    if self._slots:
                        placed += self._of_those_that_follow(tensor, loss, gradients)
        return came, placed

    def _of_those_that_follow(self, result: Tensor, loss: str, gradients: list[Tensor]) -> list[Placed]:
        """What has come for all tensors whose gradients follow from this one."""
        placed: list[Placed] = []
        for tensor, link, version in self._that_follow_from(result).values():
            given = self._through(gradients, link, result, version)
            if id(tensor) in self._came:  # or it is computed when somebody asks
                self._came[id(tensor)].append((loss, given))
            placed += [(slot, given) for slot in self._slots.get(id(tensor), ())]
            placed += self._of_those_that_follow(tensor, loss, given)
        return placed

    def _that_follow_from(self, result: Tensor) -> dict[int, tuple[Tensor, Known | None, int]]:
        """By their ids: what is gathered for several passes is told as often."""
        found: dict[int, tuple[Tensor, Known | None, int]] = {}
        for given, out, version in self._rectified:
            if out is result and id(given) not in self._cells:
                found[id(given)] = given, None, version
        for links, results, versions in self._followed:
            for number, given in enumerate(results[:-1], 1):
                if results[number] is result and given.grad_fn is not None and id(given) not in self._cells:
                    found[id(given)] = given, links[number], versions[number]
        return found


def _put_first(hooks: dict[Any, Any], number: int) -> None:
    """What others make of the gradient is theirs."""
    if len(hooks) > 1:
        others = list(hooks.items())
        hooks.clear()
        hooks[number] = dict(others)[number]
        hooks.update(others)


def _pass_on(error: Exception) -> None:
    raise error
