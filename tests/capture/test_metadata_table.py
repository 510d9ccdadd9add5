"""`docs/reference/metadata.md` is true: every expression works and gives what the paper means by its name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope
from tests.models import AttentionBlock, DemoNetwork, NestedOutputs, Noisy, RecurrentNetwork

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metadata.md"
_ROW = re.compile(r"^\|([^|]*)\|\s*`([^`]*)`\s*\|(.*)\|$", re.MULTILINE)


def rows(title: str) -> dict[str, str]:
    """The table below a heading: the paper's name -> our expression."""
    section = PAGE.read_text(encoding="utf-8").partition(f"## {title}\n")[2].partition("\n## ")[0]
    found = [(name.strip(), expression) for name, expression, _ in _ROW.findall(section)]
    assert len(dict(found)) == len(found) == section.count("\n|") - 2, f"a row of {title!r} cannot be read"
    return dict(found)


MODEL, OPERATION = rows("The model"), rows("The operation")
SOME_TRACES = {
    "demo": (DemoNetwork(), torch.rand(5, 5)),
    "recurrent": (RecurrentNetwork(), torch.rand(5, 5)),
    "stochastic": (Noisy(), torch.rand(5, 5)),
    "attention": (AttentionBlock(), torch.rand(2, 3, 8)),
    "several outputs": (NestedOutputs(), torch.rand(5, 5)),
    "several results": (lambda x: x.max(0), torch.rand(5, 5)),
}


@pytest.mark.parametrize("name", SOME_TRACES)
def test_every_expression_works(name: str) -> None:
    trace = endoscope.trace(*SOME_TRACES[name])
    for expression in MODEL.values():
        eval(expression, {"trace": trace})
    for op in trace.ops:
        for expression in OPERATION.values():
            eval(expression, {"trace": trace, "op": op})


def test_structure_alone_is_enough_for_all_but_the_values() -> None:
    trace = endoscope.trace(DemoNetwork(), torch.rand(5, 5), save="none")
    for op in trace.ops:
        for field, expression in OPERATION.items():
            if field != "tensor_contents":
                eval(expression, {"trace": trace, "op": op})


class Inner(nn.Module):
    """One operation, and it is all that the module does."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight


class Outer(nn.Module):
    """Calls `Inner` twice and does something of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(self.inner(x)) + torch.ones(3)


