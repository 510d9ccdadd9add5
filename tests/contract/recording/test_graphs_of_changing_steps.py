"""Steps that differ in what they call have their graph, and it is that of a twin which is traced alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope
from tests.contract.recording.helpers import complaints, edges, numbers, recorded, sgd

STEPS = 400
Route = tuple[int, ...]


class Experts(nn.Module):
    """Some of the experts are asked; the gate says how much each of them counts."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.gate, self.leave = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(4))

    def forward(self, x: Tensor, route: Route) -> Tensor:
        hidden = self.enter(x)
        shares = torch.softmax(self.gate(hidden), 1)
        out = torch.zeros_like(hidden)
        for number in route:
            out = out + shares[:, number : number + 1] * self.experts[number](hidden)
        return self.leave(out)


class Tokens(nn.Module):
    """Each sample is sent to one expert; who gets none is not called. Results are written back in place."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(4, 4), nn.Linear(4, 2)
        self.experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(4))

    def forward(self, x: Tensor, route: Route) -> Tensor:
        hidden = self.enter(x)
        out = torch.zeros_like(hidden)
        where = torch.tensor([route[number % len(route)] for number in range(len(x))])
        for number in where.unique().tolist():
            rows = (where == number).nonzero().flatten()
            out.index_add_(0, rows, self.experts[number](hidden[rows]))
        return self.leave(out)


class Recurrence(nn.Module):
    """As many cells as the sequence is long."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.norm, self.read = nn.Linear(8, 4), nn.LayerNorm(4), nn.Linear(4, 2)

    def forward(self, x: Tensor, route: Route) -> Tensor:
        hidden = torch.zeros(len(x), 4)
        for _ in range(route[0]):
            hidden = self.norm(torch.tanh(self.cell(torch.cat([x, hidden], 1))))
        return self.read(hidden)


class Depth(nn.Module):
    """Blocks are left out by chance; what remains of them is the residual."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(4, 4), nn.Linear(4, 2)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)) for _ in range(4))

    def forward(self, x: Tensor, route: Route) -> Tensor:
        hidden = self.enter(x)
        for number in route:
            hidden = hidden + self.blocks[number](hidden)
        return self.leave(hidden)


class Block(nn.Module):
    """Returns what it got, if it is left out."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.act = nn.Linear(4, 4), nn.ReLU()

    def forward(self, x: Tensor, is_used: bool) -> Tensor:
        return x + self.act(self.inner(x)) if is_used else x


