"""Whatever is falsified in a trace, the proof does not hold any more and names what is wrong."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from endoscope.replay.report import Failure
from tests.replay.faults import (
    MODELS,
    computed,
    corrupt,
    drop_read,
    falsify,
    pretend_constant,
    redirect,
    remove,
    traced,
)

NAMES = list(MODELS)


def blamed(trace: Any) -> dict[str, Failure]:
    """The first failure for each operation that the proof complains about."""
    report = trace.validate()
    assert not report, "the fault was not found"
    found: dict[str, Failure] = {}
    for failure in report.failures:
        found.setdefault(failure.op.label if failure.op is not None else "", failure)
    return found


def labels(name: str) -> list[str]:
    return [op.label for op in computed(traced(name))]


EVERY_OP = [(name, label) for name in NAMES for label in labels(name)]


@pytest.mark.parametrize("name", NAMES)
def test_without_a_fault_nothing_is_blamed(name: str) -> None:
    report = traced(name).validate()
    assert report, str(report)


# ---- values --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "label"), EVERY_OP)
def test_one_wrong_element_of_any_operation(name: str, label: str) -> None:
    trace = traced(name)
    op = trace[label]
    index = tuple(size // 2 for size in op.metas[0].shape)
    wrong, right = corrupt(trace, op.slots[0], index)
    failure = blamed(trace)[label]
    assert failure.index == index
    assert failure.expected == pytest.approx(wrong)
    assert failure.found == pytest.approx(right)
    assert failure.source == op.source
    for part in (label, str(failure.expected), str(failure.found), str(list(index))):
        assert part in str(failure)


@pytest.mark.parametrize(
    ("name", "label"), [("mlp", "input_1_0"), ("transformer", "input_1_0"), ("inplace", "input_1_0")]
)
def test_a_wrong_input(name: str, label: str) -> None:
    trace = traced(name)
    children = {c.label for c in trace[label].children}
    corrupt(trace, trace[label].slots[0], (0,) * len(trace[label].shape))
    assert set(blamed(trace)) & {label, *children}


@pytest.mark.parametrize(
    ("name", "label"),
    [(name, p.label) for name in NAMES for p in (*traced(name).parameters, *traced(name).buffers) if p.children],
)
def test_a_wrong_parameter_or_buffer(name: str, label: str) -> None:
    trace = traced(name)
    children = {c.label for c in trace[label].children}
    corrupt(trace, trace[label].slots[0], (0,) * len(trace[label].shape))
    assert set(blamed(trace)) & {label, *children}


@pytest.mark.parametrize("position", [0, 1])
def test_a_wrong_output(position: int) -> None:
    """The first is the result of one operation, the second was written by several."""
    trace = traced("inplace")
    output = trace.outputs[position]
    wrong, right = corrupt(trace, output.slots[0], (0,) * len(output.shape))
    found = blamed(trace)
    failure = found.get(output.label) or found[output.parents[0].label]
    assert (failure.expected, failure.found) == (pytest.approx(wrong), pytest.approx(right))


@pytest.mark.parametrize("offset", [1, 2])
def test_a_wrong_running_statistic(offset: int) -> None:
    """What batch norm writes on the side."""
    trace = traced("conv")
    norm = trace["batch_norm_1"]
    wrong, right = corrupt(trace, norm.slots[0] + offset, (1,))
    failure = blamed(trace)[norm.label]
    assert (failure.index, failure.expected) == ((1,), pytest.approx(wrong))
    assert failure.found == pytest.approx(right)


def pairs_of_equal_shape() -> list[tuple[str, str, str]]:
    found = []
    for name in NAMES:
        ops = [op for op in computed(traced(name)) if len(op.slots) == 1]
        for position, one in enumerate(ops):
            for two in ops[position + 1 :]:
                if one.shape == two.shape and one.dtype == two.dtype and not torch.equal(one.value, two.value):
                    found.append((name, one.label, two.label))
                    break
    return found


@pytest.mark.parametrize(("name", "one", "two"), pairs_of_equal_shape())
def test_two_values_exchanged(name: str, one: str, two: str) -> None:
    trace = traced(name)
    kept, (a, b) = trace.recorder.kept, (trace[one].slots[0], trace[two].slots[0])
    kept[a], kept[b] = kept[b], kept[a]
    found = set(blamed(trace))
    assert one in found
    assert two in found or trace[two].type == "neg"  # -a = b is as true as -b = a


def test_a_wrong_random_state() -> None:
    trace = traced("transformer")
    first, second = [op for op in trace.ops if op.type == "dropout"][:2]
    rng = trace.recorder.rng
    rng[first.node], rng[second.node] = rng[second.node], rng[first.node]
    assert {first.label, second.label} & set(blamed(trace))


# ---- edges ---------------------------------------------------------------------------------------------------------


def reads() -> list[tuple[str, str, int]]:
    """Every edge of every model: model, operation, which of its arguments."""
    return [
        (name, op.label, position)
        for name in NAMES
        for op in [*computed(traced(name)), *traced(name).outputs]
        for position, read in enumerate(op._raw.reads)
        if read != -1
    ]


@pytest.mark.parametrize(("name", "label", "position"), reads())
def test_any_edge_dropped(name: str, label: str, position: int) -> None:
    trace = traced(name)
    drop_read(trace, trace[label], position)
    assert label in {trace.op_at(f.op.node).label for f in trace.validate().failures if f.op is not None}


@pytest.mark.parametrize(("name", "label", "position"), reads())
def test_any_edge_redirected(name: str, label: str, position: int) -> None:
    """To another operation's value of the same shape, where there is one; else to the wrong shape."""
    trace = traced(name)
    op = trace[label]
    node, read = op.node, op._raw.reads[position]
    slot = read if isinstance(read, int) else read[-1]
    values = trace.values
    before = [s for s in range(op._raw.slot) if s != slot and not _alike(values.tensor(s), values.tensor(slot))]
    same_shape = [s for s in before if values.tensor(s).shape == values.tensor(slot).shape]
    if not before:
        pytest.skip("there is no other value yet")
    redirect(trace, op, position, (same_shape or before)[-1])
    report = trace.validate()
    assert not report
    assert node in {f.op.node for f in report.failures if f.op is not None}


