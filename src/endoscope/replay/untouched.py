"""Does tracing change anything? Run the target plainly and traced from the same state, and compare."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import torch

from endoscope.capture.leaves import named_leaves
from endoscope.capture.records import version_of
from endoscope.capture.result import Trace
from endoscope.replay.compare import same
from endoscope.replay.report import Report


class State:
    """What a run of the target may change, to be put back: random states, buffers, attributes, inputs, gradients."""

    def __init__(self, target: Any, args: Any, kwargs: Any) -> None:
        self._modules = _modules_of(target)
        self._attributes = [
            (m, _plain_attributes(m), dict(m._buffers))
            for m in self._modules
            if not isinstance(m, torch.jit.ScriptModule)
        ]
        tensors = [t for _, t in named_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        for module in self._modules:
            tensors += [b for b in module._buffers.values() if b is not None]
        self._tensors = [(t, version_of(t), t.detach().clone()) for t in tensors]
        self.parameters = list(
            {id(p): p for m in self._modules for p in m._parameters.values() if p is not None}.values()
        )
        self._parameter_versions = [version_of(p) for p in self.parameters]
        self.inputs = [t for t in tensors if t.requires_grad and t.is_leaf]
        self._gradients = [(t, t.grad) for t in [*self.parameters, *self.inputs]]
        self._random = random_states()

    def restore(self) -> None:
        for module, attributes, buffers in self._attributes:
            module.__dict__.update(attributes)
            module._buffers.clear()
            module._buffers.update(buffers)
        for tensor, version, value in self._tensors:
            # Not by version alone: batch norm updates its statistics without counting.
            if version < 0 or version_of(tensor) != version or not same(tensor, value):
                with torch.no_grad(), torch.inference_mode(tensor.is_inference()):
                    tensor.detach().copy_(value)
        for tensor, gradient in self._gradients:
            tensor.grad = gradient
        set_random_states(self._random)

    def drop_gradients(self) -> None:
        for tensor, _ in self._gradients:
            tensor.grad = None

    @property
    def parameters_changed(self) -> bool:
        return [version_of(p) for p in self.parameters] != self._parameter_versions


class Outcome:
    """What a run left behind."""

    def __init__(self, state: State, result: Any, report: Report | None = None) -> None:
        self.outputs = [(p, t) for p, t in named_leaves(result) if isinstance(t, torch.Tensor)]
        self.values = [t.detach().clone() for _, t in self.outputs]
        self.buffers = [
            (name, b.detach().clone()) for m in state._modules for name, b in m._buffers.items() if b is not None
        ]
        self.random = random_states()
        self.error = self._backward(state)

    def _backward(self, state: State) -> str | None:
        """Gradients of the sum of all results that have one."""
        heads = [t for _, t in self.outputs if t.requires_grad and (t.is_floating_point() or t.is_complex())]
        heads = [t for t in heads if t.grad_fn is not None and not t.is_nested]
        self.gradients: list[torch.Tensor | None] = []
        if not heads:
            return None
        state.drop_gradients()
        try:
            torch.autograd.backward(heads, [torch.ones_like(t) for t in heads])
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        self.gradients = [t.grad for t in [*state.parameters, *state.inputs]]
        state.drop_gradients()
        return None


def check_untouched(report: Report, state: State, run: Callable[[], Any], run_traced: Callable[[], Trace]) -> Trace:
    """Compare a plain run with a traced one, of which it returns the trace."""
    plain = Outcome(state, run())
    state.restore()
    trace = run_traced()
    trace.values.freeze(sharing=[t for t, _, _ in state._tensors])  # they will be put back under the trace's feet
    traced = Outcome(state, trace.result)
    problems = _differences(plain, traced, state)
    if problems:
        problems = _second_opinion(state, plain, traced, run)
    for problem in problems:
        report.fail("untouched", problem)
    if plain.error:
        report.unchecked.append(f"gradients: backward of the plain run raised {plain.error}")
    if state.parameters_changed:
        report.unchecked.append("the target changes its own parameters; they were not put back")
    return trace


def _second_opinion(state: State, plain: Outcome, traced: Outcome, run: Callable[[], Any]) -> list[str]:
    """A target may set itself up on its first run (caches, hooks): then the second plain run is the one to compare."""
    state.restore()
    again = Outcome(state, run())
    problems = _differences(again, traced, state)
    if problems and _differences(plain, again, state):
        return ["two plain runs of the target already differ from each other, so nothing can be compared"]
    return problems


def _plain_attributes(module: torch.nn.Module) -> dict[str, Any]:
    """Counters and tensors that a module keeps as attributes. Flags and containers stay: others may rely on them."""
    return {
        name: value
        for name, value in module.__dict__.items()
        if isinstance(value, (float, torch.Tensor)) or type(value) is int
    }


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
    if not _same_random(plain.random, traced.random):
        problems.append("the random state differs after the plain and the traced run")
    if bool(plain.error) != bool(traced.error):
        problems.append(f"backward fails in only one of the runs: {plain.error or traced.error}")
    pairs = zip(plain.gradients, traced.gradients, strict=False)
    if any((a is None) != (b is None) or (a is not None and b is not None and not same(a, b)) for a, b in pairs):
        problems.append("a gradient differs between the plain and the traced run")
    return problems


def _modules_of(target: Any) -> list[torch.nn.Module]:
    inner = getattr(target, "_orig_mod", target)
    if isinstance(inner, torch.nn.Module):
        return list(inner.modules())
    owner = getattr(inner, "__self__", None)
    found = [owner] if isinstance(owner, torch.nn.Module) else []
    for cell in getattr(inner, "__closure__", None) or ():
        try:
            if isinstance(cell.cell_contents, torch.nn.Module):
                found.append(cell.cell_contents)
        except ValueError:
            continue
    code = getattr(inner, "__code__", None)
    for name in code.co_names if code else ():
        value = getattr(inner, "__globals__", {}).get(name)
        if isinstance(value, torch.nn.Module):
            found.append(value)
    return [part for module in found for part in module.modules()]


def random_states() -> dict[str, Any]:
    states: dict[str, Any] = {"torch": torch.get_rng_state(), "python": random.getstate()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states["cuda"] = torch.cuda.get_rng_state_all()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        states["numpy"] = numpy.random.get_state()
    return states


def set_random_states(states: dict[str, Any]) -> None:
    torch.set_rng_state(states["torch"])
    random.setstate(states["python"])
    if "cuda" in states:
        torch.cuda.set_rng_state_all(states["cuda"])
    if "numpy" in states:
        sys.modules["numpy"].random.set_state(states["numpy"])


def _same_random(a: dict[str, Any], b: dict[str, Any]) -> bool:
    if not torch.equal(a["torch"], b["torch"]) or a["python"] != b["python"]:
        return False
    return "numpy" not in a or all(
        (x == y).all() if hasattr(x, "all") else x == y for x, y in zip(a["numpy"], b["numpy"], strict=True)
    )
