"""A step with NaN in it is computed again: exactly, and without touching the training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import endoscope
from endoscope.recording.failures import incidents, second_run
from tests.recording.held_steps import at_the_end

SAMPLE, BAD_STEP = 7, 4


class Doubled(torch.autograd.Function):
    broken = False

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * (float("nan") if Doubled.broken else 2.0)


class Net(nn.Module):
    """Does one thing that is hard to repeat, and then takes a logarithm."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 3)
        self.normal, self.dropout = nn.BatchNorm1d(8), nn.Dropout(0.3)

    def forward(self, x: Tensor, flaw: Tensor) -> Tensor:
        h = getattr(self, self.kind)(self.first(x))
        return self.second(h + torch.log(flaw)[:, None])

    def plain(self, h: Tensor) -> Tensor:
        return h

    def batch_norm(self, h: Tensor) -> Tensor:
        return self.normal(h)

    def random(self, h: Tensor) -> Tensor:
        return self.dropout(h) + functional.dropout(h, 0.5) + torch.randn_like(h)

    def in_place(self, h: Tensor) -> Tensor:
        return (functional.relu_(h) + 0).add_(1)

    def pieces(self, h: Tensor) -> Tensor:
        whole = torch.zeros_like(h)
        for unit in range(8):
            whole[:, unit] = h[:, unit] * 2
        return whole

    def copied(self, h: Tensor) -> Tensor:
        room = torch.empty(len(h), 16)
        room[:, :8].copy_(h)
        room[:, 8:].copy_(h * 2)
        return room[:, 4:12]

    def without_gradient(self, h: Tensor) -> Tensor:
        with torch.no_grad():
            mean = h.mean(0)
        return h - mean

    def checkpointed(self, h: Tensor) -> Tensor:
        result: Tensor = checkpoint(lambda t: torch.tanh(self.first(t)), h, use_reentrant=False)
        return result

    def autocast(self, h: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.first(h).float() + torch.softmax(self.first(h), -1)


KINDS = [name for name in vars(Net) if not name.startswith("_") and name != "forward"]


def train(kind: str, folder: Path | None, bad: bool = True, **options: Any) -> tuple[list[Tensor], str]:
    """Everything that training leaves behind, and where it was recorded."""
    torch.manual_seed(0)
    model = Net(kind)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = endoscope.Run(folder, trial="t", **{"strict": True, "when": 1, **options}) if folder else None
    if run is not None:
        run.watch(model, optimizer)
    left: list[Tensor] = []
    for number in range(BAD_STEP + 3):
        x, flaw = torch.randn(10, 8), torch.ones(10)
        if bad and number == BAD_STEP:
            flaw[SAMPLE] = 0
        loss = model(x, flaw).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        tensors = [*model.parameters(), *(p.grad for p in model.parameters() if p.grad is not None), *model.buffers()]
        left += [tensor.detach().clone() for tensor in tensors]
        left.append(torch.get_rng_state())
    if run is not None:
        run.close()
    return left, run.path if run is not None else ""


@pytest.mark.parametrize("when", [1, at_the_end])  # heard at once, and only noted at first
@pytest.mark.parametrize("kind", KINDS)
def test_the_step_is_repeated_exactly_and_training_is_untouched(kind: str, when: Any, tmp_path: Path) -> None:
    plain, _ = train(kind, None)
    watched, path = train(kind, tmp_path, when=when)
    assert all(torch.equal(torch.nan_to_num(a), torch.nan_to_num(b)) for a, b in zip(plain, watched, strict=True))
    found = endoscope.origin(path)[0]
    assert (found.step, found.operation, found.samples) == (BAD_STEP, "log", (SAMPLE,))
    assert found.exact and found.inputs[0].at == 0.0
    assert found.source.startswith(__file__)


def test_a_healthy_step_is_not_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incidents._Incident, "origins", lambda *args: pytest.fail("nothing is wrong"))
    _, path = train("plain", tmp_path, bad=False)
    assert all("origins" not in step.extra for step in endoscope.open(path).steps)


def test_the_same_incident_is_looked_into_a_few_times_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incidents, "MOST_ALIKE", 1)
    _, path = train("plain", tmp_path)  # from the bad step on all parameters are NaN
    looked = [step.number for step in endoscope.open(path).steps if "origins" in step.extra]
    assert looked == [BAD_STEP, BAD_STEP + 1]


