"""Edits that cannot work say what was seen, why not, and what to type instead."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope
from endoscope import edits
from endoscope.errors import BadArgument, BadEdit, CannotReplay, NothingMatches
from tests.models import Mlp


def texts(model: Any, x: Any, edit: Any) -> list[str]:
    """What a full run and a rerun say about an edit."""
    found = []
    for run in (lambda: endoscope.trace(model, x, edit=edit), lambda: endoscope.trace(model, x).rerun(edit=edit)):
        with pytest.raises(BadArgument) as caught:
            run()
        found.append(str(caught.value))
    return found


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({"relu_1": lambda t: t[:, :3]}, "changes the shape from (2, 7) to (2, 3). What comes after it was written"),
        ({"relu_1": lambda t: t.double()}, "changes the dtype from torch.float32 to torch.float64"),
        ({"relu_1": lambda t: None}, "returned None. A function used as an edit must return the changed tensor."),
        (
            {"relu_1": edits.zero(units=[7])},
            "units=[7] is out of range. Its shape is (2, 7), so dimension 1 has 7: 0 to 6",
        ),
        ({"relu_1": edits.zero(samples=2)}, "samples=2 is out of range. Its shape is (2, 7), so dimension 0 has 2"),
        (
            {"relu_1": edits.zero(positions=[0])},
            "has no positions, which are dimension 1 of tensors with three dimensions",
        ),
        ({"relu_1": edits.zero().at(dims={2: [0]})}, "there is no dimension 2 in the shape (2, 7)"),
        ({"relu_1": edits.zero().at(outputs=1)}, "there is no output 1, it returned 1 tensor."),
        ({"relu_1": edits.replace(torch.zeros(3))}, "a tensor of shape (3,) does not fit into its shape (2, 7)."),
        ({"relu_1": edits.replace(torch.zeros(3), units=[1, 2])}, "or the chosen part of it, (2, 2)."),
        ({"relu_1": edits.add("much")}, "use a number or a tensor, not 'much'"),
        ({"relu_1": edits.zero}, "edits.zero makes an edit. Call it: edits.zero(...)"),
        ({"relu_1": 0}, "is not an edit. Use one of endoscope.edits, such as edits.zero() or edits.replace(value)"),
        (
            [("relu_1", edits.zero())],
            "is no dict from selectors to changes, such as {'relu_2': endoscope.edits.zero()}",
        ),
        ({"rleu_1": edits.zero()}, "The pattern 'rleu_1' matches no operation of Mlp. Nearest: relu_1"),
        ({"type:gelu": edits.zero()}, "The pattern 'type:gelu' matches no operation of Mlp"),
        ({"first:2": edits.zero()}, "The pattern 'first:2' matches no operation"),
    ],
)
def test_what_is_said_about_a_wrong_edit(edit: Any, said: str) -> None:
    for text in texts(Mlp(), torch.rand(2, 5), edit):
        assert said in text


def test_a_selector_that_matches_nothing_is_an_error_of_its_own() -> None:
    with pytest.raises(NothingMatches):
        endoscope.trace(Mlp(), torch.rand(2, 5), edit={"type:gelu & in:first": edits.zero()})


@pytest.mark.parametrize("change", [edits.zero(), edits.mean(), edits.scale(2), edits.add(1), edits.noise(1.0)])
def test_indices_are_not_computed_with(change: Any) -> None:
    embedding, ids = nn.Embedding(5, 3), torch.tensor([[1, 2]])
    for text in texts(embedding, ids, {"input_1": change}):
        assert f"{change} cannot be applied to input_1_0: its whole numbers (torch.int64) are indices" in text
        assert "edits.replace(tensor)" in text


def test_indices_can_be_exchanged_for_others() -> None:
    embedding, ids = nn.Embedding(5, 3), torch.tensor([[1, 2]])
    trace = endoscope.trace(embedding, ids, edit={"input_1": edits.replace(torch.tensor([[4, 4]]))})
    assert torch.equal(trace.result, embedding(torch.tensor([[4, 4]])))
    for text in texts(embedding, ids, {"input_1": edits.replace(1.5)}):
        assert "would replace whole numbers (torch.int64) by numbers (torch.float32)" in text


def test_a_mask_is_not_computed_with() -> None:
    def model(x: Tensor) -> Tensor:
        return x.masked_fill(x > 0, 1.0)

    for text in texts(model, torch.rand(3), {"gt_1": edits.zero()}):
        assert "its truth values (torch.bool) are indices, counts or flags" in text
    flipped = endoscope.trace(model, torch.rand(3), edit={"gt_1": torch.logical_not})
    assert torch.equal(flipped.result, flipped.inputs[0].value)


def test_a_mean_of_one_value_is_refused() -> None:
    for text in texts(Mlp(), torch.rand(1, 5), {"relu_1": edits.mean()}):
        assert "would change nothing: its shape is (1, 7), so there is one value for each unit" in text


def test_what_can_be_wrong_with_a_patch() -> None:
    model, x = Mlp(), torch.rand(2, 5)
    other = endoscope.trace(model, torch.rand(3, 5))
    for text in texts(model, x, {"relu_1": edits.patch_from(other)}):
        assert "its shape is (2, 7), in the other trace (3, 7)" in text
    elsewhere = endoscope.trace(torch.sin, x)
    for text in texts(model, x, {"relu_1": edits.patch_from(elsewhere)}):
        assert "the other trace has no value for it. No operation of sin is called 'relu_1_2'" in text
    unkept = endoscope.trace(model, x, save="linear_1")
    for text in texts(model, x, {"relu_1": edits.patch_from(unkept)}):
        assert "was taken with save='linear_1'" in text
    with pytest.raises(BadEdit, match=r"needs a trace to take values from"):
        edits.patch_from(model)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: edits.noise(-1), "edits.noise(std=-1): use a number that is not negative"),
        (lambda: edits.noise(1, seed=0.5), "edits.noise(seed=0.5): a seed is a whole number"),
        (lambda: edits.zero(units="all"), "units='all': use a number, a list of numbers, a slice"),
        (lambda: edits.zero(samples=[True]), "samples=[True]: use a number"),
        (lambda: edits.zero().at(dims={"a": [1]}), "dimensions are whole numbers"),
        (lambda: edits.zero().at(outputs=-1), "outputs=-1: say which of the returned tensors"),
        (lambda: edits.apply(3), "edits.apply(3): a function of the tensor is needed"),
    ],
)
def test_a_wrong_edit_is_refused_when_it_is_made(make: Any, said: str) -> None:
    with pytest.raises(BadEdit) as caught:
        make()
    assert said in str(caught.value)


def test_what_cannot_be_edited() -> None:
    constant = torch.rand(3)

    def model(x: Tensor) -> Tensor:
        y = (x + constant).unsqueeze(0)
        y.t_()
        return y

    x = torch.rand(3)
    for text in texts(model, x, {"constant_1": edits.zero()}):
        assert "constant_1 cannot be edited: it existed before the traced code ran, and has no name" in text
    for text in texts(model, x, {"type:t": edits.zero()}):
        assert "t_ changes what the tensor is, not its numbers" in text
    unused = nn.Sequential(nn.Linear(2, 2))
    unused.extra = nn.Parameter(torch.zeros(1))
    for text in texts(unused, torch.rand(1, 2), {"extra": edits.zero()}):
        assert "extra cannot be edited: nothing reads it in this run" in text


def test_an_output_that_was_put_together_is_not_one_value() -> None:
    def model(x: Tensor) -> Tensor:
        y = torch.zeros(4)
        y[:2].copy_(x[:2])
        y[2:].copy_(x[2:])
        return y

    for text in texts(model, torch.rand(4), {"output_1": edits.zero()}):
        assert "several operations wrote into the memory of output_1_5" in text


def test_a_path_that_is_no_longer_taken() -> None:
    def model(x: Tensor) -> Tensor:
        y = x.exp()
        return y.sin() if y.sum() > 0 else y.cos()

    x = torch.rand(3)
    both = {"exp_1": edits.scale(-1), "sin_1": edits.zero()}
    with pytest.raises(BadEdit, match=r"'sin_1'.* was never applied: .* the edited run took another path"):
        endoscope.trace(model, x, edit=both)
    alone = endoscope.trace(model, x, edit={"exp_1": edits.scale(-1)})
    assert torch.equal(alone.result, (-x.exp()).cos())
    with pytest.raises(CannotReplay, match=r"that Python reads through __bool__\(\): False instead of True"):
        endoscope.trace(model, x).rerun(edit={"exp_1": edits.scale(-1)})


def test_inside_a_function_transform() -> None:
    def model(x: Tensor) -> Tensor:
        return torch.func.vmap(lambda row: row.sin().sum())(x)

    with pytest.raises(BadEdit, match="inside a function transform"):
        endoscope.trace(model, torch.rand(2, 3), edit={"sin_1": edits.zero()})
    with pytest.raises(CannotReplay, match="inside a function transform"):
        endoscope.trace(model, torch.rand(2, 3)).rerun(edit={"sin_1": edits.zero()})


def test_rerun_needs_the_values() -> None:
    trace = endoscope.trace(Mlp(), torch.rand(2, 5), save="relu_1")
    with pytest.raises(CannotReplay, match=r"save='relu_1'.*Trace with save='all', or run the model with the edit"):
        trace.rerun(edit={"relu_1": edits.zero()})


def test_rerun_needs_a_trace() -> None:
    with pytest.raises(BadArgument, match=r"rerun\(\) needs a trace"):
        endoscope.rerun(Mlp(), {})  # type: ignore[arg-type]
