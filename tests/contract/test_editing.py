"""`with endoscope.editing(model, {...}):` in training loops, next to traces, and afterwards."""

from __future__ import annotations

import copy
import threading
import warnings
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import endoscope
from endoscope import edits
from endoscope.errors import BadArgument, BadEdit, NothingMatches
from tests.contract.helpers import identical, labels


class Net(nn.Module):
    """Normalisation, dropout, an in-place activation; `factor` stands for the edit."""

    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.norm = nn.BatchNorm1d(6)
        self.act = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(0.5)
        self.last = nn.Linear(6, 2)
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.act(self.norm(self.first(x)))
        if self.factor != 1:
            hidden = hidden * self.factor
        return self.last(self.drop(hidden))


def train(model: nn.Module, steps: int = 5) -> list[Tensor]:
    torch.manual_seed(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(torch.rand(8, 4)), torch.arange(8) % 2)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


def test_training_with_an_edit_is_training_of_the_edited_model() -> None:
    model, twin = Net(), Net(factor=3.0)
    twin.load_state_dict(model.state_dict())
    with endoscope.editing(model, {"act": edits.scale(3.0)}):
        losses = train(model)
    assert all(map(identical, losses, train(twin)))
    assert all(map(identical, model.state_dict().values(), twin.state_dict().values()))


def test_afterwards_nothing_is_left() -> None:
    model, x = Net().eval(), torch.rand(2, 4)
    plain, call, before = model(x), nn.Module._call_impl, copy.copy(model.__dict__)
    with endoscope.editing(model, {"act": edits.zero()}):
        assert not identical(model(x), plain)
    with pytest.raises(ZeroDivisionError), endoscope.editing(model, {"act": edits.zero()}):
        model(x)
        raise ZeroDivisionError
    assert nn.Module._call_impl is call
    assert model.__dict__.keys() == before.keys() and not model._forward_hooks and not model._forward_pre_hooks
    assert identical(model(x), plain)


def test_a_model_that_raises_leaves_nothing_behind() -> None:
    class Failing(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            y = x.sin()
            if float(y.sum()) == 0:
                raise KeyError("zero")
            return y

    model, call = Failing(), nn.Module._call_impl
    with endoscope.editing(model, {"sin_1": edits.scale(2)}):
        with pytest.raises(KeyError, match="zero"):
            model(torch.zeros(2))
        assert identical(model(torch.ones(2)), torch.ones(2).sin() * 2)
    assert nn.Module._call_impl is call


def test_the_model_runs_as_often_as_it_is_called_but_for_one_trial() -> None:
    class Counting(nn.Module):
        runs: list[int] = []  # noqa: RUF012  outside of what is put back

        def forward(self, x: Tensor) -> Tensor:
            self.runs.append(1)
            return x.sin()

    model = Counting()
    with endoscope.editing(model, {"sin_1": edits.scale(2)}):
        for size in (2, 3, 2):
            model(torch.rand(size))
    assert len(Counting.runs) == 4


def test_random_numbers_and_buffers_are_those_of_the_plain_loop() -> None:
    def states(edit: dict[str, Any]) -> list[Tensor]:
        torch.manual_seed(0)
        model = Net()
        with endoscope.editing(model, edit):
            train(model, 2)
        return [torch.get_rng_state(), model.norm.num_batches_tracked]

    assert all(map(identical, states({}), states({"last": edits.noise(0.1)})))


def test_noise_is_new_in_every_forward_pass_and_repeatable() -> None:
    model, x = nn.Linear(3, 3), torch.rand(2, 3)

    def outputs() -> list[Tensor]:
        with endoscope.editing(model, {"linear_1": edits.noise(1.0, 5)}):
            return [model(x), model(x)]

    first, second = outputs()
    assert not identical(first, second)
    assert all(map(identical, (first, second), outputs()))
    assert identical(first, endoscope.trace(model, x, edit={"linear_1": edits.noise(1.0, 5)}).result)


def test_blocks_nest_and_the_outer_edit_comes_first() -> None:
    model, x = nn.Linear(3, 3), torch.rand(2, 3)
    with endoscope.editing(model, {"linear_1": edits.add(1)}):
        with endoscope.editing(model, {"linear_1": edits.scale(2)}):
            inner = model(x)
        outer = model(x)
    assert identical(inner, (F.linear(x, model.weight, model.bias) + 1) * 2)
    assert identical(outer, F.linear(x, model.weight, model.bias) + 1)


def test_a_part_of_a_model_can_be_edited_by_its_own_names() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 3), nn.ReLU()))
    x = torch.rand(2, 3)
    with endoscope.editing(model, {"0": edits.scale(2)}), endoscope.editing(model[1], {"relu_1": edits.add(1)}):
        out = model(x)
    assert identical(out, model[1](model[0](x) * 2) + 1)


def test_a_trace_in_the_block_shows_the_edited_run() -> None:
    model, x = Net().eval(), torch.rand(2, 4)
    with endoscope.editing(model, {"act": edits.scale(2)}):
        trace = endoscope.trace(model, x)
        with endoscope.tracing(model) as several:
            model(x)
            model(x)
        report = endoscope.validate(model, x)
        out = model(x)
    reference = endoscope.trace(model, x, edit={"act": edits.scale(2)})
    assert labels(trace.ops) == labels(reference.ops) and labels(trace.edited) == ["relu_1_3"]
    assert identical(trace.result, reference.result) and identical(out, reference.result)
    assert len(several.edited) == 2
    assert report, str(report)
    assert trace.validate()