class Model(nn.Module):
    """Everything the table speaks of, with numbers that can be worked out by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.outer = Outer()
        self.register_buffer("scale", torch.full((3,), 2.0))
        self.spare = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            x = self.outer(x)
        values, _ = torch.max(x, dim=0)
        values.mul_(self.scale)
        return torch.nn.functional.dropout(values, 0.5)


def known() -> Any:
    """input 0, sum 1, gt 2, mul (two passes) 3, ones 4, add 5, max 6, mul 7, dropout 8, output 9."""
    return endoscope.trace(Model(), torch.ones(2, 3), seed=7)


def simple(value: Any) -> Any:
    """Operations and layers by their labels, tables and generators as lists."""
    if hasattr(value, "label"):
        return value.label
    if isinstance(value, dict):
        return {key: simple(item) for key, item in value.items()}
    if isinstance(value, str | bytes | torch.Tensor) or not hasattr(value, "__iter__"):
        return value
    return [simple(item) for item in value]


OF_THE_MODEL = {
    "model_name": "Model",
    "random_seed_used": 7,
    "model_is_recurrent": True,
    "model_max_recurrent_loops": 2,
    "model_is_branching": True,
    "model_has_conditional_branching": True,
    "layer_list": [
        "input_1_0", "sum_1_1", "gt_1_2", "mul_1_3", "ones_1_4", "add_1_5", "max_1_6", "mul_2_7",
        "dropout_1_8", "output_1_9",
    ],
    "input_layers": ["input_1_0"],
    "output_layers": ["output_1_9"],
    "buffer_layers": ["scale"],
    "internally_initialized_layers": ["ones_1_4"],
    "internally_terminated_bool_layers": ["gt_1_2"],
    "layers_computed_with_params": ["mul_1_3"],
    "num_tensors_total": 12,  # ten layers, a second pass, a second result of max
    "tensor_fsize_total": 24 + 4 + 1 + 24 + 24 + 12 + 24 + (12 + 24) + 12 + 12 + 12,
    "tensor_fsize_saved": 24 + 4 + 1 + 24 + 24 + 12 + 24 + (12 + 24) + 12 + 12 + 12,
    "num_tensors_saved": 12,
    "total_param_tensors": 1,
    "total_param_layers": 1,
    "total_params": 3,
    "total_params_fsize": 12,
    "module_addresses": ["", "outer", "outer.inner", "spare"],
    "module_types": {"": "Model", "outer": "Outer", "outer.inner": "Inner", "spare": "Identity"},
    "module_num_passes": {"": 1, "outer": 1, "outer.inner": 2, "spare": 0},
    "module_pass_children": {
        "": ["outer", "spare"], "outer": ["outer.inner"], "outer.inner": [], "spare": [],
    },
    "top_level_module_passes": ["outer:1"],
}  # fmt: skip


@pytest.mark.parametrize("field", OF_THE_MODEL)
def test_facts_of_the_model(field: str) -> None:
    assert simple(eval(MODEL[field], {"trace": known()})) == OF_THE_MODEL[field]


def test_times_of_the_model() -> None:
    trace = known()
    times = {field: eval(MODEL[field], {"trace": trace}) for field in MODEL if "time" in field}
    assert len(times) == 5
    assert times["pass_start_time"] <= times["pass_end_time"] <= times["pass_start_time"] + 60
    assert 0 < times["elapsed_time_function_calls"] < times["elapsed_time_total"]
    parts = times["elapsed_time_function_calls"] + times["elapsed_time_torchlens_logging"]
    assert parts == pytest.approx(times["elapsed_time_total"])


MUL, ADD, MAX, CHANGED = "mul_1_3:2", "add_1_5", "max_1_6", "mul_2_7"
OF_AN_OPERATION = [
    ("layer_label", MUL, "mul_1_3"),
    ("layer_label_w_pass", MUL, "mul_1_3:2"),
    ("operation_num", MUL, 5),
    ("operation_num", "input_1_0", 1),
    ("layer_type", MUL, "mul"),
    ("layer_type_num", CHANGED, 2),
    ("layer_total_num", CHANGED, 7),
    ("pass_num", MUL, 2),
    ("layer_passes_total", MUL, 2),
    ("tensor_shape", MUL, [2, 3]),
    ("tensor_shape", MAX, [[3], [3]]),
    ("tensor_dtype", MAX, [torch.float32, torch.int64]),
    ("tensor_fsize", MAX, 12 + 24),
    ("creation_args", MUL, ["mul_1_3:1", "outer.inner.weight"]),
    ("creation_kwargs", MAX, {"dim": 0}),
    ("func_applied", MAX, torch.max),
    ("func_applied_name", CHANGED, "mul_"),
    ("func_rng_states", MUL, None),
    ("func_position_args_non_tensor", "dropout_1_8", [0.5, True]),
    ("func_keyword_args_non_tensor", MAX, {"dim": 0}),
    ("function_is_inplace", CHANGED, True),
    ("function_is_inplace", MUL, False),
    ("gradfunc_name", MUL, "MulBackward0"),
    ("is_part_of_iterable_output", MAX, True),
    ("is_part_of_iterable_output", MUL, False),
    ("iterable_output_index", MAX, [0, 1]),
    ("computed_with_params", MUL, True),
    ("computed_with_params", MAX, False),
    ("num_param_tensors", MUL, 1),
    ("parent_param_shapes", MUL, [[3]]),
    ("num_params_total", MUL, 3),
    ("parent_params_fsize", MUL, 12),
    ("same_layer_operations", MUL, ["mul_1_3:1", "mul_1_3:2"]),
    ("parent_layers", ADD, ["mul_1_3:2", "ones_1_4"]),
    ("orig_ancestors", ADD, {"input_1_0", "outer.inner.weight", "ones_1_4"}),
    ("child_layers", ADD, ["max_1_6"]),
    ("sibling_layers", "sum_1_1", ["mul_1_3:1"]),
    ("spouse_layers", "ones_1_4", ["mul_1_3:2"]),
    ("is_input_layer", "input_1_0", True),
    ("is_input_layer", ADD, False),
    ("has_input_ancestor", ADD, True),
    ("has_input_ancestor", "ones_1_4", False),
    ("min_distance_from_input", ADD, [3, 3]),
    ("max_distance_from_input", "ones_1_4", None),
    ("is_output_layer", "output_1_9", True),
    ("is_output_ancestor", ADD, True),
    ("is_output_ancestor", "gt_1_2", False),
    ("output_descendants", ADD, ["output_1_9"]),
    ("min_distance_from_output", MAX, [3, 3]),
    ("max_distance_from_output", "sum_1_1", None),
    ("is_buffer_layer", "scale", True),
    ("buffer_address", "scale", "scale"),
    ("initialized_inside_model", "ones_1_4", True),
    ("initialized_inside_model", ADD, False),
    ("internally_initialized_parents", ADD, ["ones_1_4"]),
    ("internally_initialized_parents", MAX, []),
    ("internally_initialized_ancestors", MAX, ["ones_1_4"]),
    ("terminated_inside_model", "gt_1_2", True),
    ("terminated_inside_model", "output_1_9", False),
    ("is_terminal_bool_layer", "gt_1_2", True),
    ("in_cond_branch", "sum_1_1", True),
    ("in_cond_branch", ADD, False),
    ("is_computed_inside_submodule", MUL, True),
    ("is_computed_inside_submodule", MAX, False),
    ("containing_module_origin", MUL, "outer.inner"),
    ("containing_module_origin_nested", MUL, ["outer:1", "outer.inner:2"]),
    ("modules_entered", "mul_1_3:1", ["outer.inner:2"]),
    ("is_submodule_output", ADD, True),
    ("modules_exited", ADD, ["outer:1"]),
    ("is_bottom_level_submodule_output", MUL, True),
]


@pytest.mark.parametrize(("field", "label", "expected"), OF_AN_OPERATION)
def test_facts_of_an_operation(field: str, label: str, expected: Any) -> None:
    trace = known()
    found = simple(eval(OPERATION[field], {"trace": trace, "op": trace[label]}))
    assert (set(found) if isinstance(expected, set) else found) == expected


def test_facts_that_are_no_constants() -> None:
    trace = known()
    at = {label: {"trace": trace, "op": trace[label]} for label in (MUL, "dropout_1_8")}
    assert {MUL, "mul_1:2", "outer.inner:2"} <= set(eval(OPERATION["lookup_keys"], at[MUL]))
    assert eval(OPERATION["tensor_contents"], at[MUL]).tolist() == [[1.0] * 3] * 2
    assert eval(OPERATION["func_time_elapsed"], at[MUL]) > 0
    assert isinstance(eval(OPERATION["func_rng_states"], at["dropout_1_8"]), torch.Tensor)


def test_every_row_is_compared_with_a_known_value() -> None:
    by_hand = {"lookup_keys", "tensor_contents", "func_time_elapsed"}
    assert {field for field, _, _ in OF_AN_OPERATION} | by_hand == set(OPERATION)
    assert set(OF_THE_MODEL) | {field for field in MODEL if "time" in field} == set(MODEL)