def test_what_cannot_be_repeated_is_said_to_be_around_here(tmp_path: Path) -> None:
    class Counting(Net):
        """The second run finds the buffer as the step left it."""

        def __init__(self) -> None:
            super().__init__("plain")
            self.register_buffer("count", torch.ones(()))

        def plain(self, h: Tensor) -> Tensor:
            self.count += 1
            return h * self.count

    model = Counting()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.Run(tmp_path, trial="t", when=1, strict=True) as run:
        run.watch(model, optimizer)
        model(torch.randn(6, 8), torch.tensor([1.0, 1, 0, 1, 1, 1])).sum().backward()
        optimizer.step()
    found = endoscope.origin(run.path)[0]
    assert (found.operation, found.samples, found.exact) == ("log", (2,), False)


def test_the_backward_of_a_custom_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Custom(Net):
        def forward(self, x: Tensor, flaw: Tensor) -> Tensor:
            return self.second(Doubled.apply(self.first(x)))

    model = Custom("plain")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    monkeypatch.setattr(Doubled, "broken", True)
    with endoscope.Run(tmp_path, trial="t", when=1, strict=True) as run:
        run.watch(model, optimizer)
        model(torch.randn(6, 8), torch.ones(6)).sum().backward()
        optimizer.step()
    found = endoscope.origin(run.path)[0]
    assert (found.operation, found.of, found.exact) == ("Doubled", "gradient:loss", False)


def test_without_memory_for_a_second_run_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_run, "_free_bytes", lambda device: 1000)
    _, path = train("plain", tmp_path)
    assert any("GB are free on cpu" in gap.reason for gap in endoscope.open(path).gaps)
    assert endoscope.origin(path)[0].exact is False


def test_a_failure_of_ours_does_not_stop_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> Any:
        raise RuntimeError("out of luck")

    monkeypatch.setattr(incidents._Incident, "origins", fail)
    with pytest.warns(endoscope.errors.RecordingWarning, match="out of luck"):
        _, path = train("plain", tmp_path, strict=False)
    recording = endoscope.open(path)
    assert len(recording.steps) == BAD_STEP + 3
    found = endoscope.origin(path)[0]
    assert (found.step, found.node, found.exact) == (BAD_STEP, "second", False)


def test_the_gradient_of_one_of_two_losses_and_data_made_in_the_step(tmp_path: Path) -> None:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.Run(tmp_path, trial="t", when=1, strict=True) as run:
        run.watch(model, optimizer)
        for number in range(3):
            with run.step() as step:
                out = model(torch.randn(8, 4))
                weight = torch.ones(8, 1)
                weight[5] = 0.0 if number == 2 else 1.0
                with step.gradients("one"):
                    (out * 1024).mean().backward(retain_graph=True)
                with step.gradients("two"):
                    torch.sqrt((out * weight) ** 2).mean().backward()
                optimizer.step()
    found = endoscope.origin(run.path)[0]
    assert (found.step, found.operation, found.of, found.samples) == (2, "sqrt", "gradient:two", (5,))
    assert found.exact and found.inputs[0].at == 0.0


CALLS: list[str] = []


@torch.library.custom_op("endoscope_tests::counted", mutates_args=())
def counted(x: Tensor) -> Tensor:
    CALLS.append("counted")
    return torch.from_numpy(x.numpy() * 2.0)


class Normal(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.BatchNorm1d(4)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


class Others(nn.Module):
    """Code of the user's that must not run a second time: it counts, has statistics of its own, draws numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.script = nn.Linear(4, 4), torch.jit.script(Normal())
        self.generator = torch.Generator().manual_seed(1)

    def forward(self, x: Tensor) -> Tensor:
        noise = torch.randn(x.shape, generator=self.generator)
        with torch.no_grad():
            twice = counted(x)
        return self.script(self.first(x)) + torch.log(x * 0) + noise + twice


@pytest.mark.filterwarnings("ignore")
def test_what_is_the_users_own_does_not_run_again(tmp_path: Path) -> None:
    def trained(watch: Any) -> list[Any]:
        torch.manual_seed(0)
        CALLS.clear()
        model = Others()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        watch(model, optimizer)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(8, 4)).sum().backward()
            optimizer.step()
        inner = model.script.inner
        drawn = torch.rand(1, generator=model.generator).item()
        return [len(CALLS), inner.running_mean.tolist(), int(inner.num_batches_tracked), drawn, torch.rand(1).item()]

    plain = trained(lambda *_: None)
    with endoscope.Run(tmp_path, trial="t", when=1, strict=True) as run:
        assert trained(run.watch) == plain
    assert [step.extra["origins"][0]["operation"] for step in endoscope.open(run.path).steps] == ["log"] * 3
