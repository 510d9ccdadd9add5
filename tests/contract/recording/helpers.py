"""A few words the tests of recordings are written in. They touch nothing but public names."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import endoscope
from endoscope.errors import RecordingWarning

STATISTICS = "count mean std abs_mean min max norm zeros nans infs q01 q05 q25 q50 q75 q95 q99".split()


def mlp(inputs: int = 6, hidden: int = 8, outputs: int = 3) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))


def sgd(model: nn.Module, lr: float = 0.1, **settings: Any) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), lr=lr, **settings)


def batches(steps: int, size: int = 5, inputs: int = 6, classes: int = 3) -> Iterator[tuple[Tensor, Tensor]]:
    """The same data every time; the global random stream is left alone."""
    generator = torch.Generator().manual_seed(7)
    for _ in range(steps):
        x = torch.randn(size, inputs, generator=generator)
        yield x, torch.randint(0, classes, (size,), generator=generator)


def plain_step(model: nn.Module, optimizer: Any, x: Tensor, y: Tensor) -> Tensor:
    """What a training loop does, and nothing of ours."""
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


def simple_loop(model: nn.Module, optimizer: Any, steps: int = 3, size: int = 5) -> list[float]:
    return [plain_step(model, optimizer, x, y).item() for x, y in batches(steps, size)]


@contextlib.contextmanager
def strict_run(root: Any, **settings: Any) -> Iterator[endoscope.Run]:
    """A run in which any failure inside Endoscope reaches the test, as exception or as warning."""
    settings.setdefault("trial", "trial")
    settings.setdefault("when", 1)
    with no_complaint(), endoscope.Run(root, strict=True, **settings) as run:
        yield run


@contextlib.contextmanager
def complaints() -> Iterator[list[str]]:
    """What Endoscope warned about in the block, as texts."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield said
    said += [str(w.message) for w in caught if issubclass(w.category, RecordingWarning)]
    for other in caught:
        if not issubclass(other.category, RecordingWarning):
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)


@contextlib.contextmanager
def no_complaint() -> Iterator[None]:
    with complaints() as said:
        yield
    assert said == []


def recorded(run: endoscope.Run) -> Any:
    """The recording of a run, checked byte for byte."""
    run.flush()
    found = endoscope.open(run.path)
    assert found.verify(), found.verify().problems
    return found


def numbers(recording: Any) -> list[int]:
    return [step.number for step in recording.steps]


def gaps_of(recording: Any, node: str) -> list[str]:
    return [gap.reason for gap in recording.gaps if gap.node == node]


def same(left: Any, right: Any) -> bool:
    """Bit for bit: a recorded array and a tensor."""
    if isinstance(right, Tensor):
        right = right.detach().numpy()
    return bool(left.shape == right.shape and left.dtype == right.dtype and np.array_equal(left, right, equal_nan=True))


def close(left: Any, right: Any, tolerance: float = 1e-6) -> bool:
    return bool(np.allclose(left, right, rtol=tolerance, atol=tolerance, equal_nan=True))


def slow_statistics(tensor: Tensor) -> dict[str, float]:
    """The same statistics in a few lines of numpy: counts over everything, numbers over what is finite."""
    values = tensor.detach()
    if values.is_complex():
        values = values.abs()
    everything = values.to(torch.float64).flatten().numpy()
    finite = everything[np.isfinite(everything)]
    found = {
        "count": everything.size,
        "zeros": int((everything == 0).sum()),
        "nans": int(np.isnan(everything).sum()),
        "infs": int(np.isinf(everything).sum()),
    }
    if not finite.size:
        return {**{name: float("nan") for name in STATISTICS}, **found}
    quantiles = {name: np.quantile(finite, int(name[1:]) / 100) for name in STATISTICS if name[0] == "q"}
    return {
        **found, **quantiles, "mean": finite.mean(), "std": finite.std(), "abs_mean": np.abs(finite).mean(),
        "min": finite.min(), "max": finite.max(), "norm": float(np.sqrt((finite**2).sum())),
    }  # fmt: skip


def edges(recording: Any, step: int = 0) -> set[tuple[str, str]]:
    """The dependency graph of a step, by names; passes after the first are written `name:2`."""
    graph = recording.graph(step)
    names = [label(node) for node in graph["nodes"]]
    return {(names[a], names[b]) for a, b, _ in graph["edges"]}


def label(node: dict[str, Any]) -> str:
    role = f"[{node['role']}]" if node["role"] and node["kind"] != "input" else ""
    return f"{node['node']}{role}" + (f":{node['pass']}" if node["pass"] > 1 else "")


def kinds(recording: Any, step: int = 0) -> dict[str, str]:
    return {node["node"]: node["kind"] for node in recording.graph(step)["nodes"]}


def twice(body: Callable[[Any], Any], root: Any, **settings: Any) -> tuple[Any, Any]:
    """What `body(watch)` returns without and with a recording, from the same seed."""
    torch.manual_seed(3)
    plain = body(lambda *_, **__: None)
    state = torch.get_rng_state()
    torch.manual_seed(3)
    with strict_run(root, **settings) as run:
        watched = body(run.watch)
    assert torch.equal(state, torch.get_rng_state()), "the random stream was changed"
    return plain, watched
