"""What repeats, as the user reads it: labels, passes, `trace.loops`, `trace.reused`, and what is printed.

`UPDATE_GOLDEN=1 pytest tests/contract/test_loops.py` writes the texts in `tests/golden/loops` anew; read what changed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope
from tests.analysis.recurrence_cases import CASES
from tests.contract.helpers import identical, labels
from tests.models import DemoNetwork, RecurrentNetwork

GOLDEN = Path(__file__).parents[1] / "golden" / "loops"
MOST_LINES = 40
RECURRENT = """poster_recurrent figure_3a figure_3b relu_again constant_of_the_step nested three_levels
    while_of_a_tensor shrinking pooling_pyramid one_loop_and_another branch_in_a_loop factor_of_the_step
    loops_around_a_layer
    one_more_behind_the_loop residual_written_out learned_first_state no_first_state branches_at_random
    one_helper_for_two_layers transposed_each_time split_once lstm_of_200_steps one_block_three_times""".split()
USED_AGAIN = "siamese siamese_side_by_side tied_embedding_and_head".split()
TOTALS = "sum_of_parts written_into_a_row columns_of_a_table".split()
FEEDFORWARD = [name for name in CASES if name not in (*RECURRENT, *USED_AGAIN, *TOTALS)]


def traced(name: str) -> Any:
    torch.manual_seed(0)
    return endoscope.trace(*CASES[name]())


def golden_text(trace: Any) -> str:
    """What is printed, but for the time; then the loops, and the layers whose passes differ."""
    shown = [line for line in str(trace).splitlines() if "Time elapsed" not in line]
    more = [f"        ({len(shown) - MOST_LINES} lines more)"] if len(shown) > MOST_LINES else []
    facts = [f"recurrent={trace.recurrent} max_passes={trace.max_passes}"]
    facts += [f"{'    ' * loop.depth}{loop!r}" for loop in trace.loops]
    differing = [str(trace[layer.label]) for layer in trace.layers if layer.differing]
    return "\n".join([*shown[:MOST_LINES], *more, *facts, *map(str, trace.reused), *differing]) + "\n"


@pytest.mark.parametrize("name", CASES)
def test_golden_text(name: str) -> None:
    path, text = GOLDEN / f"{name}.txt", golden_text(traced(name))
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_golden_texts_are_all_used() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_validation_holds(name: str) -> None:
    torch.manual_seed(0)
    assert endoscope.validate(*CASES[name]())


@pytest.mark.parametrize("name", CASES)
def test_what_is_recurrent_and_what_is_not(name: str) -> None:
    trace = traced(name)
    assert trace.recurrent is (name in RECURRENT) is bool(trace.loops)
    assert bool(trace.reused) is (name in USED_AGAIN or name in TOTALS)
    assert (trace.max_passes > 1) is (name not in FEEDFORWARD and name != "tied_embedding_and_head")


# ---- the three examples of the TorchLens poster ----------------------------------------------------------------------


class PosterRecurrentNetwork(nn.Module):
    """The second one; what it prints has an addition that the shown code lost."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(in_features=5, out_features=5)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):
            x = self.fc(x)
            x = x + 1
            x = x * 2
        return x


def lines(value: Any) -> list[str]:
    return [line.strip() for line in str(value).splitlines()]


def test_the_first_example_of_the_poster() -> None:
    trace = endoscope.trace(DemoNetwork(), torch.rand(5, 5))
    assert lines(trace)[1] == "Model structure: purely feedforward, with branching; 2 total modules."
    assert labels(trace.ops)[:5] == ["input_1_0", "add_1_1", "relu_1_2", "linear_1_3", "relu_2_4"]
    assert (trace.recurrent, trace.loops, len(trace.reused), trace.max_passes) == (False, (), 0, 1)


def test_the_second_example_of_the_poster() -> None:
    trace = endoscope.trace(PosterRecurrentNetwork(), torch.rand(5, 5))
    shown = [re.sub(r"  +5x5$", "", line) for line in lines(trace)]
    assert shown[1] == "Model structure: recurrent (at most 3 loops), without branching; 1 total module."
    assert shown[2].startswith("11 tensors (")
    assert shown[shown.index("Layers:") + 1 :] == [
        "0: input_1_0",
        "1: linear_1_1:1 (1/3 passes)",
        "2: add_1_2:1 (1/3 passes)",
        "3: mul_1_3:1 (1/3 passes)",
        "4: linear_1_1:2 (2/3 passes)",
        "5: add_1_2:2 (2/3 passes)",
        "6: mul_1_3:2 (2/3 passes)",
        "7: linear_1_1:3 (3/3 passes)",
        "8: add_1_2:3 (3/3 passes)",
        "9: mul_1_3:3 (3/3 passes)",
        "10: output_1_4",
    ]


def test_one_pass_in_the_second_example() -> None:
    shown = lines(endoscope.trace(PosterRecurrentNetwork(), torch.rand(5, 5))["linear_1_1:2"])
    assert shown[0] == "linear_1_1 (pass 2/3), operation 5/11:"
    assert "Parents: mul_1_3:1, fc.weight, fc.bias" in shown
    assert "Children: add_1_2:2" in shown
    keys = next(line for line in shown if line.startswith("Lookup keys: "))
    assert {"-7", "4", "fc:2", "linear_1_1:2"} <= set(keys.removeprefix("Lookup keys: ").split(", "))


