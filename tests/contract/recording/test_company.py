"""Others use the same model or process: threads, forks, copies, a second run, a trace."""

from __future__ import annotations

import copy
import io
import pickle
import threading
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import endoscope
from endoscope.errors import BadArgument
from tests.contract.recording.helpers import (
    batches,
    complaints,
    mlp,
    numbers,
    plain_step,
    recorded,
    same,
    sgd,
    simple_loop,
    strict_run,
)

cross_entropy = nn.functional.cross_entropy


def test_copies_and_pickles_carry_nothing_of_ours(tmp_path: Any) -> None:
    """Neither between steps nor in the middle of one."""
    model, untouched = mlp(), mlp()
    optimizer = sgd(model)
    copies: list[nn.Module] = []
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for x, y in batches(2):
            optimizer.zero_grad()
            loss = cross_entropy(model(x), y)
            copies.append(copy.deepcopy(model))
            data = pickle.dumps(model)
            copies.append(pickle.loads(data))
            buffer = io.BytesIO()
            torch.save(model, buffer)
            buffer.seek(0)
            copies.append(torch.load(buffer, weights_only=False))
            assert list(model.state_dict()) == list(untouched.state_dict())
            assert b"endoscope.recording.run" not in data
            loss.backward()
            optimizer.step()
            optimizer.state_dict()
            copy.deepcopy(optimizer.state_dict())
        for other in copies:
            simple_loop(other, sgd(other), 1)  # no step of this run
    assert numbers(recorded(run)) == [0, 1]
    for other in copies:
        other.load_state_dict(untouched.state_dict())


