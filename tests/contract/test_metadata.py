"""What is known about every op and every model, and the tables it can be read from."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
import torch
from torch import Tensor, nn

import endoscope
from tests import models
from tests.contract.helpers import computed, labels, only
from tests.models import AttentionBlock, ConvNet, DemoNetwork, OrganizedNetwork, RecurrentNetwork

X = torch.rand(5, 5)
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metadata.md"
MODEL_FIELDS = """
    model_name random_seed_used model_is_recurrent model_max_recurrent_loops model_is_branching
    model_has_conditional_branching layer_list input_layers output_layers buffer_layers
    internally_initialized_layers internally_terminated_bool_layers layers_computed_with_params
    num_tensors_total tensor_fsize_total tensor_fsize_saved num_tensors_saved total_param_tensors
    total_param_layers total_params total_params_fsize module_addresses module_types module_num_passes
    module_pass_children top_level_module_passes pass_start_time pass_end_time elapsed_time_total
    elapsed_time_function_calls elapsed_time_torchlens_logging
""".split()
OP_FIELDS = """
    layer_label layer_label_w_pass operation_num layer_type layer_type_num layer_total_num pass_num
    layer_passes_total lookup_keys tensor_contents tensor_shape tensor_dtype tensor_fsize creation_args
    creation_kwargs func_applied func_applied_name func_time_elapsed func_rng_states
    func_position_args_non_tensor func_keyword_args_non_tensor function_is_inplace gradfunc_name
    is_part_of_iterable_output iterable_output_index computed_with_params num_param_tensors
    parent_param_shapes num_params_total parent_params_fsize same_layer_operations parent_layers
    orig_ancestors child_layers sibling_layers spouse_layers is_input_layer has_input_ancestor
    min_distance_from_input max_distance_from_input is_output_layer is_output_ancestor output_descendants
    min_distance_from_output max_distance_from_output is_buffer_layer buffer_address
    initialized_inside_model internally_initialized_parents terminated_inside_model is_terminal_bool_layer
    in_cond_branch is_computed_inside_submodule containing_module_origin containing_module_origin_nested
    modules_entered is_submodule_output modules_exited is_bottom_level_submodule_output
