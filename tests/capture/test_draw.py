"""From a trace to a drawing: the visual code on real traces, simplification, files, errors."""

import struct
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import endoscope
from endoscope.analysis.picture_code import GREEN, GREY, LIGHT_GREY, RED, YELLOW
from endoscope.capture.drawing.draw import DotSource, draw
from endoscope.errors import BadArgument, MissingDependencyError
from tests import models
from tests.analysis.dot_reading import Drawn, read
from tests.graphviz import needs_dot


def picture(model: Any, inputs: Any, **options: Any) -> Drawn:
    source = draw(endoscope.trace(model, inputs), **options)
    assert isinstance(source, DotSource)
    return read(source)


def x() -> Tensor:
    return torch.rand(5, 5)


# ---- the visual code -------------------------------------------------------------------------------------------------


@pytest.fixture
def demo() -> Drawn:
    return picture(models.DemoNetwork(), x())


def test_the_corner_tells_name_and_totals(demo: Drawn) -> None:
    assert demo.title == ["DemoNetwork", "11 tensors total (1.1 KB)", "30 params total (120 B)"]


def test_every_operation_is_drawn(demo: Drawn) -> None:
    assert set(demo.nodes) == {*models.DEMO_LABELS, "example_buffer"}


def test_colours_of_a_real_trace(demo: Drawn) -> None:
    fills = {label: node.attributes.get("fillcolor") for label, node in demo.nodes.items()}
    assert {label: fill for label, fill in fills.items() if fill} == {
        "input_1_0": GREEN,
        "output_1_10": RED,
        "linear_1_3": GREY,
        "example_buffer": LIGHT_GREY,
    }


def test_modules_are_boxes_and_functions_ovals(demo: Drawn) -> None:
    boxes = {label for label, node in demo.nodes.items() if node.attributes.get("shape") == "box"}
    assert boxes == {"relu_1_2", "linear_1_3"}
    assert demo.nodes["linear_1_3"].lines == ["linear_1_3", "5x5 (100 B)", "params: 5x5, 5", "@fc"]


def test_tensors_made_inside_are_dashed(demo: Drawn) -> None:
    assert [label for label, node in demo.nodes.items() if "style" in node.attributes] == ["randn_1_5"]


def test_arguments_are_told_where_their_order_matters(demo: Drawn) -> None:
    assert demo.edge("add_2_6", "div_1_8").lines == ["arg 0"]
    assert demo.edge("pow_1_7", "div_1_8").lines == ["arg 1"]
    assert demo.edge("randn_1_5", "add_2_6").lines == []
    assert demo.edge("relu_1_2", "linear_1_3").lines == []


def test_nested_modules_are_nested_boxes() -> None:
    found = picture(models.OrganizedNetwork(), x())
    inner = "@submodule1.submodule2 (InnerTrigonometry)"
    assert found.boxes == {"@submodule1 (OuterModule)": [], inner: ["@submodule1 (OuterModule)"]}
    assert found.nodes["cos_1_9"].boxes == ["@submodule1 (OuterModule)", inner]


def test_a_decision_is_yellow_with_if_and_then() -> None:
    found = picture(models.OrganizedNetwork(), x())
    assert found.nodes["gt_1_2"].attributes["fillcolor"] == YELLOW
    assert found.edge("input_1_0", "sum_1_1").lines == ["IF"]
    assert found.edge("sum_1_1", "gt_1_2").lines == []
    assert found.edge("gt_1_2", "mul_1_3").lines == ["THEN"]


def test_the_other_branch() -> None:
    found = picture(models.OrganizedNetwork(), -x())
    assert found.edge("gt_1_2", "add_1_3").lines == ["ELSE"]


def test_a_condition_that_no_input_leads_to_is_drawn() -> None:
    def toss(a: Tensor) -> Tensor:
        return a + 1 if torch.ones(1).sum() > 0 else a

    found = picture(toss, x())
    assert {node.attributes.get("fillcolor") for label, node in found.nodes.items() if "gt" in label} == {YELLOW}


def test_several_values_that_lead_to_one_branch_have_one_arrow() -> None:
    def both(a: Tensor) -> Tensor:
        if a.sum() > 100:
            return a
        elif a.mean() > 0:
            return a.exp()
        return a

    found = picture(both, x())
    assert [(e.source, e.target, e.lines) for e in found.edges if e.attributes.get("style") == "dashed"] == [
        ("gt_2_4", "exp_1_5", ["THEN"])
    ]


