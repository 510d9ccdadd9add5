"""Models that make hooks hard to believe, over enough steps that some are traced and most are not."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tests.contract.recording.helpers import batches, numbers, same, sgd
from tests.contract.recording.oracle import Oracle, agree, compared, ends, true_or_gap

cross_entropy = nn.functional.cross_entropy
STEPS = 24  # the 1st, 2nd, 4th, 8th and 16th captured step are traced


def loop(run: Any, model: nn.Module, loss_of: Any = None) -> tuple[list[float], list[Tensor]]:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    run.watch(model, optimizer)
    losses = []
    for x, y in batches(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model, x, y) if loss_of else cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, ends(model)


def all_agree(seen: Any, recording: Any, *, exact: bool = True) -> None:
    assert numbers(recording) == [*range(STEPS)]
    assert [step.passes for step in recording.steps] == [step.passes for step in seen]
    for number, step in enumerate(seen):
        agree(recording, number, step, exact=exact)
    assert recording.gaps == []


# ---- checkpointing -------------------------------------------------------------------------------


class Checkpointed(nn.Module):
    def __init__(self, reentrant: bool | None) -> None:
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.block = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 8))
        self.last = nn.Linear(8, 3)
        self.reentrant = reentrant

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(x)
        if self.reentrant is None:
            return self.last(self.block(hidden))
        return self.last(checkpoint(self.block, hidden, use_reentrant=self.reentrant))


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing(tmp_path: Any, reentrant: bool) -> None:
    """What is computed again is no pass, its gradients are those of the pass; compared with the same net without."""

    def body(run: Any) -> Any:
        is_oracle = isinstance(run, Oracle) and run.watches
        return loop(run, Checkpointed(None if is_oracle else reentrant))

    seen, recording = compared(body, tmp_path)
    assert ("block.1", 1) in seen[0].gradients
    all_agree(seen, recording)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_counts_no_loss_and_no_step_of_its_own(tmp_path: Any, reentrant: bool) -> None:
    _, recording = compared(lambda run: loop(run, Checkpointed(reentrant)), tmp_path)
    assert [step.passes for step in recording.steps] == [1] * STEPS
    assert {node for node in recording.nodes if node.startswith("loss")} == {"loss"}
    assert {key.pass_ for key in recording.tensors_of("block.1")} == {1}


class CheckpointedLoop(nn.Module):
    """One block is checkpointed three times; in it, a result is overwritten, and a module returns a tuple."""

    def __init__(self, reentrant: bool | None) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 3)
        self.inner, self.clip, self.cell = nn.Linear(8, 8), nn.ReLU(inplace=True), nn.LSTM(8, 8)
        self.reentrant = reentrant

    def block(self, hidden: Tensor) -> Tensor:
        return hidden + self.cell(self.clip(self.inner(hidden))[None])[0][0]

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(x)
        for _ in range(3):
            if self.reentrant is None:
                hidden = self.block(hidden)
            else:
                hidden = checkpoint(self.block, hidden, use_reentrant=self.reentrant)
        return self.last(hidden)


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_block_that_is_checkpointed_again_and_again(tmp_path: Any, reentrant: bool) -> None:
    def body(run: Any) -> Any:
        is_oracle = isinstance(run, Oracle) and run.watches
        return loop(run, CheckpointedLoop(None if is_oracle else reentrant))

    seen, recording = compared(body, tmp_path)
    assert {("inner", 1), ("inner", 2), ("inner", 3)} <= set(seen[0].gradients)
    all_agree(seen, recording)
    for pass_ in (1, 2, 3):
        found = recording.series("cell", "norm", of="gradient", role="0", pass_=pass_)
        assert found.steps.tolist() == [*range(STEPS)]
        assert found.values.all()


# ---- exceptions ----------------------------------------------------------------------------------


class Falling(nn.Module):
    """Tries the risky way now and then; the exception never leaves `forward`."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.risky, self.safe = nn.Linear(6, 8), Refusing(), nn.Linear(8, 8)
        self.last = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(x)
        try:
            hidden = self.risky(hidden)
        except ValueError:
            hidden = self.safe(hidden)
        return self.last(hidden)


