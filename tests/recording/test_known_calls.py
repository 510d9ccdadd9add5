"""Modules that are one operation are heard once; what is recorded of their next calls is the same."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

import endoscope
from endoscope.recording.hearing import StepRecorder
from endoscope.recording.known_calls import SETTINGS


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(7, 8)
        self.up, self.norm, self.act, self.down = nn.Linear(8, 6), nn.LayerNorm(6), nn.ReLU(), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.down(self.act(self.norm(self.up(self.embed(x)))))
        return out


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> list[nn.Module]:
    """The modules whose calls were not listened to, in order."""
    calls: list[nn.Module] = []
    call = StepRecorder._call_known

    def noted(self: StepRecorder, known: Any, *args: Any) -> Any:
        calls.append(known.module)
        return call(self, known, *args)

    monkeypatch.setattr(StepRecorder, "_call_known", noted)
    return calls


def recorded(folder: Path, model: nn.Module, steps: int, between: Callable[[int], None] | None = None) -> Any:
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.Run(folder, trial="t", when=1, strict=True) as run:
        run.watch(model, optimizer)
        for number in range(steps):
            model(torch.arange(6)).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            if between is not None:
                between(number)
    return endoscope.open(run.path)


def test_they_are_recorded_as_if_they_were_heard(
    tmp_path: Path, known: list[nn.Module], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    model = Layers()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    with_known = recorded(tmp_path / "known", model, 3)
    names = ["Embedding", "Linear", "LayerNorm", "ReLU", "Linear"]
    assert [type(module).__name__ for module in known] == names * 2
    model.load_state_dict(state)
    monkeypatch.setattr("endoscope.recording.hearing.SETTINGS", {})  # so that nothing is learned
    heard = recorded(tmp_path / "heard", model, 3)
    assert len(known) == 10
    for number in range(3):
        assert with_known.graph(number) == heard.graph(number) == with_known.graph(0)
    query = "select * from stats order by step, node, of"
    assert repr(with_known.sql(query).fetchall()) == repr(heard.sql(query).fetchall())  # NaN is not equal to itself


def exchange_eps(model: Layers) -> None:
    model.norm.eps = 10.0


def exchange_forward(model: Layers) -> None:
    model.norm.forward = lambda x: x * 2.0  # type: ignore[method-assign]


def hook(model: Layers) -> None:
    model.norm.register_forward_hook(lambda module, args, out: out + 1.0)


def set_in_place(model: Layers) -> None:
    model.act.inplace = True


def normalise(model: Layers) -> None:
    weight_norm(model.up)


@pytest.mark.parametrize(
    ("change", "name"),
    [(exchange_eps, "norm"), (exchange_forward, "norm"), (hook, "norm"), (set_in_place, "act"), (normalise, "up")],
)
def test_what_has_changed_is_heard_again(
    tmp_path: Path, known: list[nn.Module], change: Callable[[Layers], None], name: str
) -> None:
    model = Layers()
    changed = model.get_submodule(name)

    def between(number: int) -> None:
        if number == 1:
            assert changed in known
            known.clear()
            change(model)

    recording = recorded(tmp_path, model, 3, between)
    assert changed not in known
    assert recording.series(name, "count").values.tolist() == [36.0] * 3
    if change is exchange_forward:
        twice = recording.series(name, "max").values[2] / recording.series("up", "max").values[2]
        assert twice == pytest.approx(2.0)


class Meta(nn.Module):
    """Uses one layer twice, the second time with other weights."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.other = nn.Linear(3, 3), nn.Linear(3, 3)
        self.change: Callable[[Meta], Any] = lambda model: contextlib.nullcontext()

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.layer(x)
        with self.change(self):
            out: Tensor = self.layer(hidden)
        return out


@contextlib.contextmanager
def swapped(model: Meta) -> Iterator[None]:
    before = model.layer._parameters["weight"]
    model.layer._parameters["weight"] = model.other.weight
    yield
    model.layer._parameters["weight"] = before


@contextlib.contextmanager
def overwritten(model: Meta) -> Iterator[None]:
    with torch.no_grad():
        model.layer.weight.copy_(model.other.weight)
    yield


@contextlib.contextmanager
def overwritten_in_part(model: Meta) -> Iterator[None]:
    with torch.no_grad():
        model.layer.weight.detach()[0].copy_(model.other.weight[0])
    yield