def test_longer_sequences_than_the_first_are_edited_to_their_end() -> None:
    class Loop(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            h = x[0]
            for t in range(1, len(x)):
                h = torch.tanh(self.cell(h) + x[t])
            return h

    model = Loop()
    for selector in ("type:tanh", "tanh_1", "in:cell & type:linear", "cell"):
        with endoscope.editing(model, {selector: edits.zero()}):
            model(torch.rand(2, 3))
            with endoscope.tracing(model) as trace:
                model(torch.rand(6, 3))
        assert len(trace.edited) == 5, selector
    with endoscope.editing(model, {"cell:1": edits.zero()}):
        model(torch.rand(2, 3))
        with endoscope.tracing(model) as trace:
            model(torch.rand(6, 3))
    assert len(trace.edited) == 1


def test_code_that_the_first_pass_did_not_reach_is_edited_by_type_and_place() -> None:
    class Experts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.experts = nn.ModuleList(nn.Sequential(nn.Linear(2, 2), nn.Sigmoid()) for _ in range(2))

        def forward(self, x: Tensor) -> Tensor:
            return self.experts[int(x.sum() > 0)](x)

    model, x = Experts(), torch.ones(1, 2)
    for selector in ("type:sigmoid", "in:experts.* & type:sigmoid"):
        with endoscope.editing(model, {selector: edits.zero()}):
            assert identical(model(x), torch.zeros(1, 2))
            assert identical(model(-x), torch.zeros(1, 2))
    with endoscope.editing(model, {"experts.1": edits.zero()}):
        model(x)
        with pytest.warns(UserWarning, match=r"'experts.1' was not reached in this forward pass"):
            model(-x)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # it is said once
            model(-x)


def test_training_and_evaluation_are_resolved_by_themselves() -> None:
    class Modes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = nn.Identity()

        def forward(self, x: Tensor) -> Tensor:
            return self.part(x.sin()) if self.training else self.part(x.cos())

    model, x = Modes(), torch.rand(3)
    with endoscope.editing(model, {"part": edits.zero()}):
        assert identical(model(x), torch.zeros(3))
        assert identical(model.eval()(x), torch.zeros(3))


def test_other_threads_are_not_edited() -> None:
    model, x, found = nn.Linear(2, 2), torch.rand(1, 2), []
    plain = model(x)
    with endoscope.editing(model, {"linear_1": edits.zero()}):
        thread = threading.Thread(target=lambda: found.append(model(x)))
        thread.start()
        thread.join()
        assert identical(model(x), torch.zeros(1, 2))
    assert identical(found[0], plain)


def test_compiled_models_run_eagerly_in_the_block() -> None:
    model, x = nn.Sequential(nn.Linear(2, 2), nn.ReLU()), torch.rand(3, 2)
    compiled = torch.compile(model, backend="eager")
    plain = compiled(x)
    with endoscope.editing(compiled, {"1": edits.add(1)}):
        assert identical(compiled(x), plain + 1)
    assert identical(compiled(x), plain)
    model.compile(backend="eager")
    model(x)
    with endoscope.editing(model, {"1": edits.add(1)}):
        assert identical(model(x), plain + 1)
    assert model._compiled_call_impl is not None and identical(model(x), plain)


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointed_code_is_refused(reentrant: bool) -> None:
    class Saving(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, x: Tensor) -> Tensor:
            return checkpoint(self.inner, x, use_reentrant=reentrant)

    model = Saving()
    with endoscope.editing(model, {"inner": edits.zero()}), pytest.raises(BadEdit, match=r"torch\.utils\.checkpoint"):
        model(torch.rand(1, 2, requires_grad=True))


def test_learned_changes_get_a_gradient() -> None:
    model, x, direction = nn.Linear(3, 3), torch.rand(2, 3), torch.zeros(3, requires_grad=True)
    with endoscope.editing(model, {"linear_1": edits.add(direction)}):
        model(x).sum().backward()
    assert identical(direction.grad, torch.full((3,), 2.0))


def test_a_function_is_no_model() -> None:
    with pytest.raises(BadArgument, match=r"editing\(\) needs a torch.nn.Module"), endoscope.editing(torch.sin, {}):
        pass


def test_a_wrong_selector_is_said_at_the_first_call() -> None:
    model = nn.Linear(2, 2)
    with endoscope.editing(model, {"relu_1": edits.zero()}), pytest.raises(NothingMatches, match="relu_1"):
        model(torch.rand(1, 2))


def test_generation_with_a_cache() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_layer=2, n_embd=16, n_head=2, vocab_size=31, n_positions=32)
    model, ids = transformers.GPT2LMHeadModel(config).eval(), torch.tensor([[3, 5, 8]])
    options = {"max_new_tokens": 5, "do_sample": False, "pad_token_id": 0}
    plain = model.generate(ids, **options)
    with endoscope.editing(model, {"transformer.h.1": edits.scale(1.0)}):
        same = model.generate(ids, **options)
    with endoscope.editing(model, {"transformer.h.1": edits.zero()}):
        zeroed = model.generate(ids, **options)
    assert torch.equal(plain, same)
    assert len(set(zeroed[0, 3:].tolist())) == 1  # with nothing left but biases, every step says the same
