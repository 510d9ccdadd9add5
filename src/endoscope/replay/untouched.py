"""Does tracing change anything? Run the target plainly and traced from the same state, and compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from endoscope.capture.change.randomness import random_states, same_random_states
from endoscope.capture.change.state import State
from endoscope.capture.record.leaves import named_leaves
from endoscope.capture.record.records import grad_fn_of
from endoscope.capture.views.result import Trace
from endoscope.replay.compare import same
from endoscope.replay.report import Report


class Outcome:
    """What a run left behind."""

    def __init__(self, state: State, result: Any) -> None:
        self.outputs = [(p, t) for p, t in named_leaves(result) if isinstance(t, torch.Tensor)]
        self.values = [t.detach().clone() for _, t in self.outputs]
        self.buffers = [
            (name, b.detach().clone()) for m in state.modules for name, b in m._buffers.items() if b is not None
        ]
        self.random = random_states()
        self.error = self._backward(state)

    def _backward(self, state: State) -> str | None:
        """Gradients of the sum of all results that have one."""
        heads = [t for _, t in self.outputs if t.requires_grad and (t.is_floating_point() or t.is_complex())]
        heads = [t for t in heads if grad_fn_of(t) is not None and not t.is_nested]
        self.gradients: list[torch.Tensor | None] = []
        if not heads:
            return None
        state.drop_gradients()
        try:
            torch.autograd.backward(heads, [torch.ones_like(t) for t in heads])
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        self.gradients = [t.grad for t in state.leaves]
        state.drop_gradients()
        return None


def check_untouched(report: Report, state: State, run: Callable[[], Any], run_traced: Callable[[], Trace]) -> Trace:
    """Compare a plain run with a traced one, of which it returns the trace."""
    plain = Outcome(state, run())
    state.restore()
    trace = run_traced()
    gradients = [trace.recorder.objects[slot] for slot in trace.recorder.read_gradients]
    trace.store.freeze(sharing=[*state.tensors, *gradients])  # they are put back, or added to, under the trace's feet
    traced = Outcome(state, trace.result)
    try:
        problems = _differences(plain, traced, state)
        if problems:
            problems = _second_opinion(state, plain, traced, run)
    except Exception as error:  # subclasses that cannot be compared
        report.unchecked.append(f"the untraced run: comparing results raised {type(error).__name__}: {error}")
        problems = []
    for problem in problems:
        report.fail("untouched", problem)
    if plain.error:
        report.unchecked.append(f"gradients: backward of the plain run raised {plain.error}")
    return trace


def _second_opinion(state: State, plain: Outcome, traced: Outcome, run: Callable[[], Any]) -> list[str]:
    """A target may set itself up on its first run (caches, hooks): then the second plain run is the one to compare."""
    state.restore()
    again = Outcome(state, run())
    problems = _differences(again, traced, state)
    if problems and _differences(plain, again, state):
        return ["two plain runs of the target already differ from each other, so nothing can be compared"]
    return problems


def _differences(plain: Outcome, traced: Outcome, state: State) -> list[str]:
    problems = []
    if [p for p, _ in plain.outputs] != [p for p, _ in traced.outputs]:
        return ["the traced run returned other tensors than the plain run"]
    for (path, _), a, b in zip(plain.outputs, plain.values, traced.values, strict=True):
        if not same(a, b):
            problems.append(f"output {path or '(result)'} differs between the plain and the traced run")
    if [t.requires_grad for _, t in plain.outputs] != [t.requires_grad for _, t in traced.outputs]:
        problems.append("an output's requires_grad differs between the plain and the traced run")
    for (name, a), (_, b) in zip(plain.buffers, traced.buffers, strict=True):
        if not same(a, b):
            problems.append(f"buffer {name} differs after the plain and the traced run")
    if not same_random_states(plain.random, traced.random):
        problems.append("the random state differs after the plain and the traced run")
    if bool(plain.error) != bool(traced.error):
        problems.append(f"backward fails in only one of the runs: {plain.error or traced.error}")
    pairs = zip(plain.gradients, traced.gradients, strict=False)
    if any((a is None) != (b is None) or (a is not None and b is not None and not same(a, b)) for a, b in pairs):
        problems.append("a gradient differs between the plain and the traced run")
    return problems