@pytest.mark.parametrize("change", [swapped, overwritten, overwritten_in_part])
def test_other_weights_are_other_parents(tmp_path: Path, change: Callable[[Meta], Any]) -> None:
    model = Meta()
    model.change = change
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.Run(tmp_path, trial="t", when=1, strict=True) as run:
        run.watch(model, optimizer)
        for _ in range(3):
            with torch.autograd.graph.allow_mutation_on_saved_tensors():
                model(torch.randn(4, 3)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    recording = endoscope.open(run.path)
    for number in range(3):
        graph = recording.graph(number)
        names = [(node["node"], node["pass"]) for node in graph["nodes"]]
        parents = {names[a][0] for a, b, *_ in graph["edges"] if names[b] == ("layer", 2)}
        assert "other.weight" in parents, number


def test_modes_of_the_user_see_every_operation(tmp_path: Path, known: list[nn.Module]) -> None:
    seen: list[str] = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    with Mode():
        recorded(tmp_path, Layers(), 2)
    assert known == [] and seen.count("linear") == 4


def test_all_settings_are_attributes_of_their_classes() -> None:
    examples = {
        nn.Linear: nn.Linear(2, 2), nn.Embedding: nn.Embedding(2, 2), nn.LayerNorm: nn.LayerNorm(2),
        nn.GroupNorm: nn.GroupNorm(1, 2), nn.Conv1d: nn.Conv1d(1, 1, 1), nn.Conv2d: nn.Conv2d(1, 1, 1),
        nn.Conv3d: nn.Conv3d(1, 1, 1), nn.MaxPool2d: nn.MaxPool2d(2), nn.AvgPool2d: nn.AvgPool2d(2),
    }  # fmt: skip
    for kind, names in SETTINGS.items():
        module = examples.get(kind) or kind()
        assert all(hasattr(module, name) for name in names), kind


@pytest.mark.parametrize("place", ["torch.nn.functional.linear", "torch.nn.functional.relu", "torch.relu"])
def test_what_others_put_into_the_place_of_a_function_is_called(
    tmp_path: Path, known: list[nn.Module], monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    model, calls = nn.Sequential(nn.Embedding(7, 8), nn.Linear(8, 6), nn.ReLU()), []
    owner, _, name = place.rpartition(".")
    function = getattr(torch if owner == "torch" else nn.functional, name)

    def counting(*args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        return function(*args, **kwargs)

    recorded(tmp_path / "before", model, 3)
    assert len(known) == 6
    monkeypatch.setattr(place, counting)
    recorded(tmp_path / "since", model, 3)
    assert calls == [name] * 3
    monkeypatch.undo()

    def exchange(number: int) -> None:
        if number == 1:
            monkeypatch.setattr(place, counting)

    calls.clear()
    recorded(tmp_path / "between", model, 3, exchange)
    assert calls == [name]


def test_what_others_put_into_the_place_of_module_calls_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, call, called = Layers(), nn.Module._call_impl, []

    def counting(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        called.append(type(self).__name__)
        return call(self, *args, **kwargs)

    monkeypatch.setattr(nn.Module, "_call_impl", counting)
    recorded(tmp_path, model, 3)
    assert called == ["Layers", "Embedding", "Linear", "LayerNorm", "ReLU", "Linear"] * 3


class OwnSequence(nn.Sequential):
    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = super().forward(x)
        return out


class Contained(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.plain = nn.Embedding(7, 4), nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.ReLU()))
        self.own = OwnSequence(nn.Linear(4, 4))

    def forward(self, x: Tensor) -> Tensor:
        x = self.plain(self.embed(x))
        out: Tensor = self.own(x) + self.plain.forward(x)
        return out


def test_lines_inside_of_containers_are_those_that_called_them(tmp_path: Path) -> None:
    recording = recorded(tmp_path, Contained(), 3)
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    for number in range(3):
        found = {
            (node["node"], node["pass"]): lines[int(node["source"].rpartition(":")[2]) - 1].strip()
            for node in recording.graph(number)["nodes"]
            if node["source"]
        }
        in_plain = "x = self.plain(self.embed(x))"
        assert found["plain.0", 1] == found["plain.1", 1] == found["plain.1.0", 1] == in_plain
        assert found["own.0", 1] == "out: Tensor = super().forward(x)"
        assert found["plain.0", 2] == "out: Tensor = self.own(x) + self.plain.forward(x)"
