"""A trace from a file, taken once more with the model: the same operations on the same inputs, now with functions.

inputs, states of random generators ─► from the file
the run ─► must be the run of the file: the same operations, the same values
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import torch

from endoscope.capture.change.randomness import random_states, set_random_states
from endoscope.capture.trace import Arguments, check_target
from endoscope.capture.trace import trace as take
from endoscope.capture.views.result import Trace
from endoscope.errors import CannotReplay, EndoscopeError
from endoscope.schema.ops import Kind


def run_again(trace: Trace, model: Any, origin: Callable[[], Any] | None) -> Trace:
    """The same trace in memory; raises if it is not the same."""
    check_target(model)
    if origin is None:
        raise CannotReplay(
            f"The trace of {trace.name} cannot be taken once more: its file has no arguments to run with. They are "
            "saved if the trace was taken by endoscope.trace(model, inputs) with save='all' and without edits."
        )
    args, kwargs = origin()
    before = random_states()
    try:
        _set_states(trace)
        found = take(model, Arguments(tuple(args), kwargs))
    except EndoscopeError:
        raise
    except Exception as error:
        error.add_note(f"raised when {trace.name} was run again on the inputs in the file of its trace")
        raise
    finally:
        set_random_states(before)
    _check_same(trace, found)
    return found


def _set_states(trace: Trace) -> None:
    """Those that are there: another machine may have other devices."""
    states = {one.generator: one.state for one in trace.random}
    known = random_states().keys() - {"python", "numpy"}
    # They are arrays if torch was not imported when the file was read.
    set_random_states({name: torch.as_tensor(state) for name, state in states.items() if name in known})
    if "python" in states:
        random.setstate(states["python"])
    numpy = sys.modules.get("numpy")
    if "numpy" in states and numpy is not None:
        numpy.random.set_state(states["numpy"])


def _check_same(trace: Trace, found: Trace) -> None:
    """With another model, or another state of it, nothing that is computed now says anything of the trace."""
    labels = [op.label for op in trace.ops]
    others = [op.label for op in found.ops]
    if labels != others:
        first = next((a or b for a, b in zip(labels + [""], others + [""], strict=False) if a != b), "")
        raise CannotReplay(
            f"This is not the model of the trace in the file: run on the same inputs, it computes {len(others)} "
            f"operations instead of {len(labels)}, and {first} is the first that differs. "
            "Load the trace with the model that it was taken of."
        )
    for op in sorted([*trace.parameters, *trace.ops], key=lambda op: op.node):
        _check_values(op, found)  # not buffers: batch norm in training moves its own in every run


def _check_values(op: Any, found: Trace) -> None:
    twin = found.op_at(op.node)
    for mine, theirs in zip(_values(op), _values(twin), strict=False):
        if mine.shape != theirs.shape or mine.dtype != theirs.dtype or not _alike(mine, theirs.cpu()):
            what = "is not the one" if op.kind is Kind.PARAMETER else "has not the value"
            raise CannotReplay(
                f"The model is not in the state in which it was traced: {op.label} {what} that the file holds. "
                "Give it the parameters (model.load_state_dict) and the mode (model.eval(), model.train()) that it had."
            )


def _values(op: Any) -> tuple[Any, ...]:
    try:
        return tuple(op.outputs)
    except EndoscopeError:
        return ()


def _alike(mine: torch.Tensor, theirs: torch.Tensor) -> bool:
    """Up to what another machine computes differently. Of rare kinds, what reads them is compared."""
    if mine.is_nested or mine.is_quantized or mine.is_meta or mine.layout is not torch.strided:
        return mine.layout == theirs.layout
    if mine.dtype.itemsize == 1:
        return torch.equal(mine.view(torch.uint8), theirs.view(torch.uint8))
    if not (mine.is_floating_point() or mine.is_complex()):
        return torch.equal(mine, theirs)
    close = 1e-2 if mine.dtype.itemsize == 2 else 1e-3
    return torch.allclose(mine, theirs, rtol=close, atol=close, equal_nan=True)
