"""The slow twin of a recording: what plain hooks of PyTorch see of the same training."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

import endoscope
from tests.contract.recording.helpers import close, complaints, recorded, same, strict_run


@dataclass
class Seen:
    """One step: results of modules by (address, pass), and what the optimizer found and did, by parameter."""

    values: dict[tuple[str, int], Tensor] = field(default_factory=dict)
    gradients: dict[tuple[str, int], Tensor] = field(default_factory=dict)
    used: dict[str, Tensor] = field(default_factory=dict)
    before: dict[str, Tensor] = field(default_factory=dict)
    updates: dict[str, Tensor] = field(default_factory=dict)
    passes: int = 0


class Oracle:
    """Stands where a run stands in a loop. A step ends with the first forward pass after an update, or with `cut`."""

    def __init__(self, hooks: bool = True) -> None:
        self.steps: list[Seen] = []
        self._has_ended = True
        self.watches = hooks
        self._names: dict[int, str] = {}

    # ---- what a loop says to a run ----

    def watch(self, model: nn.Module, optimizer: Any = None, *, name: str = "", **_: Any) -> nn.Module:
        if not self.watches:
            return model
        prefix = f"{name}." if name else ""
        model.register_forward_pre_hook(lambda *_: self._begin())
        for address, module in model.named_modules():
            if address:
                module.register_forward_hook(lambda _, __, out, node=prefix + address: self._keep(node, out))
        self._names.update({id(p): prefix + address for address, p in model.named_parameters()})
        for one in optimizer if isinstance(optimizer, list) else [optimizer]:
            if one is not None:
                one.register_step_pre_hook(self._before_update)
                one.register_step_post_hook(self._after_update)
        return model

    @contextlib.contextmanager
    def step(self, *_: Any, **__: Any) -> Iterator[Oracle]:
        yield self
        self.cut()

    @contextlib.contextmanager
    def gradients(self, *_: Any) -> Iterator[None]:
        yield

    def metric(self, *_: Any) -> None: ...

    def tag(self, _: str, tensor: Tensor, **__: Any) -> Tensor:
        return tensor

    def cut(self) -> None:
        self._has_ended = True

    # ---- what hooks tell ----

    def _begin(self) -> None:
        self._open()
        self.steps[-1].passes += 1

    def _open(self) -> None:
        if self._has_ended:
            self.steps.append(Seen())
            self._has_ended = False

    def _keep(self, node: str, out: Any) -> None:
        if not isinstance(out, Tensor):
            return
        step = self.steps[-1]
        place = node, 1 + sum(known == node for known, _ in step.values)
        step.values[place] = out.detach().clone()
        if out.requires_grad:
            out.register_hook(lambda gradient: self._add(step, place, gradient))

    def _add(self, step: Seen, place: tuple[str, int], gradient: Tensor) -> None:
        known = step.gradients.get(place)
        step.gradients[place] = gradient.clone() if known is None else known + gradient

    def _before_update(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        has_closure = any(map(callable, [*args[1:], *kwargs.values()]))
        if has_closure:  # nothing has been computed yet
            self._open()
        for parameter in parameters_of(optimizer):
            name = self._names[id(parameter)]
            self.steps[-1].before[name] = parameter.detach().clone()
            if parameter.grad is not None and not has_closure:
                self.steps[-1].used[name] = parameter.grad.clone()

    def _after_update(self, optimizer: Any, *_: Any) -> None:
        for parameter in parameters_of(optimizer):
            name = self._names[id(parameter)]
            self.steps[-1].updates[name] = parameter.detach() - self.steps[-1].before[name]
        self._has_ended = True


def parameters_of(optimizer: Any) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def compared(
    body: Callable[[Any], tuple[Any, Any]], root: Any, *, may_complain: bool = False, **settings: Any
) -> tuple[list[Seen], Any]:
    """Train with nothing, with plain hooks and with a run.

    `body(run)` returns losses and final tensors, which must agree. Returns what the hooks saw and the recording.
    """
    settings.setdefault("keep", 64)
    torch.manual_seed(3)
    bare = body(Oracle(hooks=False))
    state = torch.get_rng_state()
    torch.manual_seed(3)
    oracle = Oracle()
    hooked = body(oracle)
    torch.manual_seed(3)
    if may_complain:
        with complaints(), endoscope.Run(root, trial="trial", **{"when": 1, **settings}) as run:
            watched = body(run)
    else:
        with strict_run(root, **settings) as run:
            watched = body(run)
    assert torch.equal(state, torch.get_rng_state()), "the random stream was changed"
    for found in (hooked, watched):
        who = "plain hooks" if found is hooked else "Endoscope"
        assert found[0] == bare[0], f"{who} changed the training"
        assert all(map(torch.equal, found[1], bare[1])), f"{who} changed the training"
    return oracle.steps, recorded(run)


def ends(*models: nn.Module) -> list[Tensor]:
    return [p.detach().clone() for model in models for p in [*model.parameters(), *model.buffers()]]


def agree(recording: Any, number: int, seen: Seen, *, exact: bool = True, gradients: bool = True) -> None:
    """All that the hooks saw of a step stands in the recording, with the same bits."""
    equal = same if exact else close
    for (node, pass_), value in seen.values.items():
        assert same(recording.tensor(node, number, pass_=pass_), value), ("value", number, node, pass_)
    if gradients:
        for (node, pass_), gradient in seen.gradients.items():
            found = recording.tensor(node, number, of="gradient", pass_=pass_)
            assert equal(found, gradient), ("gradient", number, node, pass_)
    for name, gradient in seen.used.items():
        assert equal(recording.tensor(name, number, of="gradient"), gradient), ("gradient", number, name)
    for name, update in seen.updates.items():
        assert same(recording.tensor(name, number, of="parameter"), seen.before[name]), ("parameter", number, name)
        assert same(recording.tensor(name, number, of="update"), update), ("update", number, name)


def true_or_gap(recording: Any, number: int, seen: Seen, *, exact: bool = True) -> int:
    """Never a false value: what is missing is named in a gap of the step. Returns how much of it is there."""
    missing = {(gap.node, gap.step) for gap in recording.gaps}
    wanted: list[tuple[str, int, str, Tensor]] = [(n, p, "value", t) for (n, p), t in seen.values.items()]
    wanted += [(n, p, "gradient", t) for (n, p), t in seen.gradients.items()]
    wanted += [(n, 1, "gradient", t) for n, t in seen.used.items()]
    wanted += [(n, 1, "update", t) for n, t in seen.updates.items()]
    there = 0
    for node, pass_, of, tensor in wanted:
        try:
            found = recording.tensor(node, number, of=of, pass_=pass_)
        except endoscope.errors.LookupFailed:
            assert (node, number) in missing or ("", number) in missing, ("neither value nor gap", number, node, of)
            continue
        equal = same if exact or of == "value" else close
        assert equal(found, tensor), ("false", number, node, pass_, of)
        there += 1
    return there
