"""`trace.graph.hash`: equal for equal architectures, for pinning in CI."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import endoscope

ROOT = Path(__file__).parents[2]
X = torch.rand(2, 8)


def hash_of(target: Any, inputs: Any = X, **options: Any) -> str:
    return str(endoscope.trace(target, inputs, **options).graph.hash)


class Attention(nn.Module):
    """Heads as people cut them, with two parts whose order of registration can be swapped."""

    def __init__(self, heads: int = 2, swapped: bool = False, *, width: int = 8, p: float = 0.1) -> None:
        super().__init__()
        names = ["key", "query", "value"] if swapped else ["query", "key", "value"]
        for name in names:
            setattr(self, name, nn.Linear(width, width))
        self.heads, self.p = heads, p

    def cut(self, x: Tensor) -> Tensor:
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.cut(self.query(x)), self.cut(self.key(x)), self.cut(self.value(x))
        weights = F.dropout(torch.softmax(q @ k.mT / 2.0, -1), self.p)
        mask = torch.zeros(x.shape[0], 1, 1, x.shape[1])
        return ((weights + mask) @ v).transpose(1, 2).reshape(x.shape)


class Reordered(Attention):
    """The same architecture, written and executed in another order, under other names."""

    def __init__(self) -> None:
        super().__init__(swapped=True)

    def forward(self, tokens: Tensor) -> Tensor:
        empty = torch.zeros(len(tokens), 1, 1, tokens.shape[1])
        third = self.cut(self.value(tokens))
        second = self.cut(self.key(tokens))
        first = self.cut(self.query(tokens))
        scores = F.dropout(torch.softmax(first @ second.mT / 2.0, -1), self.p)
        return ((scores + empty) @ third).transpose(1, 2).reshape(tokens.shape)


WORDS = torch.rand(2, 5, 8)


def test_weights_values_and_what_is_kept_do_not_count() -> None:
    torch.manual_seed(0)
    reference = hash_of(Attention(), WORDS)
    torch.manual_seed(1)
    assert hash_of(Attention(), WORDS * 7 - 3) == reference
    assert hash_of(Attention(), WORDS, save="none") == reference
    assert hash_of(Attention(), WORDS, gradients=True) == reference
    assert hash_of(Attention().double(), WORDS.double()) == reference
    assert endoscope.trace(Attention(), WORDS).graph_hash == reference


@pytest.mark.parametrize("batch", [1, 3, 4, 8])
def test_the_batch_size_does_not_count(batch: int) -> None:
    assert hash_of(Attention(), torch.rand(batch, 5, 8)) == hash_of(Attention(), WORDS)


def test_names_and_the_order_of_independent_parts_do_not_count() -> None:
    assert hash_of(Reordered(), WORDS) == hash_of(Attention(swapped=True), WORDS) == hash_of(Attention(), WORDS)


def test_in_place_and_out_of_place_are_the_same_architecture() -> None:
    def model(inplace: bool) -> nn.Module:
        return nn.Sequential(nn.Linear(8, 8), nn.ReLU(inplace=inplace), nn.Linear(8, 2))

    assert hash_of(model(True)) == hash_of(model(False))


@pytest.mark.parametrize(
    ("make", "inputs"),
    [
        (lambda: nn.LSTM(8, 3, 2, batch_first=True), lambda n: torch.rand(n, 5, 8)),
        (lambda: nn.GRU(8, 3), lambda n: torch.rand(5, n, 8)),
        (lambda: nn.MultiheadAttention(8, 2), lambda n: (torch.rand(5, n, 8),) * 3),
        (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), lambda n: torch.rand(n, 5, 8)),
        (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten()), lambda n: torch.rand(n, 3, 6, 6)),
    ],
    ids=["lstm", "gru", "attention", "encoder", "convolution"],
)
def test_library_modules(make: Callable[[], nn.Module], inputs: Callable[[int], Any]) -> None:
    assert len({hash_of(make().eval(), inputs(batch)) for batch in (1, 2, 3, 8)}) == 1


def test_a_number_that_was_read_from_a_tensor_does_not_count() -> None:
    def normalised(x: Tensor) -> Tensor:
        return x / x.abs().max().item()

    assert hash_of(normalised, torch.rand(2, 8)) == hash_of(normalised, torch.rand(2, 8))


# ---- what counts ---------------------------------------------------------------------------------


def convolution(**options: Any) -> nn.Module:
    return nn.Conv2d(3, 4, 3, **options)


IMAGE = torch.rand(2, 3, 9, 9)


def test_every_option_counts() -> None:
    found = [
        hash_of(convolution(), IMAGE),
        hash_of(convolution(stride=2), IMAGE),
        hash_of(convolution(padding=1), IMAGE),
        hash_of(convolution(dilation=2), IMAGE),
        hash_of(convolution(bias=False), IMAGE),
        hash_of(nn.Conv2d(3, 5, 3), IMAGE),
        hash_of(nn.Conv2d(3, 4, 5), IMAGE),
        hash_of(nn.MaxPool2d(2), IMAGE),
        hash_of(nn.MaxPool2d(2, 1), IMAGE),
        hash_of(nn.AvgPool2d(2), IMAGE),
    ]
    assert len(set(found)) == len(found)


def test_heads_dropout_and_width_count() -> None:
    found = [
        hash_of(Attention(), WORDS),
        hash_of(Attention(heads=4), WORDS),
        hash_of(Attention(p=0.2), WORDS),
        hash_of(Attention(width=16), torch.rand(2, 5, 16)),
    ]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (lambda x: x.softmax(0), lambda x: x.softmax(1)),
        (lambda x: x * 2, lambda x: x * 3),
        (lambda x: x.sin() - x.cos(), lambda x: x.cos() - x.sin()),
        (lambda x: torch.cat([x.sin(), x]), lambda x: torch.cat([x, x.sin()])),
        (lambda x: (x.sin(), x.cos()), lambda x: (x.cos(), x.sin())),
        (lambda x: x.chunk(2)[0].sin(), lambda x: x.chunk(2)[1].sin()),
        (lambda x: x[:, 0], lambda x: x[:, 1]),
        (lambda x: x.sin() + x.sin(), lambda x: (lambda y: y + y)(x.sin())),
        (lambda x: x.view(2, 2, 4), lambda x: x.view(2, 4, 2)),
        (lambda x: x.view(2, 8), lambda x: x.view(2, 2, 4)),
        (lambda x: torch.full((2, 8), 1) + x, lambda x: torch.full((2, 8), 2) + x),
    ],
)
def test_one_difference_is_enough(one: Callable[..., Any], two: Callable[..., Any]) -> None:
    assert hash_of(one) != hash_of(two)


def test_which_input_goes_where_counts() -> None:
    pair = (X, X + 1)
    assert hash_of(lambda a, b: a - b, pair) != hash_of(lambda a, b: b - a, pair)


def test_tied_weights_are_another_architecture() -> None:
    class Twice(nn.Module):
        def __init__(self, tied: bool) -> None:
            super().__init__()
            self.first = nn.Linear(8, 8)
            self.second = self.first if tied else nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            return self.second(self.first(x))

    assert hash_of(Twice(True)) != hash_of(Twice(False))


def test_a_part_has_a_hash_of_its_own() -> None:
    graph = endoscope.trace(Attention(), WORDS).graph
    other = endoscope.trace(Attention(heads=4), WORDS).graph
    assert graph.contract("type:linear | kind:output").hash == other.contract("type:linear | kind:output").hash
    assert graph.contract("type:linear | kind:output").hash != graph.hash


# ---- other processes -----------------------------------------------------------------------------

SCRIPT = """
import torch, endoscope
from tests.contract.test_graph_hash import Attention, convolution
torch.set_num_threads(1)
torch.manual_seed({seed})
print(endoscope.trace(Attention(), torch.rand({batch}, 5, 8)).graph.hash)
print(endoscope.trace(convolution(stride=2), torch.rand({batch}, 3, 9, 9)).graph.hash)
"""


@pytest.mark.parametrize(("hash_seed", "batch"), [("1", 2), ("4242", 3)])
def test_another_process_finds_the_same(hash_seed: str, batch: int) -> None:
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": paths}
    code = SCRIPT.format(seed=hash_seed, batch=batch)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [hash_of(Attention(), WORDS), hash_of(convolution(stride=2), IMAGE)]
