"""`trace()` and `tracing()`: record a module or a function.

tracing.__enter__ ─► patches.activate ─► Recorder records ─► tracing.__exit__ ─► patches.deactivate ─► Trace
"""

from __future__ import annotations

import contextlib
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from endoscope.capture.change.choosing import changes_in
from endoscope.capture.change.editor import following
from endoscope.capture.change.plan import Plan
from endoscope.capture.change.rebuild import rebuilt
from endoscope.capture.change.state import State, names_seen_by
from endoscope.capture.patch.compiled import without_compiled_calls
from endoscope.capture.patch.patches import activate, deactivate, untraced
from endoscope.capture.record.fingerprint import take_fingerprints
from endoscope.capture.record.gradients import Gradients
from endoscope.capture.record.hot_path import attach
from endoscope.capture.record.keeping import Keeper, Save, make_keeper
from endoscope.capture.record.leaves import named_arguments
from endoscope.capture.record.recorder import Recorder
from endoscope.capture.record.source import line_of_error
from endoscope.capture.record.unseen import look_for_unseen
from endoscope.capture.views.result import Trace
from endoscope.errors import BadArgument, EndoscopeError
from endoscope.schema.ops import Kind

Target = torch.nn.Module | Callable[..., Any]


def trace(
    target: Target,
    inputs: Any,
    *,
    save: Save = "all",
    gradients: bool = False,
    seed: int | None = None,
    edit: Mapping[Any, Any] | Plan | None = None,
) -> Trace:
    """Run `target` once on `inputs` and return every operation it performed.

    `inputs` is a tensor, a tuple (positional arguments) or a dict (keyword arguments); anything else, a list too,
    is one argument. `save` says which values are kept, `gradients` keeps gradients once `backward()` is called on
    the result, `seed` makes a stochastic target repeatable (the random state is put back afterwards), `edit` changes
    values on the way (see `endoscope.edits`; the target then runs twice, and what the first run did is undone).
    """
    check_target(target)
    args, kwargs = arguments(inputs)
    plan = edit if isinstance(edit, Plan) else None
    changes = plan.changes if plan is not None else changes_in(edit) if edit is not None else []
    if changes and plan is None:
        plan = Plan.of(dry_run(target, args, kwargs, seed), changes)
    with tracing(target, save=save, gradients=gradients, seed=seed) as found:
        if plan is None:
            _call(found, target, args, kwargs)
        else:
            with following(found.recorder, plan) as (editor, run):
                _call(found, target, args, kwargs, editor.result)
                run.check_all_applied()
    found.origin = lambda: (target, args, kwargs, changes)
    return found


def _call(found: Trace, target: Target, args: Any, kwargs: Any, final: Callable[[Any], Any] = lambda out: out) -> None:
    recorder = found.recorder
    is_module = isinstance(recorder.target, torch.nn.Module)
    if not is_module:
        recorder.inside_target, recorder.stranger_kind = True, Kind.CONSTANT
        recorder.add_inputs(named_arguments(target, args, kwargs))
    try:
        result = target(*args, **kwargs)
    except Exception as error:
        _say_whose_error(error, found.name, args, kwargs)
        raise
    found.result = final(result)
    if not is_module or not any(s.kind == Kind.OUTPUT for s in recorder.sources.values()):
        recorder.add_outputs(found.result)


def _say_whose_error(error: Exception, name: str, args: Any, kwargs: Any) -> None:
    """The last frames of the traceback are ours, so it would look like an error of Endoscope's."""
    if isinstance(error, EndoscopeError):
        return
    shapes = [f"{n}: {tuple(one.shape)}" for n, one in [*enumerate(args), *kwargs.items()] if hasattr(one, "shape")]
    line = line_of_error(error)
    with contextlib.suppress(Exception):  # an exception class may forbid it
        error.add_note(
            f"{name} raised this itself{f', at {line}' if line else ''}; without endoscope.trace it does the same. "
            f"Shapes of its arguments: {', '.join(shapes) or 'it got no tensor'}."
        )


def dry_run(target: Target, args: Any, kwargs: Any, seed: int | None = None) -> Trace:
    """The structure of a run that leaves no trace in the target, its arguments, random states, or other traces."""
    with untraced():
        state = State(target, args, kwargs, copy_parameters=False)
        # Caches that are handed in may be filled by the run: it gets copies of everything but the tensors.
        copies, named = rebuilt((args, kwargs), lambda tensor: tensor, always=True)
        try:
            with tracing(target, save="none", seed=seed) as found:
                found.recorder.before_writes = state.about_to_write
                _call(found, target, copies, named)
            found.recorder.before_writes = found.result = None
            return found
        finally:
            state.restore()


