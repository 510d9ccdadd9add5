"""Odd tensors never stop training; they are recorded, or named as gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import endoscope
from tests.contract.recording.helpers import (
    batches,
    complaints,
    gaps_of,
    mlp,
    recorded,
    same,
    sgd,
    simple_loop,
    slow_statistics,
    strict_run,
)

FLOAT8 = [getattr(torch, name) for name in dir(torch) if name.startswith("float8_")]
PLAIN = {
    "0-d": lambda: torch.tensor(3.0),
    "empty": lambda: torch.zeros(0),
    "empty batch": lambda: torch.zeros(0, 4),
    "empty features": lambda: torch.zeros(4, 0),
    "4-D": lambda: torch.randn(4, 3, 2, 2),
    "7-D": lambda: torch.randn(4, 1, 2, 1, 2, 1, 2),
    "int8": lambda: torch.arange(8, dtype=torch.int8).reshape(4, 2),
    "int32": lambda: torch.arange(8, dtype=torch.int32).reshape(4, 2),
    "int64": lambda: torch.tensor([[2**40, -(2**40)], [1, 2], [3, 4], [5, 6]]),
    "uint16": lambda: torch.arange(8).to(torch.uint16).reshape(4, 2),
    "uint64": lambda: torch.arange(8).to(torch.uint64).reshape(4, 2),
    "bool": lambda: torch.tensor([[True, False]] * 4),
    "complex64": lambda: torch.randn(4, 2, dtype=torch.complex64),
    "complex128": lambda: torch.randn(4, 2, dtype=torch.complex128),
    "conjugate": lambda: torch.randn(4, 2, dtype=torch.complex64).conj(),
    "negative view": lambda: torch.randn(4, 2, dtype=torch.complex64).conj().imag,
    "bf16": lambda: torch.randn(4, 2).bfloat16(),
    "half": lambda: torch.randn(4, 2).half(),
    "NaN": lambda: torch.full((4, 2), float("nan")),
    "Inf": lambda: torch.tensor([[float("inf"), float("-inf")]] * 4),
    "expanded": lambda: torch.ones(1, 2).expand(4, 2),
    "strided": lambda: torch.randn(8, 6)[::2, ::3],
    "channels last": lambda: torch.randn(4, 3, 2, 2).to(memory_format=torch.channels_last),
    "flipped twice": lambda: torch.randn(4, 2).flip(0).t().t(),
    **{str(dtype): lambda dtype=dtype: torch.tensor([[1.0, 0.5]] * 4).to(dtype) for dtype in FLOAT8},
}
EXOTIC = {
    "sparse COO": lambda: torch.eye(4).to_sparse(),
    "sparse CSR": lambda: torch.eye(4).to_sparse_csr(),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "jagged": lambda: torch.nested.nested_tensor([torch.ones(2, 2), torch.ones(3, 2)], layout=torch.jagged),
    "meta": lambda: torch.empty(4, 2, device="meta"),
    "quantised": lambda: torch.quantize_per_tensor(torch.randn(4, 2), 0.1, 0, torch.qint8),
    "complex32": lambda: torch.randn(4, 2, dtype=torch.complex64).to(torch.complex32),
    "inference": lambda: _inference(),
    "subclass": lambda: torch.randn(4, 2).as_subclass(Named),
    "parameter": lambda: nn.Parameter(torch.randn(4, 2)),
    "sub-byte": lambda: torch.zeros(4, 2, dtype=torch.uint8).view(getattr(torch, "float4_e2m1fn_x2", torch.uint8)),
}


class Named(torch.Tensor):
    """A subclass without any behaviour of its own."""


def _inference() -> Tensor:
    with torch.inference_mode():
        return torch.randn(4, 2)


class Carries(nn.Module):
    """A model that hands an odd tensor through a module of its own, and is trained beside it."""

    def __init__(self, odd: Any) -> None:
        super().__init__()
        self.odd = odd
        self.carry = nn.Identity()
        self.layer = nn.Linear(6, 3)

    def forward(self, x: Any) -> Any:
        self.carry(self.odd)
        return self.layer(x)


def train(model: nn.Module) -> list[float]:
    return simple_loop(model, sgd(model), 2)


@pytest.mark.parametrize("name", PLAIN)
def test_ordinary_oddities_are_recorded(tmp_path: Any, name: str) -> None:
    tensor = PLAIN[name]()
    before = tensor.clone()
    with strict_run(tmp_path) as run, run.step() as step:
        step.tag("odd", tensor)
        step.tag("whole", tensor, batch_dim=None)
    recording = recorded(run)
    assert gaps_of(recording, "odd") == gaps_of(recording, "whole") == []
    found, expected = recording.statistics("whole", 0), slow_statistics(before)
    for statistic in ("count", "zeros", "nans", "infs", "mean", "min", "max"):
        # Large numbers that cancel each other leave the rounding of a sum behind.
        rounding = 1e-12 * abs(found["abs_max"]) if statistic == "mean" and tensor.numel() else 0.0
        assert np.allclose(found[statistic], expected[statistic], 1e-5, np.nan_to_num(rounding), True), statistic
    assert recording.tensors_of("odd")[0].shape == tuple(tensor.shape)
    if tensor.numel() and tensor.dtype not in (torch.bfloat16, *FLOAT8):
        assert same(recording.tensor("whole", 0), before.resolve_conj().resolve_neg().contiguous())
    elif tensor.numel():
        assert np.array_equal(np.asarray(recording.tensor("whole", 0), np.float32), before.float().numpy())


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize("name", [*PLAIN, *EXOTIC])
def test_no_oddity_stops_training(tmp_path: Any, name: str) -> None:
    """In a module, as a buffer and as a tag; the losses are those of the plain run."""
    make = {**PLAIN, **EXOTIC}[name]
    torch.manual_seed(5)
    plain = train(Carries(make()))
    torch.manual_seed(5)
    model = Carries(make())
    optimizer = sgd(model)
    with complaints() as said, endoscope.Run(tmp_path, trial="trial", when=1) as run:
        run.watch(model, optimizer)
        losses = simple_loop(model, optimizer, 2)
        with run.step() as step:
            step.tag("tagged", make())
    recording = recorded(run)
    assert losses == plain
    assert {"layer", "layer.weight", "loss"} <= set(recording.nodes)
    assert len(recording.steps) == 3
    for node in ("carry", "tagged"):
        assert node in recording.nodes or gaps_of(recording, node) or said, node
        if node not in recording.nodes:
            continue
        statistics = recording.statistics(node, 0 if node == "carry" else 2)
        assert not np.isnan(statistics["mean"]) or gaps_of(recording, node) or name in ("NaN", "Inf") or "empty" in name


@pytest.mark.parametrize("name", ["0-d", "int64", "bool", "complex64", "bf16", "empty", "NaN", *map(str, FLOAT8)])
def test_buffers_of_any_type(tmp_path: Any, name: str) -> None:
    model = mlp()
    model.register_buffer("odd", PLAIN[name]())
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        simple_loop(model, optimizer)
    recording = recorded(run)
    assert "odd" in recording.nodes
    assert recording.gaps == []


@pytest.mark.filterwarnings("ignore:Complex modules are a new feature")
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.complex64])
def test_models_of_other_types(tmp_path: Any, dtype: torch.dtype) -> None:
    model = nn.Linear(6, 3).to(dtype)
    optimizer = sgd(model)
    expected = []
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for x, _ in batches(2):
            optimizer.zero_grad()
            model(x.to(dtype)).abs().float().sum().backward()
            expected.append(model.weight.grad.clone())
            optimizer.step()
    recording = recorded(run)
    assert recording.gaps == []
    found = recording.tensor("weight", 1, of="gradient")
    if dtype is torch.bfloat16:
        assert np.array_equal(np.asarray(found, np.float32), expected[1].float().numpy())
    else:
        assert same(found, expected[1])


def test_sparse_gradients(tmp_path: Any) -> None:
    torch.manual_seed(5)

    def body(watch: Any) -> Any:
        model = nn.EmbeddingBag(20, 3, sparse=True)
        optimizer = torch.optim.SparseAdam(model.parameters())
        watch(model, optimizer)
        losses = []
        for n in range(3):
            optimizer.zero_grad()
            loss = model(torch.tensor([[n, n + 1], [3, 4]])).square().sum()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, model.weight.detach().clone()

    torch.manual_seed(5)
    plain = body(lambda *_: None)
    torch.manual_seed(5)
    with complaints() as said, endoscope.Run(tmp_path, trial="trial", when=1) as run:
        watched = body(run.watch)
    assert watched[0] == plain[0]
    assert torch.equal(watched[1], plain[1])
    recording = recorded(run)
    of = {key.of for key in recording.tensors_of("weight")}
    assert "gradient:loss" in of or gaps_of(recording, "weight") or said
    assert recording.statistics("weight", 1, of="update")["norm"] > 0


def test_batches_that_change_their_size(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    sizes = (5, 1, 9, 5, 2)
    outs = []
    with strict_run(tmp_path, keep=3) as run:
        run.watch(model, optimizer)
        for size in sizes:
            ((x, y),) = batches(1, size)
            optimizer.zero_grad()
            out = model(x)
            outs.append(out.detach().clone())
            nn.functional.cross_entropy(out, y).backward()
            optimizer.step()
    recording = recorded(run)
    assert len({step.graph for step in recording.steps}) == 1
    assert recording.series("output", "count").values.tolist() == [3 * size for size in sizes]
    for step, (size, out) in enumerate(zip(sizes, outs, strict=True)):
        assert recording.tensor("output", step).shape == (min(size, 3), 3)
        assert same(recording.tensor("output", step, sample=0), out[0])
        assert len(recording.samples("output", step)["mean"]) == size
    assert recording.series("output", "mean", sample=4).steps.tolist() == [0, 2, 3]


def test_an_empty_batch(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        model(torch.zeros(0, 6)).sum().backward()
        optimizer.step()
    assert recorded(run).series("output", "count").values.tolist() == [0]


def test_sizes_of_the_batch_and_of_the_features_that_agree(tmp_path: Any) -> None:
    """Five samples of five features: a parameter has no batch, whatever its shape."""
    model = nn.Sequential(nn.Linear(5, 5), nn.Linear(5, 5))
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        model(torch.randn(5, 5)).sum().backward()
        optimizer.step()
    recording = recorded(run)
    assert {key.batch_dim for key in recording.tensors_of("0.weight")} == {-1}
    assert {key.batch_dim for key in recording.tensors_of("0")} == {0}
    assert recording.tensor("0.weight", 0).shape == (5, 5)