""".split()
MISSPELT_IN_THE_PAPER = "internally_initiali(?:li)?zed_ancestors"


@pytest.mark.parametrize("field", [*MODEL_FIELDS, *OP_FIELDS, MISSPELT_IN_THE_PAPER])
def test_every_field_of_the_paper_has_a_home(field: str) -> None:
    row = [line for line in PAGE.read_text().splitlines() if line.startswith("|") and re.search(rf"\b{field}\b", line)]
    assert row, f"{field} is missing"
    cells = [cell.strip() for cell in row[0].strip("|").split("|")]
    assert len([cell for cell in cells if cell]) >= 2


def test_no_object_has_a_hundred_attributes() -> None:
    trace = endoscope.trace(DemoNetwork(), X)
    for thing in (trace, trace["linear_1"], trace.ops, trace.layers, trace.modules, trace.parameters):
        public = [name for name in dir(thing) if not name.startswith("_")]
        assert len(public) < 100, type(thing)


def test_shape_type_and_size() -> None:
    trace = endoscope.trace(lambda x: (x.double().sum(0), x > 0.5, x.argmax(), x.bfloat16()), X)
    facts = {op.type: (tuple(op.shape), op.dtype, op.bytes) for op in computed(trace)}
    assert facts["double"] == ((5, 5), torch.float64, 200)
    assert facts["sum"] == ((5,), torch.float64, 40)
    assert facts["gt"] == ((5, 5), torch.bool, 25)
    assert facts["argmax"] == ((), torch.int64, 8)
    assert facts["bfloat16"] == ((5, 5), torch.bfloat16, 50)


def test_the_shape_is_that_of_the_moment() -> None:
    def target(x: Tensor) -> Tensor:
        y = x * 2
        y.unsqueeze_(0)
        return y.squeeze_(0).t_()[0]

    assert [tuple(op.shape) for op in endoscope.trace(target, torch.rand(2, 3)).ops][:4] == [
        (2, 3), (2, 3), (1, 2, 3), (2, 3),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("target", "type_", "expected"),
    [
        (lambda x: x @ torch.ones(5, 3), "matmul", 2 * 5 * 5 * 3),
        (lambda x: torch.mm(x, torch.ones(5, 2)), "mm", 2 * 5 * 5 * 2),
        (lambda x: torch.bmm(x[None], torch.ones(1, 5, 4)), "bmm", 2 * 5 * 5 * 4),
        (nn.Linear(5, 4, bias=False), "linear", 2 * 5 * 5 * 4),
    ],
    ids=["matmul", "mm", "bmm", "linear"],
)
def test_flops_of_matrix_products(target: Any, type_: str, expected: int) -> None:
    assert only(endoscope.trace(target, X), type_).flops == expected


def test_flops_of_a_convolution() -> None:
    trace = endoscope.trace(nn.Conv2d(2, 3, 3, padding=1, bias=False), torch.rand(1, 2, 4, 4))
    assert only(trace, "conv2d").flops == 2 * (3 * 4 * 4) * (2 * 3 * 3)


def test_flops_agree_with_the_counter_of_torch() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    model, x = ConvNet(), torch.rand(2, 1, 8, 8)
    with FlopCounterMode(display=False) as counter:
        model(x)
    heavy = [op.flops for op in endoscope.trace(model, x).ops if op.type in ("conv2d", "linear")]
    biases = 2 * (3 * 64 + 4 * 16 + 6 + 2)
    assert counter.get_total_flops() <= sum(heavy) <= counter.get_total_flops() + biases


def test_a_view_costs_nothing() -> None:
    assert not only(endoscope.trace(lambda x: x.view(25), X), "view").flops


def test_time_per_op() -> None:
    big = torch.rand(500, 500)
    start = time.perf_counter()
    trace = endoscope.trace(lambda x: (x[:1, :1] + 1) * (x @ x).sum(), big)
    whole = time.perf_counter() - start
    assert all(op.seconds >= 0 for op in computed(trace))
    assert only(trace, "matmul").seconds > only(trace, "add").seconds > 0
    assert sum(op.seconds for op in computed(trace)) < whole


def test_time_spent_outside_of_ops_is_not_counted() -> None:
    def target(x: Tensor) -> Tensor:
        y = x * 2
        time.sleep(0.05)
        return y + 1

    assert sum(op.seconds for op in computed(endoscope.trace(target, X))) < 0.05


def test_modules_outermost_first() -> None:
    trace = endoscope.trace(OrganizedNetwork(), X)
    assert trace["cos_1"].modules == ("submodule1", "submodule1.submodule2")
    assert trace["log_1"].modules == ()


def test_the_source_of_operations_inside_library_modules_is_the_users_line() -> None:
    trace = endoscope.trace(DemoNetwork(), X)
    text = Path(str(models.__file__)).read_text().splitlines()
    for label, code in (
        ("add_1", "x = x + 1"),
        ("relu_1", "x = self.relu_module(x)"),
        ("linear_1", "x = self.fc(x)"),
        ("relu_2", "x = nn.functional.relu(x)"),
        ("randn_1", "x = x + torch.randn(x.shape)"),
        ("div_1", "x = x / y"),
    ):
        source = trace[label].source
        assert text[source.line - 1].strip() == code
        assert Path(source.file).name == "models.py"
        assert source.function.endswith("forward")


TABLES = ["ops", "layers", "modules", "parameters"]


@pytest.mark.parametrize("name", TABLES)
def test_tables_become_arrow_and_pandas(name: str) -> None:
    table = getattr(endoscope.trace(DemoNetwork(), X), name)
    arrow, frame = table.to_arrow(), table.to_pandas()
    assert isinstance(arrow, pa.Table)
    assert isinstance(frame, pd.DataFrame)
    assert arrow.num_rows == len(frame) == len(table) > 0
    assert arrow.column_names == list(frame.columns)
    assert len(set(arrow.column_names)) == len(arrow.column_names) > 2


def columns_with(frame: pd.DataFrame, values: list[Any]) -> list[str]:
    """Names of the columns that hold exactly these values, in this order."""
    return [str(name) for name in frame.columns if frame[name].tolist() == values]


def test_the_table_of_ops() -> None:
    trace = endoscope.trace(DemoNetwork(), X)
    frame = trace.ops.to_pandas()
    assert columns_with(frame, labels(trace.ops))
    assert columns_with(frame, [op.type for op in trace.ops])
    assert columns_with(frame, [op.kind for op in trace.ops])
    assert columns_with(frame, [op.bytes for op in trace.ops])
    assert columns_with(frame, [op.pass_ for op in trace.ops])


def test_the_table_of_layers_has_one_row_for_all_passes() -> None:
    trace = endoscope.trace(RecurrentNetwork(), X)
    frame = trace.layers.to_pandas()
    assert columns_with(frame, ["input_1_0", "linear_1_1", "mul_1_2", "output_1_3"])
    assert columns_with(frame, [1, 3, 3, 1])


def test_the_table_of_modules() -> None:
    trace = endoscope.trace(ConvNet(), torch.rand(1, 1, 8, 8))
    cells = {str(cell) for cell in trace.modules.to_pandas().to_numpy().ravel()}
    assert {"features", "features.0", "features.5", "classifier", "classifier.2"} <= cells
    assert {"Conv2d", "Linear", "Sequential"} <= cells


def test_the_table_of_parameters() -> None:
    model = ConvNet()
    trace = endoscope.trace(model, torch.rand(1, 1, 8, 8))
    frame = trace.parameters.to_pandas()
    names = [name for name, _ in model.named_parameters()]
    assert any(sorted(frame[column].tolist()) == sorted(names) for column in frame.columns)
    sizes = sorted(p.nbytes for p in model.parameters())
    assert any(sorted(frame[column].tolist(), key=str) == sorted(sizes, key=str) for column in frame.columns)


def test_tables_of_a_bare_function_are_empty_but_there() -> None:
    trace = endoscope.trace(lambda x: x * 2, X)
    assert len(trace.parameters) == 0
    assert trace.parameters.to_arrow().num_rows == 0
    assert len(trace.modules.to_pandas()) == 0


def test_tables_survive_odd_tensors() -> None:
    def target(x: Tensor) -> Tensor:
        return torch.zeros(0).sum() + torch.complex(x, x).abs().sum() + x.to_sparse().sum() + x.max(0).values.sum()

    trace = endoscope.trace(target, X)
    assert trace.ops.to_arrow().num_rows == len(trace)


def test_all_attributes_of_all_ops_can_be_read() -> None:
    trace = endoscope.trace(AttentionBlock(), torch.rand(2, 3, 8))
    for op in [*trace.ops, *trace.parameters, *trace.buffers, *trace.constants, *trace.orphans]:
        assert isinstance(op.label, str)
        assert isinstance(op.layer, str)
        assert isinstance(op.type, str)
        assert op.kind in ("input", "output", "parameter", "buffer", "computed", "generated", "constant")
        assert isinstance(op.pass_, int)
        assert isinstance(op.modules, tuple)
        assert op.bytes >= 0
        assert op.value is not None