def test_a_copy_is_the_model_of_the_moment(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        ((x, y),) = batches(1)
        out = model(x)
        twin = copy.deepcopy(model)
        assert torch.equal(twin(x), out)
        cross_entropy(out, y).backward()
        optimizer.step()
        assert twin[0].weight.grad is None
    assert numbers(recorded(run)) == [0]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork:DeprecationWarning")
def test_a_data_loader_with_workers(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    x, y = next(iter(batches(1, size=12)))
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, num_workers=2, multiprocessing_context="fork")
        for batch, labels in loader:
            plain_step(model, optimizer, batch, labels)
        with run.step():  # workers that are started while a step is being recorded
            for batch, labels in loader:
                plain_step(model, optimizer, batch, labels)
    recording = recorded(run)
    assert numbers(recording) == [0, 1, 2, 3]
    assert recording.steps[3].passes == 3


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_child_writes_nothing(tmp_path: Any) -> None:
    """It may train, call close, and end: the recording is that of the parent."""
    import os

    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        simple_loop(model, optimizer, 2)
        child = os.fork()
        if child == 0:
            try:
                simple_loop(model, optimizer, 2)
                with run.step(99) as step:
                    step.tag("child", torch.ones(2))
                    step.metric("child", 1)
                run.metric("child", 1)
                run.note("child")
                run.close()
                os._exit(0)
            except BaseException:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        simple_loop(model, optimizer, 2)
    recording = recorded(run)
    assert numbers(recording) == [0, 1, 2, 3]
    assert recording.closed
    assert "child" not in recording.metrics and recording.notes == []


def test_another_thread_runs_the_model(tmp_path: Any) -> None:
    """Evaluation beside training: what it computes is in no step, and neither disturbs the other."""
    model = mlp()
    optimizer = sgd(model)
    stop = threading.Event()
    failed: list[BaseException] = []
    shapes: set[Any] = set()

    def evaluate() -> None:
        try:
            while not stop.is_set():
                with torch.no_grad():
                    shapes.add(model(torch.zeros(11, 6)).shape)
                model(torch.zeros(11, 6))  # in training mode, with gradients
        except BaseException as error:
            failed.append(error)

    with complaints(), endoscope.Run(tmp_path, trial="trial", when=1) as run:
        run.watch(model, optimizer)
        simple_loop(model, optimizer, 2)
        thread = threading.Thread(target=evaluate)
        thread.start()
        try:
            simple_loop(model, optimizer, 10)
        finally:
            stop.set()
            thread.join()
    recording = recorded(run)
    assert failed == []
    assert shapes == {(11, 3)}
    updates = recording.series("0.weight", "norm", of="update").steps.tolist()
    assert len(updates) >= 11
    counts = recording.series("input", "count")
    assert {count for step, count in zip(counts.steps, counts.values, strict=True) if step in updates} == {30}
    assert torch._C._len_torch_function_stack() == 0


def test_a_thread_that_was_there_first(tmp_path: Any) -> None:
    """Another thread calls the model before training begins, and ends: training is recorded all the same."""
    model = mlp()
    optimizer = sgd(model)
    with complaints(), endoscope.Run(tmp_path, trial="trial", when=1) as run:
        run.watch(model, optimizer)
        thread = threading.Thread(target=lambda: model(torch.zeros(2, 6)))
        thread.start()
        thread.join()
        simple_loop(model, optimizer, 4)
    recording = recorded(run)
    assert len(recording.series("0.weight", "norm", of="update")) >= 3


def test_training_in_another_thread(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        thread = threading.Thread(target=simple_loop, args=(model, optimizer, 3))
        thread.start()
        thread.join()
    assert numbers(recorded(run)) == [0, 1, 2]


def test_two_models_in_two_threads_with_a_run_each(tmp_path: Any) -> None:
    pairs = [(mlp(), endoscope.Run(tmp_path, trial=str(n), when=1, strict=True)) for n in range(2)]
    losses: dict[int, list[float]] = {}

    def train(n: int) -> None:
        model, run = pairs[n]
        optimizer = sgd(model)
        run.watch(model, optimizer)
        losses[n] = simple_loop(model, optimizer, 8)

    plain = [simple_loop(twin := copy.deepcopy(model), sgd(twin), 8) for model, _ in pairs]
    threads = [threading.Thread(target=train, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n, (_, run) in enumerate(pairs):
        run.close()
        recording = recorded(run)
        assert numbers(recording) == list(range(8))
        assert recording.gaps == []
        assert losses[n] == plain[n]


@pytest.mark.parametrize("called", ["a stranger", "the model"])
def test_what_another_thread_calls_is_none_of_the_step(tmp_path: Any, called: str) -> None:
    """While a step looks at what is computed between the model and the loss, and in the middle of its forward pass."""
    model = mlp()
    optimizer, other = sgd(model), model if called == "the model" else torch.nn.Linear(6, 6)

    def elsewhere(*_: Any) -> None:
        with torch.no_grad():
            other(torch.ones(2, 6))

    def in_a_thread(*_: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join()

    model[0].register_forward_hook(in_a_thread)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for x, y in batches(8):
            optimizer.zero_grad()
            out = model(x)
            in_a_thread()
            cross_entropy(out, y).backward()
            optimizer.step()
    recording = recorded(run)
    assert numbers(recording) == list(range(8)) and recording.gaps == []
    assert all(step.graph for step in recording.steps)
    for node in ("target", "0", "2", "output"):
        assert recording.series(node, "mean").steps.tolist() == list(range(8))


def test_two_runs_that_watch_one_model(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    expected = []
    with strict_run(tmp_path, trial="one") as one, strict_run(tmp_path, trial="two", when=2) as two:
        one.watch(model, optimizer)
        two.watch(model, optimizer)
        for x, y in batches(4):
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            expected.append(model[0].weight.grad.clone())
            before = model[0].weight.detach().clone()
            optimizer.step()
    for run, steps in ((one, [0, 1, 2, 3]), (two, [0, 2])):
        recording = recorded(run)
        assert numbers(recording) == steps
        for step in steps:
            assert same(recording.tensor("0.weight", step, of="gradient"), expected[step])
        assert recording.gaps == []
    assert same(recorded(one).tensor("0.weight", 3, of="update"), model[0].weight.detach() - before)
    assert torch._C._len_torch_function_stack() == 0


def test_two_runs_with_blocks(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path, trial="one") as one, strict_run(tmp_path, trial="two") as two:
        one.watch(model, optimizer)
        two.watch(model, optimizer)
        for x, y in batches(3):
            with one.step(type="a"), two.step() as step:
                step.metric("loss", plain_step(model, optimizer, x, y))
    for run in (one, two):
        recording = recorded(run)
        assert numbers(recording) == [0, 1, 2]
        assert len(recording.series("0.weight", "norm", of="update")) == 3
        assert recording.statistics("output", 2, of="gradient")["norm"] > 0


@pytest.mark.parametrize("block", [False, True])
def test_a_trace_inside_of_a_recorded_step(tmp_path: Any, block: bool) -> None:
    import contextlib

    model = mlp()
    optimizer = sgd(model)
    ((x, y),) = batches(1)
    with strict_run(tmp_path, keep=5) as run:
        run.watch(model, optimizer)
        for _ in range(2):
            with run.step() if block else contextlib.nullcontext():
                optimizer.zero_grad()
                out = model(x)
                trace = endoscope.trace(model, x)
                loss = cross_entropy(out, y)
                loss.backward()
                expected = model[0].weight.grad.clone()
                assert torch.equal(trace["0"].value, model[0](x))
                optimizer.step()
    recording = recorded(run)
    assert numbers(recording) == [0, 1]
    assert same(recording.tensor("output", 1, pass_=1), out)
    assert same(recording.tensor("0.weight", 1, of="gradient"), expected)
    assert torch._C._len_torch_function_stack() == 0


def test_a_recorded_step_inside_of_a_trace(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    ((x, y),) = batches(1)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        with endoscope.tracing(model) as trace:
            plain_step(model, optimizer, x, y)
    assert numbers(recorded(run)) == [0]
    assert any(op.type == "linear" for op in trace.ops)
    assert torch._C._len_torch_function_stack() == 0


@pytest.mark.parametrize("bucket_view", [False, True])
def test_distributed_training_writes_into_gradients(tmp_path: Any, bucket_view: bool) -> None:
    """It does so below our ears: the first time that is a gap, from then on gradients are held before."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1)
    try:
        model = mlp()
        wrapped = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=bucket_view)
        optimizer = sgd(wrapped)
        expected = []
        with complaints(), endoscope.Run(tmp_path, trial="trial", when=1) as run:
            run.watch(wrapped, optimizer)
            for x, y in batches(3):
                optimizer.zero_grad()
                cross_entropy(wrapped(x), y).backward()
                expected.append(model[0].weight.grad.clone())
                optimizer.step()
    finally:
        torch.distributed.destroy_process_group()
    recording = recorded(run)
    assert numbers(recording) == [0, 1, 2]
    for step in (1, 2):
        assert same(recording.tensor("module.0.weight", step, of="gradient"), expected[step])
    assert {gap.step for gap in recording.gaps} <= {0}


def test_watching_twice_is_an_error_that_says_so(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        with pytest.raises(BadArgument, match="watched already"):
            run.watch(model, optimizer)
        simple_loop(model, optimizer, 2)
    assert numbers(recorded(run)) == [0, 1]


def test_a_part_of_a_watched_model_is_watched_too(tmp_path: Any) -> None:
    """Overlapping models: every tensor is there, steps are counted once."""
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        run.watch(model[0], optimizer, name="part")
        simple_loop(model, optimizer, 2)
    recording = recorded(run)
    assert numbers(recording) == [0, 1]
    assert recording.statistics("0.weight", 1, of="gradient")["norm"] > 0


def test_a_closed_run_and_a_new_one(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    for expected in ("trial", "trial-2"):
        with strict_run(tmp_path) as run:
            run.watch(model, optimizer)
            simple_loop(model, optimizer, 2)
        assert run.trial == expected
        assert numbers(recorded(run)) == [0, 1]