def test_the_third_example_of_the_poster() -> None:
    """Numbers follow the order of execution, as the paper says; the poster lists the first few layer by layer."""
    trace = traced("poster_organization")
    assert lines(trace)[1] == "Model structure: purely feedforward, with branching; 2 total modules."
    assert lines(trace)[2].startswith("21 tensors (")
    assert labels(trace.ops)[:5] == ["input_1_0", "sum_1_1", "gt_1_2", "mul_1_3", "reciprocal_1_4"]
    inner = lines(trace["submodule1.submodule2"])
    assert inner[0] == "add_6_16, operation 17/21:"
    keys = next(line for line in inner if line.startswith("Lookup keys: "))
    assert {"-5", "16", "add_6_16", "submodule1.submodule2:1"} <= set(keys.removeprefix("Lookup keys: ").split(", "))


# ---- loops -----------------------------------------------------------------------------------------------------------


def test_a_loop_knows_its_layers_passes_and_operations() -> None:
    (loop,) = endoscope.trace(PosterRecurrentNetwork(), torch.rand(5, 5)).loops
    assert labels(loop.layers) == ["linear_1_1", "add_1_2", "mul_1_3"]
    assert (loop.passes, loop.depth, loop.parent) == (3, 0, None)
    expected = [f"{layer}:{n}" for n in (1, 2, 3) for layer in ("linear_1_1", "add_1_2", "mul_1_3")]
    assert labels(loop.ops) == expected
    assert loop.source.function.endswith("PosterRecurrentNetwork.forward")
    assert str(loop).startswith("loop of 3 passes at ")
    assert str(loop).endswith(": linear_1_1, add_1_2, mul_1_3")


def test_nested_loops_are_rolled_at_both_levels() -> None:
    outer, inner = traced("nested").loops
    assert (outer.passes, inner.passes, inner.parent, inner.depth) == (3, 2, outer, 1)
    assert [(layer.label, layer.passes) for layer in outer.layers] == [("sin_1_1", 3), ("cos_1_2", 6)]
    assert labels(inner.layers) == ["cos_1_2"]


def test_a_constant_that_changes_with_the_step_is_shown() -> None:
    trace = traced("constant_of_the_step")
    assert trace["add_1"].differing == {"args[1]": (0, 1, 2)}
    assert trace["sin_1"].differing == {}
    assert str(trace["add_1_2"]) == "<Layer add_1_2 (x3): add_1_2:1, add_1_2:2, add_1_2:3; args[1]: 0, 1, 2>"
    assert str(trace["sin_1_1"]) == "<Layer sin_1_1 (x3): sin_1_1:1, sin_1_1:2, sin_1_1:3>"
    assert repr(trace.loops[0]) == "<Loop (x3): sin_1_1, add_1_2 (args[1]: 0, 1, 2)>"


def test_many_differing_values_are_shortened() -> None:
    layer = traced("lstm_of_200_steps")["getitem_1"]
    assert layer.differing == {"args[1][1]": tuple(range(200))}
    assert str(layer).endswith("getitem_1_3:6, …, getitem_1_3:200; args[1][1]: 0, 1, 2, 3, 4, … 199>")


def test_what_differs_does_not_need_values() -> None:
    torch.manual_seed(0)
    trace = endoscope.trace(*CASES["columns_of_a_table"](), save="none")
    assert repr(trace["add_1"].differing) == "{'args[1]': (0, tensor, tensor, tensor, tensor)}"


def test_a_loop_in_time_beside_layers_that_are_only_used_again() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.step, self.encoder = nn.Linear(5, 5), nn.Linear(5, 5)

        def forward(self, x: Tensor) -> Tensor:
            left, middle, right = self.encoder(x), self.encoder(x * 2), self.encoder(x * 3)
            x = left - middle - right
            for _ in range(2):
                x = self.step(x)
            return x

    trace = endoscope.trace(Both(), torch.rand(5, 5))
    assert "recurrent (at most 2 loops, 1 layer used again), with branching" in str(trace)
    assert labels(trace.loops[0].layers) == ["linear_2_6"]
    assert labels(trace.reused) == ["linear_1_1"]
    assert (trace.max_passes, trace.loops[0].passes) == (3, 2)


def test_a_model_that_is_called_again_in_a_block() -> None:
    model = RecurrentNetwork(steps=1)
    with endoscope.tracing(model) as trace:
        x = torch.rand(5, 5)
        for _ in range(3):
            x = model(x)
    assert [loop.passes for loop in trace.loops] == [3]
    assert identical(trace["mul_1:3"].value, x)


@pytest.mark.parametrize("save", ["none", "type:linear", ["fc:2"]])
def test_labels_do_not_depend_on_what_is_saved(save: Any) -> None:
    full = endoscope.trace(PosterRecurrentNetwork(), torch.rand(5, 5))
    part = endoscope.trace(PosterRecurrentNetwork(), torch.rand(5, 5), save=save)
    assert labels(part.ops) == labels(full.ops)
    assert repr(part.loops) == repr(full.loops)


