"""`validate()`: five proofs, in the order of the checks below.

replay      every operation, run again on the kept values of its parents, gives the kept result
parents     every claimed parent matters: another value gives another result, or there is a reason why not
complete    every operation that torch's dispatcher executed belongs to an operation of the trace
untouched   the traced run and a plain run agree: results, gradients, buffers, random state
inputs      an output that moves with an input is reached by it in the graph
"""

from __future__ import annotations

from typing import Any

import torch

from endoscope.capture.change.edit import apply_all
from endoscope.capture.change.plan import Plan
from endoscope.capture.change.randomness import seeded
from endoscope.capture.change.state import State
from endoscope.capture.data.nodes import slots_of
from endoscope.capture.data.record import Overwritten
from endoscope.capture.trace import Arguments, arguments, check_target, dry_run
from endoscope.capture.trace import trace as run_trace
from endoscope.capture.views.op import Op, op_at
from endoscope.capture.views.result import Trace
from endoscope.errors import BadArgument, CannotReplay
from endoscope.replay.accounting import Accountant, check_complete, report_missing, traced_under
from endoscope.replay.compare import difference, same
from endoscope.replay.inputs_moved import check_inputs
from endoscope.replay.operands import MissingParent, call_again, value_seen
from endoscope.replay.perturb import excuse
from endoscope.replay.report import Report
from endoscope.replay.untouched import check_untouched
from endoscope.schema.ops import Kind

_ABSENT = object()
#: Of an operation with more parents than this (a long `cat`), a sample is perturbed.
MOST_PARENTS = 64


def validate(target: Any, inputs: Any = _ABSENT, *, seed: int | None = None, **named: Any) -> Report:
    """Check that a trace is right. `target` is a module or function (with `inputs` as in `trace`), or a finished trace.

    The target is run several times, all of them with the `seed` if there is one; its buffers, gradients, inputs and all
    random states are put back afterwards.
    """
    if isinstance(target, Trace):
        if inputs is not _ABSENT or named:
            raise BadArgument("A trace has its inputs already: trace.validate(), or endoscope.validate(model, x).")
        with seeded(seed):
            return _validate_trace(target)
    if inputs is _ABSENT and not named:
        raise BadArgument("validate() needs the inputs, too: endoscope.validate(model, x), or trace.validate().")
    check_target(target)
    with seeded(seed):
        return _validate_target(target, arguments(() if inputs is _ABSENT else inputs, named))


def _validate_target(target: Any, given: Arguments) -> Report:
    args, kwargs = given
    report = Report(_name(target))
    state = State(target, args, kwargs)
    accountant = Accountant()

    def traced() -> Trace:
        try:
            return traced_under(accountant, target, args, kwargs)
        except Exception as error:  # not every target bears a dispatch mode
            state.restore()
            accountant.missing.clear()
            trace = run_trace(target, given)
            report.unchecked.append(f"completeness: under a dispatch mode it raised {type(error).__name__}: {error}")
            return trace

    try:
        trace = check_untouched(report, state, lambda: target(*args, **kwargs), traced)
        report_missing(report, accountant)
        check_values(report, trace)
        check_inputs(report, trace, state, lambda: target(*args, **kwargs))
    finally:
        state.restore()
    return report


def _validate_trace(trace: Trace) -> Report:
    if not trace.record.full:
        raise CannotReplay(
            f"This trace of {trace.name} was taken with save={trace.record.save_text}, so values that the replay "
            "needs were not kept. Trace with save='all', or call endoscope.validate(model, inputs)."
        )
    trace = trace.live()
    report = Report(trace.name)
    check_values(report, trace)
    if trace.origin is None:
        report.unchecked.append(
            "completeness and the untraced run: the trace came from a `with tracing()` block, which cannot be run again"
        )
        return report
    target, args, kwargs, changes = trace.origin()
    state = State(target, args, kwargs)
    try:
        plan = Plan.of(dry_run(target, args, kwargs, trace.seed), changes) if changes else None
        check_complete(report, trace, target, args, kwargs, plan)
        state.restore()
        run, traced = lambda: target(*args, **kwargs), lambda: run_trace(target, Arguments(tuple(args), kwargs))
        check_untouched(report, state, run, traced)
        edited = lambda: run_trace(target, Arguments(tuple(args), kwargs), save="none", edit=plan).result  # noqa: E731
        check_inputs(report, trace, state, edited if changes else run)
    finally:
        state.restore()
    return report