class Refusing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.after = nn.Linear(8, 8), nn.Linear(8, 8)
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        hidden = self.inner(x)
        if self.calls % 3 == 0:
            raise ValueError("not this time")
        return self.after(hidden)


def test_exceptions_that_are_swallowed_inside_of_forward(tmp_path: Any) -> None:
    seen, recording = compared(lambda run: loop(run, Falling()), tmp_path, may_complain=True)
    assert numbers(recording) == [*range(STEPS)]
    assert [step.passes for step in recording.steps] == [1] * STEPS
    for number, step in enumerate(seen):
        agree(recording, number, step)
        assert (("safe", 1) in step.values) == (number % 3 == 2)


# ---- results that are overwritten ----------------------------------------------------------------


class Writing(nn.Module):
    """Something is written into the result of `first`, after it was returned."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.first, self.act, self.last = nn.Linear(6, 8), nn.ReLU(inplace=True), nn.Linear(8, 3)
        self.how = how
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        hidden = self.first(x)
        if self.how == "in place":
            hidden.mul_(2)
        elif self.how == "a view":
            hidden.view(-1, 4).mul_(2)
        elif self.how == "a part":
            hidden[:, :2] = 1.0
        elif self.how == "a part, added":
            hidden[:, 2:5].add_(1)
        elif self.how == "now and then" and self.calls % 5 == 3:
            hidden.add_(1)
        elif self.how == "past the count":
            hidden.data.mul_(2)
        elif self.how == "chunks":
            for part in hidden.chunk(2, 1):
                part.clone().mul_(2)
            hidden.transpose(0, 1)[1].zero_()
        return self.last(self.act(hidden))


WRITES = ["in place", "a view", "a part", "a part, added", "now and then", "chunks"]


@pytest.mark.parametrize("how", WRITES)
def test_values_that_are_overwritten_are_true_or_a_gap(tmp_path: Any, how: str) -> None:
    """The value is the one that the module returned; a tensor hook of plain torch knows what its gradient is."""
    seen, recording = compared(lambda run: loop(run, Writing(how)), tmp_path, may_complain=True)
    assert numbers(recording) == [*range(STEPS)]
    there = sum(true_or_gap(recording, number, step) for number, step in enumerate(seen))
    wanted = sum(len(s.values) + len(s.gradients) + len(s.used) + len(s.updates) for s in seen)
    assert there >= 0.8 * wanted, (there, wanted)


@pytest.mark.parametrize("how", ["in place", "a view", "a part"])
def test_what_a_traced_step_saw_overwritten_is_kept(tmp_path: Any, how: str) -> None:
    seen, recording = compared(lambda run: loop(run, Writing(how)), tmp_path)
    for number, step in enumerate(seen):
        agree(recording, number, step, gradients=False)


# ---- custom functions ----------------------------------------------------------------------------


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return torch.sin(x) * 2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * 3


class Separate(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.clamp(min=0)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (output,) = ctx.saved_tensors
        return gradient * (output > 0)


EARLY = {"one": Double.apply, "setup": Separate.apply}  # bound when this file is read, long before any run


class Custom(nn.Module):
    def __init__(self, which: str) -> None:
        super().__init__()
        self.first, self.inner, self.last = nn.Linear(6, 8), Applies(which), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.inner(self.first(x)))


class Applies(nn.Module):
    def __init__(self, which: str) -> None:
        super().__init__()
        self.op = EARLY[which]

    def forward(self, x: Tensor) -> Tensor:
        return self.op(x)


@pytest.mark.parametrize("which", ["one", "setup"])
def test_custom_functions_that_were_bound_early(tmp_path: Any, which: str) -> None:
    seen, recording = compared(lambda run: loop(run, Custom(which)), tmp_path)
    all_agree(seen, recording)
    for number in range(STEPS):
        graph = recording.graph(number)
        names = [node["node"] for node in graph["nodes"]]
        found = {(names[a], names[b]) for a, b, _ in graph["edges"]}
        assert {("first", "inner"), ("inner", "last")} <= found, number


# ---- copies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["before the forward", "before the backward", "before the update"])
def test_a_deep_copy_in_the_middle_of_a_step(tmp_path: Any, moment: str) -> None:
    """The copy is a model of its own: what it computes is nobody's business."""

    def body(run: Any) -> Any:
        model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
        optimizer = sgd(model)
        run.watch(model, optimizer)
        losses = []
        for x, y in batches(STEPS):

            def twin(now: str, x: Tensor = x, y: Tensor = y) -> None:
                if now == moment and not (isinstance(run, Oracle) and run.watches):  # plain hooks would be copied
                    other = copy.deepcopy(model)
                    other.zero_grad()
                    cross_entropy(other(2 * x), y).backward()

            optimizer.zero_grad()
            twin("before the forward")
            loss = cross_entropy(model(x), y)
            twin("before the backward")
            loss.backward()
            twin("before the update")
            optimizer.step()
            losses.append(loss.item())
        return losses, ends(model)

    seen, recording = compared(body, tmp_path)
    all_agree(seen, recording)