def test_a_loop_that_a_tensor_steers() -> None:
    def grow(a: Tensor) -> Tensor:
        while a.sum() < 1000:
            a = a * 10
        return a

    found = picture(grow, torch.ones(5))
    assert ["WHILE"] in [e.lines for e in found.edges]
    assert sum(e.lines == ["DO"] for e in found.edges) == 3


def test_running_statistics_stand_in_their_module() -> None:
    found = picture(models.Residual(), x())
    assert "buffers: 5, 5" in found.nodes["batch_norm_1_1"].lines
    assert not any("running" in label for label in found.nodes)
    assert found.edge("input_1_0", "batch_norm_1_1").lines == []


def test_names_of_arguments_and_members_of_lists() -> None:
    def mix(a: Tensor, b: Tensor) -> Tensor:
        c = torch.cat([a, b])
        return torch.where(c > 0, input=c, other=torch.stack((a, b)).flatten(0, 1))

    found = picture(mix, (x(), x()))
    assert found.edge("input_1_0", "cat_1_2").lines == ["arg 0[0]"]
    assert found.edge("input_2_1", "cat_1_2").lines == ["arg 0[1]"]
    assert found.edge("cat_1_2", "where_1_6").lines == ["input"]
    assert found.edge("flatten_1_5", "where_1_6").lines == ["other"]


def test_one_tensor_as_two_arguments_is_one_edge() -> None:
    found = picture(lambda a: a.sin() / a.sin().sin_() if False else torch.div(a, a), x())
    assert found.edge("input_1_0", "div_1_1").lines == ["arg 0, 1"]


def test_outputs_are_numbered() -> None:
    def parts(a: Tensor) -> Tensor:
        left, right = a.chunk(2)
        return left.sum() * right.sum()

    found = picture(parts, torch.rand(4, 2))
    assert found.nodes["chunk_1_1"].lines[1] == "2x2, 2x2 (32 B)"
    assert [found.edge("chunk_1_1", f"sum_{n}_{n + 1}").lines for n in (1, 2)] == [["[0]"], ["[1]"]]


def test_inputs_and_outputs_tell_their_path() -> None:
    found = picture(lambda batch: {"score": batch["ids"] * 2}, ({"ids": x()},))
    assert found.nodes["input_1_0"].lines[-1] == "batch['ids']"
    assert found.nodes["output_1_2"].lines[-1] == "['score']"


def test_a_constant_is_drawn() -> None:
    outside = torch.ones(5)
    found = picture(lambda a: a * outside, x())
    (constant,) = [node for label, node in found.nodes.items() if "constant" in label]
    assert constant.attributes == {"fillcolor": LIGHT_GREY, "style": "filled,dashed"}


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor) -> Tensor:
        return a.sin() + a.cos()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


def test_custom_functions_have_a_frame() -> None:
    found = picture(lambda a: Doubled.apply(a) * 2, x())
    assert [label for label in found.boxes if label.endswith("(function)")]


# ---- rolled ----------------------------------------------------------------------------------------------------------


def test_unrolled_passes_are_nodes_of_their_own() -> None:
    found = picture(models.RecurrentNetwork(), x())
    assert {"linear_1_1:1", "linear_1_1:2", "linear_1_1:3"} <= set(found.nodes)
    assert found.nodes["linear_1_1:2"].lines[-1] == "@fc:2"


def test_rolled_passes_are_one_node() -> None:
    found = picture(models.RecurrentNetwork(), x(), rolled=True)
    assert found.nodes["linear_1_1"].lines == ["linear_1_1 (x3)", "5x5 (100 B)", "params: 5x5, 5", "@fc"]
    assert found.edge("input_1_0", "linear_1_1").lines == ["In 1"]


def test_a_siamese_network_reads_one_input_in_each_pass() -> None:
    encoder = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))

    def compare(left: Tensor, right: Tensor) -> Tensor:
        return F.cosine_similarity(encoder(left), encoder(right))

    found = picture(compare, (x(), x()), rolled=True)
    first = next(label for label in found.nodes if label.startswith("linear_1"))
    assert found.edge("input_1_0", first).lines == ["In 1"]
    assert found.edge("input_2_1", first).lines == ["In 2"]
    assert [e.lines for e in found.edges if e.target.startswith("cosine")] == [["arg 0", "Out 1"], ["arg 1", "Out 2"]]


# ---- depth, module, fold ---------------------------------------------------------------------------------------------


