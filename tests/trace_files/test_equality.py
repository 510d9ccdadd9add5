"""A trace that was saved and loaded gives every public answer that the original gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import endoscope
from endoscope.capture.views.result import Trace
from tests import models
from tests.property.samples import RULES_WITH_TURNS, program_for
from tests.trace_files.equality import differences


def check(trace: Trace, folder: Path) -> Trace:
    """The loaded trace, once it is known to be the same."""
    path = trace.save(folder / "x.trace")
    loaded = endoscope.load(path)
    found = differences(trace, loaded)
    assert not found, "\n".join(one[:500] for one in found[:10])
    return loaded


@pytest.mark.parametrize("fifty", range(4))
def test_random_programs(fifty: int, tmp_path: Path) -> None:
    for seed in range(fifty * 50, fifty * 50 + 50):
        program = program_for(seed, RULES_WITH_TURNS)
        check(endoscope.trace(program, tuple(one.clone() for one in program.inputs)), tmp_path)


@pytest.mark.parametrize("save", ["none", "type:add", ["type:view", "type:mul"], lambda op: op.bytes > 16])
def test_random_programs_of_which_less_was_kept(save: Any, tmp_path: Path) -> None:
    for seed in range(200, 230):
        program = program_for(seed)
        try:
            trace = endoscope.trace(program, tuple(one.clone() for one in program.inputs), save=save)
        except endoscope.errors.NothingMatches:
            continue
        check(trace, tmp_path)


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.lstm, self.cell = nn.Embedding(20, 8), nn.LSTM(8, 8, 2, dropout=0.5), nn.LSTMCell(8, 8)
        self.out = nn.Linear(8, 20)
        self.out.weight = nn.Parameter(torch.rand(20, 8))

    def forward(self, tokens: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        x, state = self.lstm(self.embedding(tokens))
        h, c = state[0][0], state[1][0]
        for step in x:
            h, c = self.cell(step, (h, c))
        return self.out(h), (h, c)


class Block(nn.Module):
    def __init__(self, wide: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(wide, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.down = nn.Sequential(nn.Conv2d(wide, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += self.down(x)
        return self.relu(y)


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.layers = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2), Block(16, 32, 2))
        self.fc = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(torch.flatten(nn.functional.adaptive_avg_pool2d(self.layers(self.stem(x)), 1), 1))


def conditional(x: Tensor) -> Tensor:
    for _ in range(3):
        if x.sum() > 2 and x.mean().item() < 100:
            x = x * 2
        elif not x.any():
            x = x + 1
        else:
            x = x - float(x.max())
    while x.norm() > 1:
        x = x / 2
    return x[x > 0.1] if bool((x > 0.1).any()) else x


def of_all_types(x: Tensor) -> list[Tensor]:
    types = [
        torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
        torch.float32, torch.float64, torch.complex64, torch.complex128, torch.uint16, torch.uint32, torch.uint64,
        torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz,
    ]  # fmt: skip
    made = [x.to(one) for one in types]
    return [
        *made,
        x.t(),
        x[:, :1].expand(2, 5),
        x[::2, ::3],
        x[:0],
        x.sum(),
        torch.view_as_complex(x.reshape(3, 2)).conj(),
    ]


CASES: dict[str, Callable[[], Trace]] = {
    "resnet": lambda: endoscope.trace(ResNet(), torch.rand(2, 3, 32, 32)),
    "resnet in evaluation": lambda: endoscope.trace(
        ResNet().eval(), torch.rand(2, 3, 32, 32), save=["layers.1", "in:stem"]
    ),
    "lstm": lambda: endoscope.trace(Lstm(), torch.randint(0, 20, (5, 3)), seed=3),
    "conditional": lambda: endoscope.trace(conditional, torch.tensor([0.5, 1.5, 2.5])),
    "types": lambda: endoscope.trace(of_all_types, torch.arange(6.0).reshape(2, 3)),
    "recurrent": lambda: endoscope.trace(models.RecurrentNetwork(), torch.rand(3, 5)),
    "attention": lambda: endoscope.trace(models.AttentionBlock(), torch.rand(2, 4, 8)),
}


@pytest.mark.parametrize("name", CASES)
def test_networks(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    check(CASES[name](), tmp_path)


class Pair(NamedTuple):
    a: Tensor
    b: Any


class Sub(Tensor): ...


LINEAR = nn.Linear(4, 4)
RARE: dict[str, Callable[[Tensor], Any]] = {
    "vmap": lambda x: torch.vmap(lambda row: row + torch.rand(4), randomness="different")(x),
    "hessian": lambda x: torch.func.hessian(lambda row: (row**3).sum())(x[0]),
    "checkpoint": lambda x: checkpoint(LINEAR, x, use_reentrant=False),
    "out": lambda x: torch.add(x, 1, out=torch.empty(4, 4)),
    "in place": lambda x: x.clone().mul_(2).t_().add_(1),
    "numbers of numpy": lambda x: x * np.float32(2) + np.float64(3) + np.int64(1),
    "a generator": lambda x: torch.rand(3, generator=torch.Generator().manual_seed(1)) + 1,
    "containers": lambda x: Pair(x + 1, [x, {"k": x[..., 1:3, None]}]),
    "infinity": lambda x: x.clamp(min=float("-inf"), max=float("inf")) * float("nan") * complex(0, 1),
    "subclass": lambda x: x.as_subclass(Sub) + 1,
    "numpy": lambda x: torch.from_numpy(x.numpy() * 2) + x,
    "autocast": lambda x: autocast(x),
}


def autocast(x: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        return LINEAR(x).float()


@pytest.mark.parametrize("name", RARE)
def test_rare_things(name: str, tmp_path: Path) -> None:
    check(endoscope.trace(RARE[name], torch.rand(4, 4)), tmp_path)


def test_a_run_that_raised(tmp_path: Path) -> None:
    def fails(x: Tensor) -> Tensor:
        return (x + 1) @ torch.rand(7)

    with pytest.raises(RuntimeError) as raised:
        endoscope.trace(fails, torch.rand(2, 2))
    loaded = check(raised.value.endoscope_trace, tmp_path)  # type: ignore[attr-defined]
    assert not loaded.finished and "did not finish" in str(loaded)


def test_a_language_model(tmp_path: Path) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_layer=2, n_head=2, n_embd=16, vocab_size=50, n_positions=16)
    tokens = torch.randint(0, 50, (1, 8))
    check(endoscope.trace(GPT2LMHeadModel(config), {"input_ids": tokens, "labels": tokens}), tmp_path)


def test_a_step_of_training_with_gradients(tmp_path: Path) -> None:
    net = ResNet()
    optimizer = torch.optim.Adam(net.parameters())
    with endoscope.tracing(net, gradients=True) as trace:
        loss = nn.functional.cross_entropy(net(torch.rand(4, 3, 32, 32)), torch.tensor([0, 1, 2, 3]))
        loss.backward()
    loaded = check(trace, tmp_path)
    assert any(op.gradient is not None for op in loaded.parameters)
    optimizer.step()
    assert loaded["fc.weight"].value.shape == (10, 32)
    with pytest.raises(endoscope.errors.ValueChanged):
        trace["fc.weight"].value
    later = endoscope.load(trace.save(tmp_path / "later.trace"))
    with pytest.raises(endoscope.errors.ValueChanged, match="before the trace was saved"):
        later["fc.weight"].value


def test_edits_and_reruns(tmp_path: Path) -> None:
    trace = endoscope.trace(models.Mlp(), torch.rand(2, 5))
    edited = trace.rerun({"type:relu": endoscope.edits.zero()})
    loaded = check(edited, tmp_path)
    assert [str(one) for op in loaded.edited for one in op.edited] == [
        str(o) for op in edited.edited for o in op.edited
    ]