# ---- a teacher -----------------------------------------------------------------------------------


class Student(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.relu(self.first(x)))


def teacher_of(kind: str) -> nn.Module:
    if kind == "encoder layer":
        return nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    if kind == "encoder":
        return nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2)
    if kind == "attention":
        return Itself()
    return nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Dropout(), nn.Linear(16, 16))


class Itself(nn.MultiheadAttention):
    def __init__(self) -> None:
        super().__init__(16, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(x, x, x, need_weights=False)[0]


def distil(run: Any, kind: str, grad: bool, answers: list[Tensor]) -> tuple[list[Any], list[Tensor]]:
    student, teacher = Student(), teacher_of(kind).eval().requires_grad_(False)
    optimizer = sgd(student)
    run.watch(student, optimizer)
    answers.clear()
    losses: list[Any] = []
    for _ in range(STEPS):
        x = torch.randn(4, 5, 16)
        optimizer.zero_grad()
        out = student(x)
        with torch.set_grad_enabled(grad):
            wanted = teacher(x)
        loss = (out - wanted).square().mean()
        loss.backward()
        optimizer.step()
        answers.append(wanted)
        losses += [loss.item(), wanted.tolist()]
    return losses, ends(student)


@pytest.mark.parametrize("grad", [False, True], ids=["no_grad", "frozen"])
@pytest.mark.parametrize("kind", ["plain", "encoder layer", "encoder", "attention"])
def test_a_frozen_teacher_between_the_model_and_the_loss(tmp_path: Any, kind: str, grad: bool) -> None:
    """It takes the same fused path as without us, so that the student learns the same."""
    seen, recording = compared(lambda run: distil(run, kind, grad, []), tmp_path)
    assert numbers(recording) == [*range(STEPS)]
    assert [step.passes for step in recording.steps] == [1] * STEPS
    for number, step in enumerate(seen):
        agree(recording, number, step)
    mine = {"first", "last", "first.weight", "first.bias", "last.weight", "last.bias"}
    assert set(recording.nodes) <= mine | {"input", "output", "target", "loss"}


@pytest.mark.parametrize("kind", ["plain", "encoder layer"])
def test_what_the_teacher_says_is_the_target(tmp_path: Any, kind: str) -> None:
    answers: list[Tensor] = []
    _, recording = compared(lambda run: distil(run, kind, False, answers), tmp_path)
    assert recording.gaps == []
    for number, answer in enumerate(answers):
        assert same(recording.tensor("target", number), answer)