@contextlib.contextmanager
def tracing(
    target: Target | None = None, *, save: Save = "all", gradients: bool = False, seed: int | None = None
) -> Iterator[Trace]:
    """Trace whatever happens in the block: several calls, keyword arguments, `backward()`.

    The arguments and results of `target`'s own calls become the inputs and outputs of the trace. If `target` is not
    a module, the tensors that come from outside the block are its inputs.
    """
    _check_seed(seed)
    if not isinstance(gradients, bool):
        raise BadArgument(f"gradients={gradients!r}: use True or False.")
    keeper = make_keeper(save)
    recorder = Recorder(full=keeper is None, keeper=keeper, gradients=Gradients() if gradients else None)
    recorder.save_text = repr(save)
    if keeper is not None:
        keeper.recorder = recorder
    attach(recorder)
    found = Trace(recorder, know_target(recorder, target))
    found.seed = seed
    found.timing.started = time.time()
    clock = time.perf_counter()
    modules = [module for _, module in recorder.calls.addresses.values()]
    with _seeded(seed), without_compiled_calls(modules):
        recorder.random_state = torch.get_rng_state()
        activate(recorder)
        try:
            with recorder:
                yield found
            found.finished = True
        except BaseException as error:
            with contextlib.suppress(Exception):  # an exception class may forbid new attributes
                error.endoscope_trace = found  # type: ignore[attr-defined]
            raise
        finally:
            deactivate(recorder)
            found.timing.run = time.perf_counter() - clock
            found.timing.ended = time.time()
            _finish(found, keeper)


def _finish(found: Trace, keeper: Keeper | None) -> None:
    """Everything that must be done while the tensors are as the traced code left them."""
    recorder = found.recorder
    recorder.complete_sources()
    found.timing.ops = sum([node.ended - node.started for node in recorder.nodes]) * 1e-9
    take_fingerprints(recorder)
    found.seal()
    look_for_unseen(found)
    recorder.close()
    if keeper is not None:
        keeper.settle(found)


def arguments(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """How `inputs` are handed to the target."""
    if isinstance(inputs, tuple) and not hasattr(inputs, "_fields"):
        return inputs, {}
    if isinstance(inputs, dict) or (hasattr(inputs, "keys") and hasattr(inputs, "__getitem__")):
        bad = [key for key in inputs if not isinstance(key, str)]
        if bad:
            raise BadArgument(
                f"inputs is a dict with the key {bad[0]!r}; a dict means keyword arguments, so its keys must be "
                "names. To pass the dict itself as one argument, wrap it: inputs=(the_dict,)."
            )
        return (), dict(inputs)
    return (inputs,), {}


def check_target(target: Any) -> None:
    if isinstance(target, type):
        raise BadArgument(f"The target is the class {target.__name__}. Pass an instance: {target.__name__}(...).")
    if not callable(target):
        raise BadArgument(
            f"The target is of type {type(target).__name__}, which cannot be called. "
            "Pass a torch.nn.Module or a function."
        )


def _check_seed(seed: Any) -> None:
    if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool) or not -(2**63) <= seed < 2**63):
        raise BadArgument(f"seed={seed!r} is no seed: use a whole number of at most 63 bits, such as seed=0, or None.")


def know_target(recorder: Recorder, target: Any) -> str:
    """Prepare names; returns what to call the target."""
    if target is None:
        recorder.stranger_kind = Kind.INPUT
        return "code"
    inner = getattr(target, "_orig_mod", target)  # torch.compile wraps a module in another one
    if isinstance(inner, torch.nn.Module):
        recorder.target = inner
        recorder.calls.know(inner, "")
        return type(inner).__name__
    check_target(target)
    recorder.stranger_kind = Kind.INPUT  # nothing tells its arguments from other tensors
    owner = getattr(inner, "__self__", None)
    if isinstance(owner, torch.nn.Module):  # a bound method, such as model.generate
        recorder.calls.know(owner, "")
    function = getattr(inner, "_torchdynamo_orig_callable", inner)
    recorder.calls.namespace = names_seen_by(function)
    return str(getattr(function, "__name__", type(function).__name__))


@contextlib.contextmanager
def _seeded(seed: int | None) -> Iterator[None]:
    if seed is None:
        yield
        return
    numpy = sys.modules.get("numpy")
    python_state, numpy_state = random.getstate(), numpy.random.get_state() if numpy else None
    with torch.random.fork_rng():
        try:
            torch.manual_seed(seed)
            random.seed(seed)
            if numpy:
                numpy.random.seed(seed % 2**32)
            yield
        finally:
            random.setstate(python_state)
            if numpy:
                numpy.random.set_state(numpy_state)