def _alike(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and torch.equal(a, b)


def composites() -> list[tuple[str, int, int]]:
    """Reads that consist of several writes, taken apart: operation, which argument, which part."""
    trace = traced("inplace")
    excused = {(op.node, parent.node) for op, parent, _ in trace.validate().excused}
    return [
        (op.label, position, part)
        for op in trace.ops
        for position, read in enumerate(op._raw.reads)
        if isinstance(read, tuple) and len(read) > 1
        for part, slot in enumerate(read)
        if (op.node, trace.recorder.slot_node[slot]) not in excused  # what is overwritten anyway is not missed
    ]


@pytest.mark.parametrize(("label", "position", "part"), composites())
def test_one_of_several_writes_dropped(label: str, position: int, part: int) -> None:
    trace = traced("inplace")
    read = trace[label]._raw.reads[position]
    redirect(trace, trace[label], position, read[:part] + read[part + 1 :])
    assert label in blamed(trace)


def test_there_are_reads_of_several_writes() -> None:
    assert len(composites()) >= 4


def test_a_write_that_cannot_be_seen_from_there() -> None:
    """The last row's change is added to what the first row is said to depend on: harmless, but not true."""
    trace = traced("inplace")
    exp, last = trace["exp_1"], trace["mul_2"]
    redirect(trace, exp, 0, (exp._raw.reads[0], last.slots[0]))
    failure = blamed(trace)["exp_1_7"]
    assert failure.check == "parents"
    assert last.label in failure.reason


def test_a_parent_that_does_not_matter() -> None:
    """An argument that was never given."""
    trace = traced("mlp")
    relu = trace["relu_1"]
    falsify(trace, relu, reads=[*relu._raw.reads, trace["input_1"].slots[0]])
    assert relu.label in blamed(trace)


# ---- operations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "label"), EVERY_OP)
def test_any_operation_hidden_as_a_constant(name: str, label: str) -> None:
    trace = traced(name)
    op = trace[label]
    type_, source = op.type, op.source
    pretend_constant(trace, op)
    check_missing(blamed(trace), type_, source)


@pytest.mark.parametrize(
    ("name", "label"),
    [(n, o) for n, o in EVERY_OP if n != "inplace" and isinstance(traced(n)[o]._raw.reads[0], int)],
)
def test_any_operation_removed(name: str, label: str) -> None:
    trace = traced(name)
    op = trace[label]
    type_, source = op.type, op.source
    remove(trace, op)
    check_missing(blamed(trace), type_, source)


def check_missing(found: dict[str, Failure], type_: str, source: Any) -> None:
    """The operation and its line are named; in a model of torch's own the line is that of whoever called it."""
    reasons = " ".join(failure.reason for failure in found.values())
    assert f"a second run performs {type_} " in reasons
    assert str(source) in reasons or source.function == "traced"


def test_an_operation_that_was_never_performed() -> None:
    trace = traced("mlp")
    recorder = trace.recorder
    recorder.nodes.append(recorder.nodes[trace["relu_1"].node])
    reasons = " ".join(failure.reason for failure in blamed(trace).values())
    assert "relu" in reasons


# ---- arguments -----------------------------------------------------------------------------------------------------


def test_a_wrong_scalar_argument() -> None:
    trace = traced("inplace")
    double = trace["mul_1"]
    tensor, number = double._raw.args
    assert number == 2
    falsify(trace, double, args=(tensor, 3))
    failure = blamed(trace)["mul_1_1"]
    assert failure.index is not None
    assert failure.found == pytest.approx(1.5 * failure.expected)


def test_a_wrong_keyword_argument() -> None:
    trace = traced("transformer")
    norm = next(op for op in trace.ops if op.type == "layer_norm")
    raw = norm._raw
    args = tuple(0.5 if isinstance(a, float) else a for a in raw.args)
    falsify(trace, norm, args=args, kwargs={**(raw.kwargs or {}), **({"eps": 0.5} if args == raw.args else {})})
    assert norm.label in blamed(trace)


def test_another_function() -> None:
    trace = traced("mlp")
    falsify(trace, trace["relu_1"], func=torch.tanh)
    assert "relu_1_2" in blamed(trace)