def test_depth_closes_modules() -> None:
    found = picture(models.ConvNet(), torch.rand(1, 1, 8, 8), depth=1)
    assert set(found.nodes) == {"input_1_0", "features", "flatten_1_7", "classifier", "output_1_11"}
    assert found.nodes["classifier"].lines[0] == "@classifier (Sequential)"
    assert found.nodes["classifier"].lines[2:] == ["3 operations (56 B)", "116 params (464 B)"]


def test_module_zooms() -> None:
    found = picture(models.ConvNet(), torch.rand(1, 1, 8, 8), module="classifier")
    assert found.title[0] == "@classifier (Sequential) in ConvNet"
    assert found.title[2] == "116 params total (464 B)"
    assert set(found.nodes) == {"from flatten_1_7", "linear_1_8", "relu_3_9", "linear_2_10", "to output_1_11"}


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(5, 7)
        self.down = nn.Linear(7, 5)

    def forward(self, a: Tensor) -> Tensor:
        return a + self.down(torch.relu(self.up(a)))


def test_equal_blocks_are_folded_unless_asked_otherwise() -> None:
    stack = nn.Sequential(*(Block() for _ in range(12)))
    found = picture(stack, x())
    assert list(found.boxes) == ["×12 @0 … @11 (Block)"]
    assert found.title[-1] == "44 nodes of repeated blocks (×) are not drawn"
    whole = picture(stack, x(), fold=False)
    assert len(whole.boxes) == 12 and len(whole.nodes) == 50


def test_equal_blocks_that_are_closed_are_folded_too() -> None:
    found = picture(nn.Sequential(*(Block() for _ in range(12))), x(), depth=1)
    assert found.nodes["0"].lines[:2] == ["×12", "@0 … @11 (Block)"]


def test_convolutions_that_differ_in_their_dilation_are_not_equal() -> None:
    class Dilated(nn.Sequential):
        def __init__(self, dilation: int) -> None:
            super().__init__(nn.Conv1d(2, 2, 3, padding=dilation, dilation=dilation), nn.ReLU())

    found = picture(nn.Sequential(*(Dilated(2**n) for n in range(6))), torch.rand(1, 2, 64))
    assert len(found.boxes) == 6


def test_a_list_of_modules_can_be_zoomed() -> None:
    class Stack(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.h = nn.ModuleList([Block(), nn.ReLU()])

        def forward(self, a: Tensor) -> Tensor:
            for part in self.h:
                a = part(a)
            return a.exp()

    found = picture(Stack(), x(), module="h")
    assert set(found.nodes) == {
        "input_1_0", "linear_1_1", "relu_1_2", "linear_2_3", "add_1_4", "relu_2_5", "to exp_1_6",
    }  # fmt: skip


# ---- size ------------------------------------------------------------------------------------------------------------


class ManySteps(nn.Module):
    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps
        self.cell = nn.Linear(3, 3)

    def forward(self, a: Tensor) -> Tensor:
        for _ in range(self.steps):
            a = torch.tanh(self.cell(a)) * 2 + 1
        return a


def test_five_thousand_operations_are_fast_and_small() -> None:
    trace = endoscope.trace(ManySteps(1250), torch.rand(3))
    assert len(trace) > 5000
    started = time.process_time()
    source = draw(trace)
    assert time.process_time() - started < 2.0  # about 0.3 s; the rest is for a busy machine
    assert len(read(str(source)).nodes) == 6


def test_a_picture_that_is_too_large_says_so() -> None:
    trace = endoscope.trace(ManySteps(600), torch.rand(3))
    with pytest.warns(UserWarning, match=r"2,402 nodes.*rolled=True.*fold=True"):
        draw(trace, fold=False)


# ---- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ending", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("SVG", b"<svg")])
def test_pictures_are_written_without_any_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, start: bytes
) -> None:
    monkeypatch.setenv("PATH", "")
    path = tmp_path / f"net.{ending}"
    assert draw(endoscope.trace(models.DemoNetwork(), x()), path) == path
    assert path.read_bytes().startswith(start)


def test_dot_needs_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    trace = endoscope.trace(models.DemoNetwork(), x())
    path = draw(trace, str(tmp_path / "net.dot"))
    assert isinstance(path, Path)
    assert path.read_text(encoding="utf-8") == draw(trace)


def test_a_notebook_shows_the_picture() -> None:
    source = draw(endoscope.trace(models.DemoNetwork(), x()))
    assert isinstance(source, DotSource)
    assert "<svg" in (source._repr_svg_() or "")


