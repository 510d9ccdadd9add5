"""One number of every tensor at every step, against the same in plain Python."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import endoscope
from endoscope.errors import BadArgument, LookupFailed
from endoscope.query.layers import OUTPUTS, PARAMETERS, Layers, State, layers, offered
from endoscope.query.recording import Recording


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Four steps of a small network; half of its units die, and at the last step something is NaN."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.Run(tmp_path_factory.mktemp("runs"), trial="t", when=1, strict=True) as run:
        run.watch(model, optimizer)
        for number in range(4):
            if number == 2:
                with torch.no_grad():
                    model[0].bias[:3] = -100.0
            inputs = torch.randn(5, 4)
            if number == 3:
                inputs[0, 0] = math.nan
            optimizer.zero_grad()
            loss = model(inputs).square().mean()
            loss.backward()
            optimizer.step()
    found = endoscope.open(run.path)
    assert isinstance(found, Recording)
    return found


def row(recording: Recording, found: Layers, node: str) -> tuple[list[float], list[int]]:
    keys = recording.tables.keys.by_number
    place = next(place for place, number in enumerate(found.keys.tolist()) if keys[number].node == node)
    return found.values[place].tolist(), found.states[place].tolist()


def test_a_statistic_is_as_it_was_recorded_and_what_is_no_number_says_so(recording: Recording) -> None:
    values, states = row(recording, layers(recording, "value", "std", OUTPUTS), "1")
    assert values[:3] == pytest.approx(recording.series("1", "std").values[:3].tolist(), rel=1e-6)
    assert states == [State.VALUE] * 3 + [State.NAN] and math.isnan(values[3])


def test_counts_are_shares_also_where_elements_are_no_numbers(recording: Recording) -> None:
    values, states = row(recording, layers(recording, "value", "nans", OUTPUTS), "2")
    count, nans = (recording.series("2", name).values for name in ("count", "nans"))
    assert values == pytest.approx((nans / count).tolist()) and values[3] > 0
    assert states == [State.VALUE] * 4


def test_outputs_and_parameters_are_two_halves(recording: Recording) -> None:
    both = layers(recording, "value", "std").keys.tolist()
    halves = [layers(recording, "value", "std", rows).keys.tolist() for rows in (OUTPUTS, PARAMETERS)]
    assert sorted(halves[0] + halves[1]) == both and all(halves)
    with pytest.raises(BadArgument, match="neither 'outputs' nor 'parameters'"):
        layers(recording, "value", "std", "all")


def test_the_spread_over_the_batch_is_that_of_the_units(recording: Recording) -> None:
    values, _ = row(recording, layers(recording, "value", "batch_spread", OUTPUTS), "1")
    for step in range(3):
        std = recording.units("1", step)["std"].reshape(-1).tolist()
        assert values[step] == pytest.approx(math.sqrt(sum(one**2 for one in std) / len(std)), rel=1e-5)


def test_a_huge_or_infinite_tensor_changes_nothing_in_the_ones_after_it(tmp_path: Path) -> None:
    class Times(nn.Module):
        def __init__(self, factor: float) -> None:
            super().__init__()
            self.factor = factor

        def forward(self, values: torch.Tensor) -> torch.Tensor:
            return values * self.factor

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.huge, self.infinite, self.small = Times(1e15), Times(math.inf), Times(1e-3)

        def forward(self, values: torch.Tensor) -> torch.Tensor:
            self.huge(values), self.infinite(values)
            return self.small(values)

    net = Net()
    with endoscope.Run(tmp_path, trial="t", when=1, strict=True) as run:
        run.watch(net)
        net(torch.randn(5, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()).sum().backward()
    found = endoscope.open(run.path)
    assert isinstance(found, Recording)
    std = found.units("small", 0)["std"].reshape(-1)
    values, states = row(found, layers(found, "value", "batch_spread", OUTPUTS), "small")
    assert states == [State.VALUE] and values[0] == pytest.approx(math.sqrt((std**2).mean()), rel=1e-5)


def test_dead_units_are_zero_for_every_sample(recording: Recording) -> None:
    values, _ = row(recording, layers(recording, "value", "dead_share", OUTPUTS), "1")
    for step in range(3):
        largest = recording.units("1", step)["abs_max"].reshape(-1).tolist()
        assert values[step] == pytest.approx(sum(one == 0 for one in largest) / len(largest))
    assert values[2] >= 0.5


def test_gradient_shares_add_up_to_one(recording: Recording) -> None:
    of = f"gradient:{recording.losses[0]}"
    for rows in (OUTPUTS, PARAMETERS):
        found = layers(recording, of, "gradient_share", rows)
        assert np.nansum(found.values, axis=0)[:3] == pytest.approx([1.0] * 3)


def test_updates_are_a_share_of_the_weight(recording: Recording) -> None:
    values, _ = row(recording, layers(recording, "update", "update_ratio", PARAMETERS), "0.weight")
    update = recording.series("0.weight", "norm", of="update").values
    weight = recording.series("0.weight", "norm", of="parameter").values
    assert values[:3] == pytest.approx((update / weight).tolist()[:3], rel=1e-5)


def test_what_is_made_of_something_else_is_refused_and_offered_where_it_makes_sense(recording: Recording) -> None:
    with pytest.raises(LookupFailed, match="'update_ratio' exists for update, but not for 'value'"):
        layers(recording, "value", "update_ratio")
    names = [one.name for one in offered(recording)]
    assert names == ["batch_spread", "dead_share", "gradient_share", "update_ratio"]  # no number is small here


def test_the_quantised_share_counts_what_is_below_the_smallest_full_number(tmp_path: Path) -> None:
    values = torch.tensor([0.0, 1.0, 2.0**-14, 2.0**-15, 2.0**-20, -(2.0**-16), 0.5, 0.25], dtype=torch.float16)
    with endoscope.Run(tmp_path, trial="t", when=1, strict=True) as run, run.step(0) as step:
        step.tag("half", values)
        step.tag("single", values.float())
    found = endoscope.open(run.path)
    assert isinstance(found, Recording) and "quantised_share" in [one.name for one in offered(found)]
    answer = layers(found, "value", "quantised_share")
    assert row(found, answer, "half")[0] == pytest.approx([3 / 7])
    assert row(found, answer, "single")[1] == [State.ABSENT]