@pytest.mark.parametrize("make", [nn.Parameter, lambda t: t.requires_grad_()], ids=["parameter", "tensor"])
def test_weights_without_a_module_are_weights(make: Any) -> None:
    weights = [make(torch.rand(5, 5)) for _ in range(3)]

    def other_weights(x: Tensor) -> Tensor:
        for weight in weights:
            x = torch.relu(x @ weight)
        return x

    def same_weight(x: Tensor) -> Tensor:
        for _ in range(3):
            x = torch.relu(x @ weights[0])
        return x

    assert not endoscope.trace(other_weights, torch.rand(5, 5)).recurrent
    assert [loop.passes for loop in endoscope.trace(same_weight, torch.rand(5, 5)).loops] == [3]


def test_weights_that_are_handed_in_are_weights() -> None:
    def forward(x: Tensor, *weights: Tensor) -> Tensor:
        for weight in weights:
            x = torch.relu(x @ weight)
        return x

    weights = [nn.Parameter(torch.rand(5, 5)) for _ in range(3)]
    assert not endoscope.trace(forward, (torch.rand(5, 5), *weights)).recurrent


def test_freezing_weights_after_the_run_changes_no_label() -> None:
    weights = [torch.rand(5, 5, requires_grad=True) for _ in range(3)]

    def forward(x: Tensor) -> Tensor:
        for weight in weights:
            x = torch.relu(x @ weight)
        return x

    trace = endoscope.trace(forward, torch.rand(5, 5), save="none")
    for weight in weights:
        weight.requires_grad_(False)
    assert trace.max_passes == 1


def test_tied_through_a_transposed_weight() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(7, 5)

        def forward(self, ids: Tensor) -> Tensor:
            return self.embed(ids) @ self.embed.weight.T

    trace = endoscope.trace(Tied(), torch.tensor([1, 2]))
    (tied,) = trace.reused
    assert (tied.label, labels(tied.ops)) == ("embed.weight", ["embedding_1_1", "matmul_1_3"])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum() + sum(part.sin() for part in x),
        lambda x: torch.stack([x, x]).unbind()[0] + x.norm() + x.norm(),
    ],
)
def test_sums_are_no_loops(function: Any) -> None:
    assert not endoscope.trace(function, torch.rand(5, 5)).recurrent


# ---- published models ------------------------------------------------------------------------------------------------


def build(name: str) -> Any:
    pytest.importorskip("transformers", minversion="5.0")
    from tests.zoo.architectures import ARCHITECTURES

    return ARCHITECTURES[name].build()


@pytest.mark.parametrize("name", ["bert", "gpt2", "resnet", "vit"])
def test_models_in_which_nothing_repeats(name: str) -> None:
    trace = endoscope.trace(*build(name), save="none")
    assert (trace.recurrent, trace.loops, trace.max_passes) == (False, (), 1)
    assert "purely feedforward" in str(trace)


@pytest.mark.parametrize("name", ["mistral", "gemma2", "gemma3", "dbrx"])
def test_masks_and_sums_of_experts_do_not_make_a_model_recurrent(name: str) -> None:
    trace = endoscope.trace(*build(name), save="none")
    assert (trace.recurrent, trace.loops) == (False, ())


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_one_embedding_for_encoder_and_decoder_is_used_again(name: str) -> None:
    trace = endoscope.trace(*build(name), save="none")
    assert not trace.recurrent
    assert (trace.reused[0].type, trace.reused[0].passes) == ("embedding", 2)


@pytest.mark.parametrize(("name", "passes"), [("albert", 2), ("mamba", 12)])
def test_models_that_are_recurrent(name: str, passes: int) -> None:
    trace = endoscope.trace(*build(name), save="none")
    assert trace.recurrent and {loop.passes for loop in trace.loops} == {passes}


@pytest.mark.parametrize("check", ["loops", "validate"])
def test_generate(check: str) -> None:
    transformers = pytest.importorskip("transformers", minversion="5.0")
    sizes = {"n_layer": 2, "n_embd": 32, "n_head": 4, "vocab_size": 50}
    tokens = {"bos_token_id": 0, "eos_token_id": None, "pad_token_id": 0}
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **tokens)).eval()
    arguments = {"inputs": torch.randint(1, 50, (1, 4)), "max_new_tokens": 5, "do_sample": False}
    if check == "validate":
        assert endoscope.validate(model.generate, arguments)
        return
    trace = endoscope.trace(model.generate, arguments)
    (loop,) = trace.loops
    assert (trace.recurrent, loop.passes) == (True, 5)
    assert "recurrent (at most 5 loops" in str(trace)
    assert trace["lm_head"].passes == trace["transformer.h.1.mlp.c_fc"].passes == 5
    assert {"transformer.wte", "lm_head"} <= {op.modules[-1] for op in loop.ops if op.modules}
    assert [layer.label for layer in trace.reused] == ["transformer.wte.weight"]
