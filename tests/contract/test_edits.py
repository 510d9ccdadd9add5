"""`endoscope.trace(model, x, edit=...)`: every change, every part, every selector, against plain arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import endoscope
from endoscope import edits
from tests.contract.helpers import identical, labels, proves
from tests.models import Mlp


class Net(nn.Module):
    """Two hidden layers; the second activation works in place."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.second = nn.Linear(6, 6)
        self.act = nn.ReLU(inplace=True)
        self.last = nn.Linear(6, 2)

    def forward(self, x: Tensor, change: Callable[[Tensor], Tensor] = lambda t: t) -> Tensor:
        hidden = change(torch.tanh(self.first(x)))
        return self.last(self.act(self.second(hidden)))


@pytest.fixture
def net() -> Net:
    return Net()


@pytest.fixture
def x() -> Tensor:
    return torch.rand(3, 4)


def put(value: Any, where: Any) -> Callable[[Tensor], Tensor]:
    def change(t: Tensor) -> Tensor:
        t = t.clone()
        t[where] = value
        return t

    return change


COLUMNS = (slice(None), [1, 4])
CHANGES: dict[str, tuple[Any, Callable[[Tensor], Tensor]]] = {
    "zero": (edits.zero(), torch.zeros_like),
    "zero units": (edits.zero(units=[1, 4]), put(0.0, COLUMNS)),
    "zero one unit": (edits.zero(units=-1), put(0.0, (slice(None), 5))),
    "zero a range of units": (edits.zero(units=slice(2, 4)), put(0.0, (slice(None), slice(2, 4)))),
    "zero by mask": (
        edits.zero(units=torch.tensor([True, False, False, False, True, False])),
        put(0.0, (slice(None), [0, 4])),
    ),
    "zero samples": (edits.zero(samples=[0, 2]), put(0.0, [0, 2])),
    "zero units of samples": (edits.zero(units=[1], samples=[2]), put(0.0, (2, 1))),
    "zero by dimension": (edits.zero().at(dims={1: [0], 0: [1]}), put(0.0, (1, 0))),
    "mean": (edits.mean(), lambda t: t.mean(0, keepdim=True).expand(3, 6)),
    "mean of units": (edits.mean(units=[2]), lambda t: put(t[:, 2].mean(), (slice(None), 2))(t)),
    "scale": (edits.scale(2.5), lambda t: t * 2.5),
    "scale by a tensor": (edits.scale(torch.arange(6.0)), lambda t: t * torch.arange(6.0)),
    "scale units": (edits.scale(3, units=[1, 4]), lambda t: put(t[:, [1, 4]] * 3, COLUMNS)(t)),
    "add": (edits.add(0.5), lambda t: t + 0.5),
    "add a vector": (edits.add(torch.arange(6.0)), lambda t: t + torch.arange(6.0)),
    "add to units": (
        edits.add(torch.tensor([1.0, 2.0]), units=[1, 4]),
        lambda t: put(t[:, [1, 4]] + torch.tensor([1.0, 2.0]), COLUMNS)(t),
    ),
    "replace": (edits.replace(7.0), lambda t: torch.full_like(t, 7.0)),
    "replace by a tensor": (edits.replace(torch.arange(18).reshape(3, 6)), lambda t: torch.arange(18.0).reshape(3, 6)),
    "replace units": (edits.replace(torch.tensor([8.0, 9.0]), units=[4, 1]), put(torch.tensor([9.0, 8.0]), COLUMNS)),
    "function": (lambda t: t * t, lambda t: t * t),
    "function in place": (lambda t: t.add_(1), lambda t: t + 1),
    "function of a part": (edits.apply(torch.exp, units=[1, 4]), lambda t: put(t[:, [1, 4]].exp(), COLUMNS)(t)),
    "module": (nn.Softmax(dim=-1), lambda t: t.softmax(-1)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_what_the_same_arithmetic_gives(name: str, net: Net, x: Tensor) -> None:
    change, by_hand = CHANGES[name]
    trace = endoscope.trace(net, x, edit={"tanh_1": change})
    plain = endoscope.trace(net, x)
    assert identical(trace["tanh_1"].value, by_hand(plain["tanh_1"].value))
    assert identical(trace.result, net(x, by_hand))
    assert labels(trace.ops) == labels(plain.ops)
    assert labels(trace.edited) == ["tanh_1_2"]


@pytest.mark.parametrize("name", CHANGES)
def test_gradients_flow_through_a_change(name: str, net: Net, x: Tensor) -> None:
    change, by_hand = CHANGES[name]
    x.requires_grad_()
    endoscope.trace(net, x, edit={"tanh_1": change}).result.sum().backward()
    found = [p.grad for p in (x, *net.parameters())]
    for p in (x, *net.parameters()):
        p.grad = None
    net(x, by_hand).sum().backward()
    for gradient, expected in zip(found, (p.grad for p in (x, *net.parameters())), strict=True):
        assert identical(gradient, torch.zeros_like(gradient) if expected is None else expected)


def test_noise_has_its_spread_and_depends_on_seed_and_operation() -> None:
    x = torch.zeros(4, 1000)

    def noisy(change: Any) -> Tensor:
        return endoscope.trace(lambda x: torch.stack([x.sin(), x.sin()]), x, edit={"type:sin": change}).result

    first, second = noisy(edits.noise(0.5, 3)), noisy(edits.noise(0.5, seed=4))
    assert abs(float(first.std()) - 0.5) < 0.02 and abs(float(first.mean())) < 0.02
    assert identical(first, noisy(edits.noise(0.5, 3)))
    assert not identical(first, second)
    assert not identical(first[0], first[1])  # two operations do not get the same numbers


def test_positions_are_the_second_of_three_dimensions() -> None:
    layer, x = nn.Linear(4, 4), torch.rand(2, 5, 4)
    trace = endoscope.trace(lambda x: layer(x).sin(), x, edit={"linear_1": edits.zero(positions=[1, -1], units=[0])})
    expected = layer(x)
    expected[:, [1, 4], 0] = 0
    assert identical(trace["linear_1"].value, expected)
    assert identical(trace.result, expected.sin())


def test_units_of_pictures_are_channels() -> None:
    conv, x = nn.Conv2d(1, 3, 2), torch.rand(2, 1, 4, 4)
    trace = endoscope.trace(conv, x, edit={"conv2d_1": edits.mean(units=[2])})
    expected = conv(x)
    expected[:, 2] = expected[:, 2].mean()
    assert identical(trace.result, expected) or torch.allclose(trace.result, expected)
    assert identical(trace.result[:, :2], expected[:, :2])


def test_values_are_patched_from_another_trace() -> None:
    model = Mlp()
    clean, corrupt = torch.rand(2, 5), torch.rand(2, 5)
    source = endoscope.trace(model, clean)
    trace = endoscope.trace(model, corrupt, edit={"relu_1": edits.patch_from(source)})
    assert identical(trace.result, model(clean))
    part = endoscope.trace(model, corrupt, edit={"relu_1": edits.patch_from(source, samples=[1])})
    assert identical(part.result[0], endoscope.trace(model, corrupt).result[0])
    assert identical(part.result[1], source.result[1])
    crossed = endoscope.trace(model, corrupt, edit={"linear_1": edits.patch_from(source, "relu_1")})
    assert identical(crossed["linear_1"].value, source["relu_1"].value)


def test_of_several_tensors_some_can_be_chosen() -> None:
    def halves(x: Tensor) -> Tensor:
        left, right = x.sin().chunk(2)
        return left - right

    x = torch.rand(4)
    both = endoscope.trace(halves, x, edit={"chunk_1": edits.zero()})
    right = endoscope.trace(halves, x, edit={"chunk_1": edits.zero().at(outputs=1)})
    assert identical(both.result, torch.zeros(2))
    assert identical(right.result, x.sin()[:2])


def test_arithmetic_leaves_the_indices_beside_it_alone() -> None:
    trace = endoscope.trace(lambda x: x.max(0), torch.rand(3, 2), edit={"max_1": edits.zero()})
    values, indices = trace.result
    plain = endoscope.trace(lambda x: x.max(0), trace.inputs[0].value).result
    assert identical(values, torch.zeros(2)) and identical(indices, plain.indices)
    assert type(trace.result) is type(plain)


# ---- selectors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selector", "edited"),
    [
        ("tanh_1", ["tanh_1_2"]),
        ("tanh_1_2", ["tanh_1_2"]),
        ("second", ["linear_2_3"]),
        ("act", ["relu_1_4"]),
        ("type:linear", ["linear_1_1", "linear_2_3", "linear_3_5"]),
        ("type:linear & !child_of(type:input)", ["linear_2_3", "linear_3_5"]),
        ("type:relu & child_of(type:linear)", ["relu_1_4"]),
        ("linear_?", ["linear_1_1", "linear_2_3", "linear_3_5"]),
        (2, ["tanh_1_2"]),
        (-1, ["linear_3_5"]),
        ("output_1", ["linear_3_5"]),
        ("kind:output", ["linear_3_5"]),
        ("first.weight", ["first.weight"]),
        ("x", ["input_1_0"]),
    ],
)
def test_selectors_are_those_of_a_trace(selector: Any, edited: list[str], net: Net, x: Tensor) -> None:
    selector = "input_1" if selector == "x" else selector
    trace = endoscope.trace(net, x, edit={selector: edits.scale(2)})
    assert labels(trace.edited) == edited
    plain = endoscope.trace(net, x)
    first = trace.edited[0].label
    assert identical(trace[first].value, 2 * plain[first].value)


def test_an_operation_of_another_trace_is_a_selector(net: Net, x: Tensor) -> None:
    trace = endoscope.trace(net, x)
    assert labels(endoscope.trace(net, x, edit={trace["tanh_1"]: edits.zero()}).edited) == ["tanh_1_2"]


def test_one_pass_of_a_loop_can_be_chosen() -> None:
    layer = nn.Linear(3, 3)

    def loop(x: Tensor) -> Tensor:
        for _ in range(4):
            x = layer(x)
        return x

    x = torch.rand(2, 3)
    trace = endoscope.trace(loop, x, edit={"linear_1:3": edits.scale(2)})
    assert identical(trace.result, layer(layer(layer(layer(x))) * 2))
    every = endoscope.trace(loop, x, edit={"linear_1": edits.scale(2)})
    assert len(every.edited) == 4


def test_a_module_that_returns_several_tensors_means_the_first() -> None:
    class Two(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            weights = x.softmax(-1)
            return weights @ x, weights

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = Two()

        def forward(self, x: Tensor) -> Tensor:
            out, weights = self.attention(x)
            return out + weights

    x = torch.rand(3, 3)
    for selector in ("attention", "attent*"):
        assert labels(endoscope.trace(Outer(), x, edit={selector: edits.zero()}).edited) == ["matmul_1_2"]


def test_several_edits_of_one_operation_follow_each_other(net: Net, x: Tensor) -> None:
    trace = endoscope.trace(net, x, edit={"tanh_1": edits.add(1), "type:tanh": edits.scale(2)})
    assert identical(trace["tanh_1"].value, (endoscope.trace(net, x)["tanh_1"].value + 1) * 2)
    assert [str(edit) for edit in trace["tanh_1"].edited] == ["edits.add(1)", "edits.scale(2)"]


def test_an_edited_operation_says_so(net: Net, x: Tensor) -> None:
    trace = endoscope.trace(net, x, edit={"tanh_1": edits.noise(0.1, 3, units=[2])})
    assert "Edited: edits.noise(0.1, seed=3, units=[2])" in str(trace["tanh_1"])
    assert "Edited: tanh_1_2 by edits.noise(0.1, seed=3, units=[2])" in str(trace)
    assert trace["relu_1"].edited == () and "Edited" not in str(trace["relu_1"])
    assert not endoscope.trace(net, x).edited


# ---- what must not change ------------------------------------------------------------------------


def test_parameters_inputs_and_buffers_are_edited_as_they_are_read() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).eval()
    x = torch.rand(4, 3)
    before = [t.clone() for t in (x, *model.state_dict().values())]
    edit = {"input_1": edits.add(1), "0.weight": edits.scale(2), "1.running_mean": edits.replace(0.5)}
    trace = endoscope.trace(model, x, edit=edit)
    hidden = F.linear(x + 1, model[0].weight * 2, model[0].bias)
    mean = torch.full((3,), 0.5)
    assert identical(
        trace.result, F.batch_norm(hidden, mean, model[1].running_var, model[1].weight, model[1].bias, False, 0.1, 1e-5)
    )
    assert all(map(identical, before, (x, *model.state_dict().values())))
    assert identical(trace["0.weight"].value, model[0].weight * 2)
    trace.result.sum().backward()
    assert model[0].weight.grad is not None and bool(model[0].weight.grad.any())


def test_an_input_that_is_returned_is_returned_edited() -> None:
    def both(x: Tensor) -> dict[str, list[Tensor]]:
        return {"all": [x, x + 1]}

    x = torch.rand(2)
    trace = endoscope.trace(both, x, edit={"input_1": edits.zero()})
    assert identical(trace.result["all"][0], torch.zeros(2))
    assert identical(trace.result["all"][1], torch.ones(2))
    assert identical(trace.outputs[0].value, torch.zeros(2))


def test_random_numbers_are_those_of_the_plain_run() -> None:
    def model(x: Tensor) -> Tensor:
        return F.dropout(x.sin(), 0.5) + torch.rand(3)

    x = torch.rand(2, 3)
    torch.manual_seed(3)
    plain, after = endoscope.trace(model, x), torch.get_rng_state()
    for change in (edits.scale(2), edits.noise(0.1), lambda t: t + torch.rand_like(t)):
        torch.manual_seed(3)
        trace = endoscope.trace(model, x, edit={"sin_1": change})
        assert torch.equal(torch.get_rng_state(), after)
        assert identical(trace["rand_1"].value, plain["rand_1"].value)
        assert torch.equal(trace["dropout_1"].value == 0, plain["dropout_1"].value == 0)


def test_the_trial_run_is_undone() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(3)
            self.calls = 0
            self.seen: list[int] = []

        def forward(self, x: Tensor, cache: list[Tensor]) -> Tensor:
            self.calls += 1
            self.seen.append(self.calls)
            cache.append(x)
            return self.norm(x) * len(cache)

    model, x, cache = Counting(), torch.rand(4, 3), [torch.zeros(1)]
    endoscope.trace(model, (x, cache), edit={"mul_1": edits.scale(1)})
    assert model.calls == 1 and model.seen == [1] and len(cache) == 2
    assert int(model.norm.num_batches_tracked) == 1
    twin = nn.BatchNorm1d(3)
    twin(x)
    assert identical(model.norm.running_mean, twin.running_mean)


def test_parameters_that_the_model_writes_itself_are_put_back_after_the_trial_run() -> None:
    class Moving(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.codes = nn.Parameter(torch.ones(3))
            self.layer = nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            self.codes.data.mul_(2)
            with torch.no_grad():
                self.layer.weight.add_(1)
            return self.layer(x) * self.codes

    model, x = Moving(), torch.rand(2, 3)
    before = model.layer.weight.detach().clone()
    endoscope.trace(model, x, edit={"linear_1": edits.scale(2)})
    assert identical(model.codes, torch.full((3,), 2.0))
    assert identical(model.layer.weight, before + 1)


@pytest.mark.parametrize("inference", [False, True])
def test_without_gradients(inference: bool, net: Net, x: Tensor) -> None:
    expected = net(x, lambda t: t * 2)
    with torch.inference_mode() if inference else torch.no_grad():
        edited = endoscope.trace(net, x, edit={"tanh_1": edits.scale(2)})
        plain = endoscope.trace(net, x)
    assert identical(edited.result, expected)
    assert identical(plain.rerun(edit={"tanh_1": edits.scale(2)}).result, expected)


def test_an_outer_trace_hears_the_run_once() -> None:
    model, x = Mlp(), torch.rand(2, 5)
    with endoscope.tracing(model) as outer:
        endoscope.trace(model, x, edit={"relu_1": edits.scale(2)})
    assert [op.type for op in outer.ops].count("linear") == 2


def test_a_module_inside_a_function_adds_nothing_to_the_trace(net: Net, x: Tensor) -> None:
    coder = nn.Sequential(nn.Linear(6, 3), nn.ReLU(), nn.Linear(3, 6))
    trace = endoscope.trace(net, x, edit={"tanh_1": coder})
    assert labels(trace.ops) == labels(endoscope.trace(net, x).ops)
    assert len(trace.modules) == len(endoscope.trace(net, x).modules)
    assert not trace.warnings
    assert identical(trace["tanh_1"].value, coder(torch.tanh(net.first(x))))


def test_an_edited_trace_can_be_proved(net: Net, x: Tensor) -> None:
    edit = {
        "tanh_1": edits.noise(0.5),
        "act": edits.zero(units=[1]),
        "last.weight": edits.scale(2),
        "input_1": edits.add(1),
    }
    trace = endoscope.trace(net, x, edit=edit)
    report = trace.validate()
    assert report, str(report)
    assert report.checked >= 5 and not report.unchecked
    proves(net, x)


def test_gradients_are_those_of_the_edited_value(net: Net, x: Tensor) -> None:
    trace = endoscope.trace(net, x, gradients=True, edit={"act": edits.scale(3)})
    trace.result.sum().backward()
    expected = torch.ones(3, 2) @ net.last.weight
    assert identical(trace["act"].gradient, expected)
    assert identical(trace["second.bias"].gradient, (3 * expected * (trace["act"].value > 0)).sum(0))


def test_save_chooses_among_edited_values(net: Net, x: Tensor) -> None:
    trace = endoscope.trace(net, x, save="tanh_1", edit={"tanh_1": edits.replace(2.0)})
    assert identical(trace["tanh_1"].value, torch.full((3, 6), 2.0))
    assert len(trace.kept) == 1


# ---- in place, views, tensors that are handed back -----------------------------------------------


def test_an_in_place_operation_is_edited_for_all_who_share_its_memory() -> None:
    def model(x: Tensor) -> Tensor:
        y = x.exp()
        view = y[0]
        y.mul_(2)
        return torch.cat([view, y.flatten()])

    x = torch.rand(2, 3)
    trace = endoscope.trace(model, x, edit={"mul_1": edits.add(1)})
    expected = x.exp() * 2 + 1
    assert identical(trace.result, torch.cat([expected[0], expected.flatten()]))


def test_assignments_are_edited_too() -> None:
    def model(x: Tensor) -> Tensor:
        y = x.exp()
        y[:, 0] = 5.0
        return y * 1

    x = torch.rand(2, 3)
    trace = endoscope.trace(model, x, edit={"setitem_1": edits.scale(2)})
    expected = x.exp()
    expected[:, 0] = 5.0
    assert identical(trace.result, expected * 2)


def test_an_edited_view_has_memory_of_its_own() -> None:
    def model(x: Tensor) -> Tensor:
        y = x.exp()
        row = y[0]
        return row.sum() + y.sum()

    x = torch.rand(2, 3)
    trace = endoscope.trace(model, x, edit={"getitem_1": edits.zero()})
    assert identical(trace.result, torch.zeros(()) + x.exp().sum())


def test_whoever_reads_a_tensor_that_was_handed_back_sees_the_edit() -> None:
    """The graph says that both operands of `+` come from the dropout, which returned its argument itself."""

    def model(x: Tensor) -> Tensor:
        y = x.exp()
        return F.dropout(y, 0.5, training=False) + y

    x = torch.rand(3)
    trace = endoscope.trace(model, x, edit={"dropout_1": edits.scale(2)})
    assert labels(trace["add_1"].parents) == ["dropout_1_2"]
    assert identical(trace.result, x.exp() * 4)


def test_the_layout_that_later_code_relies_on_is_kept() -> None:
    def model(x: Tensor) -> Tensor:
        return x.transpose(0, 1).exp().transpose(0, 1).view(-1)  # a view only if `exp` keeps the strides

    x = torch.rand(2, 3)
    trace = endoscope.trace(model, x, edit={"exp_1": lambda t: (t + 1).contiguous().clone()})
    assert identical(trace.result, (x.exp() + 1).view(-1))