def check_values(report: Report, trace: Trace) -> None:
    """Replay and perturb every operation, orphans included."""
    report.unchecked += [str(warning) for warning in trace.warnings]
    for op in (*trace.ops, *trace.orphans):
        try:
            if op.kind in (Kind.COMPUTED, Kind.GENERATED):
                _check_op(report, op)
            else:
                _check_end(report, op)
        except Overwritten:
            report.fail("replay", "a value it needs was overwritten by code that could not be seen", op)
        except Exception as error:  # tensors without numbers, subclasses that cannot be compared
            report.unchecked.append(f"{op.label}: comparing its values raised {type(error).__name__}: {error}")


def _check_end(report: Report, op: Op) -> None:
    """Inputs and outputs are not computed; an output must be what its parent holds."""
    if op.kind == Kind.OUTPUT and not op._raw.reads:
        report.fail("replay", "no operation is known that made this output", op)
    values = op._trace.store
    for slot, read in zip(op.slots, op._raw.reads or [()], strict=True):
        kept = values.tensor(slot)
        if op.kind == Kind.OUTPUT and read != slot:
            seen = value_seen(values, read, op._trace.recorder.objects[slot], None)
            _compare(report, op, [kept.detach()], [seen])
    report.checked += 1


def _check_op(report: Report, op: Op) -> None:
    facts = op._raw.facts
    if not facts.replayable:
        report.unchecked.append(f"{op.label} ({facts.name}) cannot be run again on values alone")
        return
    try:
        found = call_again(op)
    except MissingParent:
        report.fail("replay", "an argument was a tensor whose origin the trace does not know", op)
        return
    except Overwritten:
        raise
    except Exception as error:
        report.fail("replay", f"running it again raised {type(error).__name__}: {error}", op)
        return
    kept = _results(op)
    if len(kept) != len(found):
        report.fail("replay", f"it returned {len(kept)} tensors, running it again {len(found)}", op)
        return
    if not all(map(same, kept, _edited(op, found))):
        found = _exactly(op, found)
        _compare(report, op, kept, _edited(op, found))
    report.checked += 1
    _check_parents(report, op, found)


def _edited(op: Op, found: list[torch.Tensor]) -> list[torch.Tensor]:
    """What the operation returned is not what its readers saw if it was edited."""
    edits = op._trace.recorder.edited.get(op.node)
    if not edits:
        return found
    outputs = op._raw.outputs
    return [*apply_all(edits, found[:outputs]), *found[outputs:]]


def _exactly(op: Op, found: list[torch.Tensor]) -> list[torch.Tensor]:
    try:
        return call_again(op, exact=True)
    except Exception:
        return found


def _results(op: Op) -> list[torch.Tensor]:
    raw, values = op._raw, op._trace.store
    return [values.tensor(slot).detach() for slot in raw.results]


def _compare(report: Report, op: Op, kept: list[torch.Tensor], found: list[torch.Tensor]) -> None:
    for expected, replayed in zip(kept, found, strict=True):
        problem, deviation = difference(expected, replayed)
        if problem is not None:
            details = {"index": problem.index, "expected": problem.expected, "found": problem.found}
            report.fail("replay", problem.reason, op, **details)
            return
        if deviation:
            report.inexact.append((op, deviation))


def _check_parents(report: Report, op: Op, baseline: list[torch.Tensor]) -> None:
    slots = {slot: None for read in op._raw.reads for slot in slots_of(read)}
    chosen = list(slots)
    if len(chosen) > MOST_PARENTS:
        chosen = chosen[:: len(chosen) // MOST_PARENTS + 1]
        report.unchecked.append(f"{op.label} has {len(slots)} parents, of which {len(chosen)} were changed")
    for slot in chosen:
        report.edges += 1
        reason = excuse(op, slot, baseline)
        if reason is None:
            continue
        parent = op_at(op._trace, op._trace.recorder.slot_node[slot])
        if reason:
            report.excused.append((op, parent, reason))
        else:
            report.fail("parents", f"its parent {parent.label} can change without changing the result", op)
    for read in op._trace.recorder.hidden_reads.get(op.node, ()):
        parent = op_at(op._trace, op._trace.recorder.slot_node[slots_of(read)[-1]])
        report.excused.append((op, parent, "read inside an opaque body"))


def _name(target: Any) -> str:
    kind = type(target).__name__
    return kind if isinstance(target, torch.nn.Module) else str(getattr(target, "__name__", kind))
