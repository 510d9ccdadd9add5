"""Values that are measured while the step runs give the same recording as values that are held until it ends."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope
from endoscope.recording import meter
from endoscope.recording.run import Run


class Overwriting(nn.Module):
    """Outputs of modules are overwritten, returned under several names, and used several times."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 3)
        self.norm = nn.BatchNorm2d(3)
        self.relu = nn.ReLU(inplace=True)
        self.inner = nn.Sequential(nn.Flatten(), nn.Linear(3 * 36, 4))

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.relu(self.norm(self.conv(x)))
        out = self.inner(hidden) + self.inner(hidden * 2)
        out += 1
        return out


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.GRUCell(8, 8), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        state = torch.zeros(x.shape[0], 8)
        for _ in range(3):
            state = self.cell(x.flatten(1)[:, :8], state)
        return {"state": state, "logits": self.head(state)}


def logits_of(out: Any) -> Tensor:
    logits: Tensor = out["logits"] if isinstance(out, dict) else out
    return logits


def plain(model: nn.Module, optimizer: Any, x: Tensor, y: Tensor, run: Run) -> None:
    nn.functional.cross_entropy(logits_of(model(x)), y).backward()
    optimizer.step()


def accumulated(model: nn.Module, optimizer: Any, x: Tensor, y: Tensor, run: Run) -> None:
    for part in range(2):
        nn.functional.cross_entropy(logits_of(model(x + part)), y).backward()
    optimizer.step()


def two_losses(model: nn.Module, optimizer: Any, x: Tensor, y: Tensor, run: Run) -> None:
    with run.step() as step:
        out = logits_of(model(x))
        with step.gradients("entropy"):
            nn.functional.cross_entropy(out, y).backward(retain_graph=True)
        with step.gradients("size"):
            out.pow(2).mean().backward()
        optimizer.step()


def tagged_late(model: nn.Module, optimizer: Any, x: Tensor, y: Tensor, run: Run) -> None:
    with run.step() as step:
        out = logits_of(model(x))
        step.tag("transposed", out, batch_dim=1)
        nn.functional.cross_entropy(out, y).backward()
        step.tag("again", out)
        optimizer.step()


LOOPS = [plain, accumulated, two_losses, tagged_late]
MODELS: list[Callable[[], nn.Module]] = [
    Overwriting,
    Recurrent,
    lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.Dropout(0.3), nn.Linear(8, 4)),
]


@pytest.fixture(params=[0, 16 * 2**20])
def together(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many bytes are measured at once: every tensor alone, or all."""
    monkeypatch.setattr(meter, "TOGETHER", request.param)
    return request.param


def recorded(folder: Path, model: Callable[[], nn.Module], loop: Callable[..., None], keep: Any) -> Any:
    torch.manual_seed(3)
    made = model()
    optimizer = torch.optim.SGD(made.parameters(), lr=0.1)
    with endoscope.Run(folder, trial="trial", when=1, keep=keep, strict=True) as run:
        run.watch(made, optimizer)
        for number in range(3):
            generator = torch.Generator().manual_seed(number)
            x = torch.randn(6, 1, 8, 8, generator=generator)
            loop(made, optimizer, x, torch.randint(0, 4, (6,), generator=generator), run)
            optimizer.zero_grad()
    return endoscope.open(run.path)


def same(one: Any, other: Any) -> None:
    order = ["step", "node", "role", "pass", "of"]
    for table in ("stats", "samples", "units"):
        a, b = (r.to_pandas(table).drop(columns="key", errors="ignore") for r in (one, other))
        columns = [name for name in order if name in a] + [name for name in ("sample", "unit") if name in a]
        a, b = (frame.astype(str).sort_values(columns).reset_index(drop=True) for frame in (a, b))
        assert a.equals(b), table
    assert one.nodes == other.nodes
    assert [(g.node, g.of, g.reason) for g in one.gaps] == [(g.node, g.of, g.reason) for g in other.gaps]
    for step in one.steps:
        assert one.graph(step.number) == other.graph(step.number)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("model", MODELS, ids=["overwriting", "recurrent", "dropout"])
def test_early_and_late_measurements_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: Any, loop: Any, together: int
) -> None:
    keep = 3 if loop is plain else 0  # inside of `run.step()` raw values are held until the end
    early = recorded(tmp_path / "early", model, loop, keep)
    monkeypatch.setattr(Run, "_may_measure_early", lambda self, step: False)
    late = recorded(tmp_path / "late", model, loop, keep)
    same(early, late)
    for key in [key for node in early.nodes for key in early.tensors_of(node) if keep and key.batch_dim >= 0]:
        which = {"of": key.of, "role": key.role, "pass_": key.pass_}
        assert (early.tensor(key.node, 1, **which) == late.tensor(key.node, 1, **which)).all()


def test_two_passes_without_a_kept_graph_that_meet_in_a_tensor(tmp_path: Path) -> None:
    """An addition keeps nothing for its backward pass, so a second one goes through. It is said once."""

    class Shift(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.by = nn.Parameter(torch.ones(4))

        def forward(self, x: Tensor) -> Tensor:
            return x + self.by

    model = Shift()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.Run(tmp_path, trial="trial", when=1, keep=0, strict=True) as run:
        run.watch(model, optimizer)
        for _ in range(2):
            out = model(torch.zeros(2, 4))
            out.sum().backward()
            (3 * out).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    recording = endoscope.open(run.path)
    assert [(gap.step, gap.of) for gap in recording.gaps] == [(0, "gradient:loss")]
    gradient = recording.series("output", "mean", of="gradient:loss")
    assert gradient.steps.tolist() == [1] and gradient.values.tolist() == [4.0]
    assert recording.series("by", "mean", of="gradient:loss").values.tolist() == [8.0, 8.0]


def test_nothing_is_held_that_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meter, "TOGETHER", 0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.Run(tmp_path, trial="trial", when=1, keep=0, strict=True) as run:
        run.watch(model, optimizer)
        out = model(torch.randn(3, 4))
        step: Any = run._open
        held = [tuple(tensor.shape) for tensor in step.capture.recorder.kept.values()]
        assert held == [(3, 4)]  # the input of the model
        out.sum().backward()
        assert not [slot for slot, _ in step.capture.gradients.found if slot >= 0]
        optimizer.step()


def test_a_loss_in_the_place_of_one_that_is_gone_has_its_own_name(tmp_path: Path, together: int) -> None:
    """A tensor that was let go of leaves its address to the next one."""
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    names = [f"loss{number}" for number in range(20)]
    with endoscope.Run(tmp_path, trial="trial", when=1, keep=0, strict=True) as run:
        run.watch(model, optimizer)
        with run.step() as step:
            out = model(torch.ones(3, 4))
            for number, name in enumerate(names):
                with step.gradients(name):
                    (number * out).sum().backward(retain_graph=True)
            optimizer.step()
    recording = endoscope.open(run.path)
    assert [name for name in recording.nodes if name.startswith("loss")] == names
