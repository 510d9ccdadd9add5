"""`trace()` and `tracing()`: record a module or a function.

tracing.__enter__ ─► patches.activate ─► Recorder records ─► tracing.__exit__ ─► patches.deactivate ─► Trace
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch

from endoscope.capture.change.choosing import changes_in
from endoscope.capture.change.editor import following
from endoscope.capture.change.plan import Plan
from endoscope.capture.change.randomness import check_seed, kept_states, random_states, seeded
from endoscope.capture.change.rebuild import rebuilt
from endoscope.capture.change.state import State, names_seen_by
from endoscope.capture.file.folder import FolderKeeper
from endoscope.capture.patch.compiled import without_compiled_calls
from endoscope.capture.patch.patches import activate, deactivate, untraced
from endoscope.capture.record.fingerprint import take_fingerprints
from endoscope.capture.record.gradients import Gradients
from endoscope.capture.record.hot_path import attach
from endoscope.capture.record.keeping import Keeper, Save, ToFolder, make_keeper
from endoscope.capture.record.leaves import named_arguments
from endoscope.capture.record.recorder import Recorder
from endoscope.capture.record.source import line_of_error
from endoscope.capture.record.stopping import Stop, Stopped
from endoscope.capture.record.unseen import look_for_unseen
from endoscope.capture.record.values import TensorStore
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
    **named: Any,
) -> Trace:
    """Run `target` once on `inputs` and return every operation it performed.

    `inputs` is a tensor, a tuple (positional arguments) or a dict (keyword arguments); anything else, a list too,
    is one argument. Keyword arguments that are not ours go to the target as well.

    `save` says which values are kept (`endoscope.to_folder(path)`: all of them, on disk), `gradients` keeps gradients
    once `backward()` is called on the result, `seed` makes a stochastic target repeatable (the random states are put
    back afterwards), `edit` changes values on the way (see `endoscope.edits`; the target then runs twice, and what the
    first run did is undone).
    """
    check_target(target)
    args, kwargs = arguments(inputs, named)
    plan = edit if isinstance(edit, Plan) else None
    changes = plan.changes if plan is not None else changes_in(edit) if edit is not None else []
    if changes and plan is None:
        plan = Plan.of(dry_run(target, args, kwargs, seed), changes)
    with _list_explained(inputs), tracing(target, save=save, gradients=gradients, seed=seed) as found:
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
    target: Target | None = None,
    *,
    save: Save = "all",
    gradients: bool = False,
    seed: int | None = None,
    stop_after: str | None = None,
) -> Iterator[Trace]:
    """Trace all code in the block: several calls, keyword arguments, `backward()`.

    If `target` is a module, the arguments and results of its calls are the inputs and outputs of the trace. Else the
    tensors that come from outside the block are the inputs, and there are no outputs.

    `stop_after` is the address of a module: when it returns, the block ends there, without an error.
    """
    check_seed(seed)
    if not isinstance(gradients, bool):
        raise BadArgument(f"gradients={gradients!r}: use True or False.")
    keeper = FolderKeeper(save) if isinstance(save, ToFolder) else make_keeper(save)
    if gradients and isinstance(keeper, FolderKeeper):
        raise BadArgument("to_folder() keeps values only. Leave gradients=True out, or save='all'.")
    recorder = Recorder(full=keeper is None, keeper=keeper, gradients=Gradients() if gradients else None)
    recorder.save_text = repr(save)
    if keeper is not None:
        keeper.recorder = recorder
    attach(recorder)
    store = keeper.values(recorder) if isinstance(keeper, FolderKeeper) else TensorStore(recorder)
    found = Trace(recorder, store, know_target(recorder, target))
    if stop_after is not None:
        recorder.stop = Stop(recorder.calls, stop_after)
    found.seed = seed
    found.timing.started = time.time()
    clock = time.perf_counter()
    modules = [module for _, module in recorder.calls.addresses.values()]
    with seeded(seed), without_compiled_calls(modules):
        before = random_states()
        recorder.random_state = before["cpu"]
        activate(recorder)
        try:
            with recorder:
                yield found
            found.finished = True
        except Stopped:
            found.stopped_after = stop_after
        except BaseException as error:
            with contextlib.suppress(Exception):  # an exception class may forbid new attributes
                error.endoscope_trace = found  # type: ignore[attr-defined]
            raise
        finally:
            deactivate(recorder)
            found.random = kept_states(before, random_states(), recorder.generators)
            found.timing.run = time.perf_counter() - clock
            found.timing.ended = time.time()
            _finish(found, keeper)


def _finish(found: Trace, keeper: Keeper | FolderKeeper | None) -> None:
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
    if recorder.stop is not None and found.finished:
        raise recorder.stop.never_came()


@contextlib.contextmanager
def _list_explained(inputs: Any) -> Iterator[None]:
    """A list is one argument; who meant several of them is told so."""
    try:
        yield
    except (TypeError, AttributeError) as error:
        if inputs.__class__ is not list or not any(isinstance(one, torch.Tensor) for one in inputs):
            raise
        raise BadArgument(
            f"inputs is a list, which is handed over as one argument, and the target raised {type(error).__name__}: "
            f"{error}. For {len(inputs)} positional argument{'s' * (len(inputs) != 1)} use a tuple: "
            "inputs=(x,) instead of inputs=[x]."
        ) from error


class Arguments(NamedTuple):
    """Positional and keyword arguments, told apart already; may be given as `inputs`."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def arguments(inputs: Any, named: Mapping[str, Any] | None = None) -> Arguments:
    """How `inputs`, and keyword arguments beside them, are handed to the target."""
    args, kwargs = inputs if isinstance(inputs, Arguments) else _split(inputs)
    twice = sorted(kwargs.keys() & (named or {}).keys())
    if twice:
        raise BadArgument(f"{twice[0]} is in inputs and a keyword argument as well. Leave one of them out.")
    return Arguments(args, {**kwargs, **(named or {})})


def _split(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
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