class Blocks(nn.Module):
    """The other way to write stochastic depth: each block is called, and may do nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(4, 4), nn.Linear(4, 2)
        self.blocks = nn.ModuleList(Block() for _ in range(4))

    def forward(self, x: Tensor, route: Route) -> Tensor:
        hidden = self.enter(x)
        for number, block in enumerate(self.blocks):
            hidden = block(hidden, number in route)
        return self.leave(hidden)


class Policy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.act, self.head = nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2)

    def forward(self, state: Tensor) -> Tensor:
        return self.head(self.act(self.body(state)))


def one_pass(model: nn.Module, route: Route) -> Tensor:
    return model(torch.randn(5, 4), route).square().mean()


def episode(model: nn.Module, route: Route) -> Tensor:
    logs = [torch.log_softmax(model(torch.randn(1, 4)), 1)[0, 0] for _ in range(route[0])]
    return -torch.stack(logs).sum()


def chosen(dice: random.Random) -> Route:
    return tuple(number for number in range(4) if dice.random() < 0.5) or (dice.randrange(4),)


def left_out(dice: random.Random) -> Route:
    return tuple(number for number in range(4) if dice.random() < 0.8)


def length(dice: random.Random) -> Route:
    return (dice.randint(1, 12),)


KINDS: dict[str, tuple[Callable[[], nn.Module], Callable[[random.Random], Route], Callable[[Any, Route], Tensor]]] = {
    "mixture of experts": (Experts, chosen, one_pass),
    "tokens sent to experts": (Tokens, chosen, one_pass),
    "recurrence of random length": (Recurrence, length, one_pass),
    "stochastic depth": (Depth, left_out, one_pass),
    "blocks that may do nothing": (Blocks, left_out, one_pass),
    "episodes of random length": (Policy, length, episode),
}


def routes_of(kind: str) -> Iterator[Route]:
    dice = random.Random(13)
    for _ in range(STEPS):
        yield KINDS[kind][1](dice)


def record(root: Any, kind: str, routes: list[Route]) -> Any:
    make, _, loss_of = KINDS[kind]
    torch.manual_seed(5)
    model = make()
    optimizer = sgd(model, lr=0.01)
    with complaints(), endoscope.Run(root, trial="trial", when=1, keep=0) as run:
        run.watch(model, optimizer)
        for route in routes:
            optimizer.zero_grad()
            loss_of(model, route).backward()
            optimizer.step()
    return recorded(run)


def graph_of(recording: Any, step: int) -> set[tuple[str, str]] | None:
    try:
        return edges(recording, step) or None
    except (endoscope.errors.EndoscopeError, KeyError, TypeError):
        return None


@pytest.fixture(scope="module", params=list(KINDS))
def trained(request: Any, tmp_path_factory: Any) -> tuple[str, list[Route], Any]:
    torch.set_num_threads(1)
    routes = list(routes_of(request.param))
    return request.param, routes, record(tmp_path_factory.mktemp("trained"), request.param, routes)


def test_almost_every_step_has_its_graph(trained: Any) -> None:
    _, _, recording = trained
    assert numbers(recording) == [*range(STEPS)]
    missing = [number for number in range(STEPS) if graph_of(recording, number) is None]
    assert len(missing) <= STEPS // 100, missing
    assert {gap.step for gap in recording.gaps if gap.step >= 0} >= set(missing), "a step without a graph is a gap"


def test_graphs_are_those_of_a_twin_that_is_traced(trained: Any, tmp_path: Any) -> None:
    """The first captured step of a run is always traced, so each route is the first step of a run of its own."""
    kind, routes, recording = trained
    twins = {route: graph_of(record(tmp_path, kind, [route]), 0) for route in sorted(set(routes))}
    assert None not in twins.values()
    wrong = []
    for number, route in enumerate(routes):
        found, expected = graph_of(recording, number), twins[route]
        if found is not None and found != expected:
            wrong.append((number, route, sorted(found - expected)[:4], sorted(expected - found)[:4]))
    assert wrong == [], (len(wrong), wrong[:5])


def test_routes_of_one_trained_net_differ(trained: Any) -> None:
    kind, routes, recording = trained
    assert len(set(routes)) >= 10
    known = {route: graph_of(recording, number) for number, route in enumerate(routes)}
    different = {frozenset(found) for found in known.values() if found is not None}
    assert len(different) >= 10, kind


def test_a_step_that_is_like_none_before_is_never_given_a_wrong_graph(tmp_path: Any) -> None:
    """The same modules in another order of calls."""

    class Order(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: Tensor, swap: bool) -> Tensor:
            return self.one(self.two(x)) if swap else self.two(self.one(x))

    model = Order()
    optimizer = sgd(model)
    swaps = [number % 7 == 5 for number in range(60)]
    with complaints(), endoscope.Run(tmp_path, trial="trial", when=1) as run:
        run.watch(model, optimizer)
        for swap in swaps:
            optimizer.zero_grad()
            model(torch.randn(3, 4), swap).square().mean().backward()
            optimizer.step()
    recording = recorded(run)
    known = 0
    for number, swap in enumerate(swaps):
        found = graph_of(recording, number)
        if found is not None:
            known += 1
            assert (("two", "one") if swap else ("one", "two")) in found, number
            assert (("one", "two") if swap else ("two", "one")) not in found, number
    assert known >= 58


def test_a_connection_that_no_module_makes_is_true_or_a_gap(tmp_path: Any) -> None:
    """The order of calls is the same with and without it, so that alone does not tell which graph is right."""

    class Skip(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two, self.three = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: Tensor, skip: bool) -> Tensor:
            first = self.one(x)
            second = self.two(first)
            return self.three(second + first if skip else second)

    model = Skip()
    optimizer = sgd(model)
    dice = random.Random(1)
    skips = [dice.random() < 0.5 for _ in range(60)]
    with complaints(), endoscope.Run(tmp_path, trial="trial", when=1) as run:
        run.watch(model, optimizer)
        for skip in skips:
            optimizer.zero_grad()
            model(torch.randn(3, 4), skip).square().mean().backward()
            optimizer.step()
    recording = recorded(run)
    graphs = [graph_of(recording, number) for number in range(60)]
    wrong = [n for n, (skip, g) in enumerate(zip(skips, graphs, strict=True)) if g and (("one", "three") in g) != skip]
    assert wrong == []