@needs_dot
@pytest.mark.parametrize("direction", ["up", "down", "left", "right"])
@pytest.mark.parametrize(
    "options", [{}, {"rolled": True}, {"depth": 1}, {"rolled": True, "depth": 1}, {"module": "features"}]
)
def test_graphviz_understands_every_picture(direction: str, options: dict[str, Any]) -> None:
    source = draw(endoscope.trace(models.ConvNet(), torch.rand(1, 1, 8, 8)), direction=direction, **options)
    done = subprocess.run(["dot", "-Tplain"], input=str(source).encode(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_any_model_of_the_tests_is_drawn() -> None:
    cases: list[tuple[Any, Any]] = [
        (models.Noisy(), x()), (models.HoldsNoise(), x()), (models.SharedActivation(), x()),
        (models.TiedEmbedding(), torch.tensor([1, 2])), (models.TwoInputs(), (x(), x())),
        (models.NestedOutputs(), x()), (models.ThroughView(), x()), (models.AttentionBlock(), torch.rand(2, 3, 8)),
        (models.InplaceResidual(), x()), (models.scaled_sum, (x(), x())), (lambda a: a, x()), (lambda: None, ()),
    ]  # fmt: skip
    for model, inputs in cases:
        for options in ({}, {"rolled": True}, {"depth": 1}):
            assert picture(model, inputs, **options).title


# ---- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"depth": 0}, r"depth=0 .* from 1"),
        ({"depth": True}, r"depth=True"),
        ({"depth": 1.5}, r"depth=1.5"),
        ({"direction": "upwards"}, r"'upwards' is none of 'up', 'down', 'left', 'right'"),
        ({"module": "classifer"}, r"no module 'classifer'. Nearest: classifier"),
        ({"path": "net.gif"}, r"'net.gif' ends in '.gif'.*\.svg, \.png, \.pdf, \.dot"),
        ({"path": "net"}, r"'net' has no ending"),
        ({"path": "no such folder/net.svg"}, r"'no such folder' does not exist"),
    ],
)
def test_bad_arguments(options: dict[str, Any], message: str) -> None:
    trace = endoscope.trace(models.ConvNet(), torch.rand(1, 1, 8, 8))
    with pytest.raises(BadArgument, match=message):
        draw(trace, **options)


def test_a_module_that_never_ran() -> None:
    class Idle(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = nn.Linear(5, 5), nn.Linear(5, 5)

        def forward(self, a: Tensor) -> Tensor:
            return self.used(a)

    with pytest.raises(BadArgument, match="'unused' never ran"):
        draw(endoscope.trace(Idle(), x()), module="unused")
    with pytest.raises(BadArgument, match="has no modules"):
        draw(endoscope.trace(torch.sin, x()), module="fc")


def without(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """As if it were not installed."""
    monkeypatch.setitem(sys.modules, package, None)


@pytest.mark.parametrize(("ending", "package"), [("png", "resvg_py"), ("pdf", "cairosvg")])
def test_a_missing_package_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, package: str
) -> None:
    without(monkeypatch, package)
    install = f"pip install {package.replace('_', '-')}"
    with pytest.raises(MissingDependencyError, match=rf"{install}.*end in \.svg"):
        draw(endoscope.trace(torch.sin, x()), tmp_path / f"net.{ending}")
    assert not (tmp_path / f"net.{ending}").exists()


def test_a_pdf_is_made_by_cairosvg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    converted = []

    def svg2pdf(bytestring: bytes) -> bytes:
        converted.append(bytestring)
        return b"%PDF of it"

    monkeypatch.setitem(sys.modules, "cairosvg", SimpleNamespace(svg2pdf=svg2pdf))
    path = draw(endoscope.trace(torch.sin, x()), tmp_path / "net.pdf")
    assert isinstance(path, Path) and path.read_bytes() == b"%PDF of it" and converted[0].startswith(b"<svg")


def test_a_large_picture_becomes_a_png_of_bounded_size(tmp_path: Path) -> None:
    trace = endoscope.trace(ManySteps(300), torch.rand(3))
    path = draw(trace, tmp_path / "net.png", fold=False)
    assert isinstance(path, Path)
    width, height = struct.unpack(">II", path.read_bytes()[16:24])
    assert max(width, height) == 8000


def test_drawing_changes_nothing() -> None:
    trace = endoscope.trace(models.DemoNetwork(), x())
    before = [op.label for op in trace.everything()], trace.graph_hash
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert draw(trace) == draw(trace)
    assert ([op.label for op in trace.everything()], trace.graph_hash) == before
