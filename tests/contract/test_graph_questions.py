"""`trace.graph`: structure as data, on models as people write them."""

from __future__ import annotations

import gc
import itertools
import json
import weakref
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import endoscope
from endoscope.errors import BadArgument, LookupFailed, NothingMatches
from tests.contract.helpers import ancestors, identical, labels, only, types
from tests.models import ConvNet, DemoNetwork, OrganizedNetwork, RecurrentNetwork

X = torch.rand(5, 5)
IMAGE = torch.rand(2, 3, 8, 8)


class Block(nn.Module):
    """A residual block, in place where people do that."""

    def __init__(self, width: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = nn.Conv2d(width, width, 1, stride) if stride > 1 else None

    def forward(self, x: Tensor) -> Tensor:
        out = self.conv2(self.relu(self.bn1(self.conv1(x))))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet(nn.Module):
    """Two stages."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, 1, 1)
        self.layer1 = nn.Sequential(Block(4), Block(4))
        self.layer2 = nn.Sequential(Block(4, 2))
        self.maxpool = nn.MaxPool2d(2)
        self.fc = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(F.relu(self.stem(x)))
        return self.fc(torch.flatten(self.layer2(self.layer1(x)), 1))


class Siamese(nn.Module):
    """One encoder, two inputs, and a comparison whose order matters."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(5, 4), nn.Tanh())

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return self.encoder(left) - self.encoder(right)


class Several(nn.Module):
    """Operations with several outputs, lists of tensors, keywords, and one value used twice."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        first, second = x.chunk(2, dim=0)
        values, places = second.max(dim=1)
        joined = torch.cat([second[:2, :2], first[:2, :2]], dim=1)
        return torch.where(condition=values > 0, input=values, other=places), joined * joined


MODELS: list[tuple[Any, Any]] = [
    (ResNet(), IMAGE),
    (Siamese(), (X, X + 1)),
    (Several(), torch.rand(4, 4)),
    (DemoNetwork(), X),
    (RecurrentNetwork(), X),
    (OrganizedNetwork(), X),
    (ConvNet(), torch.rand(1, 1, 8, 8)),
]


@pytest.fixture(params=MODELS, ids=lambda case: type(case[0]).__name__)
def trace(request: pytest.FixtureRequest) -> Any:
    return endoscope.trace(*request.param)


# ---- the same facts as elsewhere -----------------------------------------------------------------


def test_neighbours_are_those_of_the_operations(trace: Any) -> None:
    graph = trace.graph
    for op in trace.everything():
        assert set(graph.parents(op)) == set(op.parents)
        assert set(graph.children(op)) == set(op.children)
        assert set(labels(graph.ancestors(op))) == ancestors(op)
        assert graph.descendants(op) == op.relations.descendants
        assert set(graph.siblings(op)) == set(op.relations.siblings)
        assert op in graph and op.label in graph


def test_nodes_are_everything_and_edges_are_parents(trace: Any) -> None:
    graph = trace.graph
    assert len(graph) == len(list(graph)) == len(list(trace.everything()))
    assert {(e.source, e.target) for e in graph.edges} == {(p, op) for op in trace.everything() for p in op.parents}
    assert all(edge.uses for edge in graph.edges)
    order = {op.label: number for number, op in enumerate(graph.nodes)}
    assert all(order[edge.source.label] < order[edge.target.label] for edge in graph.edges)
    assert repr(graph) == f"<Graph of {trace.name}: {len(graph)} nodes, {len(graph.edges)} edges>"


def test_operations_of_a_module_are_those_of_the_module(trace: Any) -> None:
    for module in trace.modules:
        if module.passes and module.address:
            made = [op for op in trace.graph.ops_of(module.address) if op not in trace.orphans]
            assert made == list(module.ops)


def test_json(trace: Any) -> None:
    data = json.loads(json.dumps(trace.graph.to_dict()))
    assert [node["label"] for node in data["nodes"]] == labels(trace.graph.nodes)
    assert [node["shapes"] for node in data["nodes"]] == [
        [list(meta.shape) for meta in op.metas] for op in trace.graph.nodes
    ]
    assert [node["kind"] for node in data["nodes"]] == [op.kind for op in trace.graph.nodes]
    assert data["hash"] == trace.graph.hash
    ends = {(e["source"], e["target"]) for e in data["edges"]}
    assert len(ends) == len(data["edges"]) == len(trace.graph.edges)


def test_structure_does_not_depend_on_what_was_kept(trace: Any) -> None:
    target, inputs = next((m, i) for m, i in MODELS if type(m).__name__ == trace.name)
    bare = endoscope.trace(target, inputs, save="none")
    one, two = trace.graph.to_dict(), bare.graph.to_dict()
    assert one["edges"] == two["edges"]
    for left, right in zip(one["nodes"], two["nodes"], strict=True):
        assert left == right


# ---- keys ----------------------------------------------------------------------------------------


def test_whatever_the_trace_understands() -> None:
    trace = endoscope.trace(RecurrentNetwork(), X)
    graph, second = trace.graph, trace["fc:2"]
    expected = graph.parents(second)
    position = list(trace.ops).index(second)
    for key in (second.label, f"{second.layer}:2", "fc:2", position, position - len(trace), [second]):
        assert graph.parents(key) == expected
    layer = trace["fc"]
    assert len(layer) == 3
    together = graph.parents(layer)
    assert together == graph.parents("fc") == graph.parents(list(layer.ops))
    assert set(together) == {p for op in layer.ops for p in graph.parents(op)}
    assert "fc.weight" in labels(graph.ancestors(second)) and graph.children("fc.weight") == layer.ops


def test_a_layer_that_feeds_itself_is_among_its_own_ancestors() -> None:
    trace = endoscope.trace(RecurrentNetwork(), X)
    first, second, third = trace["fc"].ops
    found = trace.graph.ancestors("fc")
    assert first in found and second in found and third not in found


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("relu_7", "No node of ConvNet is called 'relu_7'. Nearest: 'relu_"),
        ("features.9", "No node of ConvNet is called 'features.9'. Nearest: 'features."),
        (99, "There is no operation at position 99"),
        (2.5, "There is no node 2.5"),
        (None, "There is no node None"),
        (True, "There is no node True"),
    ],
)
def test_what_does_not_exist(key: Any, message: str) -> None:
    graph = endoscope.trace(ConvNet(), torch.rand(1, 1, 8, 8)).graph
    for question in (graph.ancestors, graph.parents, graph.contract):
        with pytest.raises((LookupFailed, NothingMatches)) as caught:
            question(key)
        assert message in str(caught.value) or question == graph.contract
    assert key not in graph


def test_an_operation_of_another_trace() -> None:
    one, two = endoscope.trace(ConvNet(), torch.rand(1, 1, 8, 8)), endoscope.trace(DemoNetwork(), X)
    with pytest.raises(LookupFailed, match=r"relu_1_2 belongs to another trace, of ConvNet\. Use a label"):
        two.graph.ancestors(one["relu_1"])
    assert one["relu_1"] not in two.graph


# ---- paths ---------------------------------------------------------------------------------------


def test_paths_through_a_residual_block() -> None:
    trace = endoscope.trace(ResNet(), IMAGE)
    graph = trace.graph
    start, end = trace["maxpool"], trace["layer1.0"]
    short, long = graph.paths(start, end)
    assert types(short) == ["max_pool2d", "add", "relu"]
    assert types(long) == ["max_pool2d", "conv2d", "batch_norm", "relu", "conv2d", "add", "relu"]
    assert graph.distance(start, end) == 2 and graph.distance(start, end, longest=True) == 6
    assert graph.distance(end, start) is None and graph.paths(end, start) == []
    assert graph.path_count(trace.inputs[0], trace.outputs[0]) == 2**3
    assert len(graph.paths(trace.inputs[0], trace.outputs[0], limit=3)) == 3
    assert graph.distance(start, start) == 0 and [list(p) for p in graph.paths(start, start)] == [[start]]
    with pytest.raises(BadArgument, match="limit=0"):
        graph.paths(start, end, limit=0)


def test_a_long_chain() -> None:
    def target(x: Tensor) -> Tensor:
        for _ in range(3000):
            x = x + 1
        return x

    graph = endoscope.trace(target, X, save="none").graph
    assert graph.distance(0, -1) == 3001
    assert len(graph.ancestors(-1)) == 3001
    assert [len(path) for path in graph.paths(0, -1)] == [3002]
    assert len(graph.contract([0, 1500, -1]).edges) == 2
    assert len(graph.hash) == 32


# ---- selection -----------------------------------------------------------------------------------


def test_poolings_after_a_relu() -> None:
    """Through in-place calls, as the parents say, and not through other operations."""

    def target(x: Tensor) -> Tensor:
        a = F.max_pool2d(F.relu(x), 2)
        b = x * 1
        b.relu_()
        b = F.max_pool2d(b, 2)
        c = F.max_pool2d(torch.sigmoid(x), 2)
        d = F.max_pool2d(F.relu(x).flip(0), 2)
        e = F.relu(x) * 1
        e[0] = 0
        return a + b + c + d + F.max_pool2d(e, 2)

    trace = endoscope.trace(target, IMAGE)
    a, b, _, d, _ = (op for op in trace.ops if op.type == "max_pool2d")
    assert trace.graph.select("type:max_pool2d & child_of(type:relu)") == [a, b]
    assert trace.graph.select("type:max_pool2d & descendant_of(type:relu) & child_of(type:flip)") == [d]
    by_hand = [op for op in trace.ops if op.type == "max_pool2d" and "relu" in types(op.parents)]
    assert trace.graph.select("type:max_pool2d & child_of(type:relu)") == by_hand


def test_a_view_of_a_relu_is_a_step_of_its_own() -> None:
    def target(x: Tensor) -> Tensor:
        y = F.relu(x)
        view = y.view(2, 3, 64)
        view.mul_(2)  # y is what the multiplication left
        return F.max_pool2d(y, 2)

    trace = endoscope.trace(target, IMAGE)
    pool = only(trace, "max_pool2d")
    for type_ in ("relu", "view", "mul"):
        expected = [pool] if type_ in types(pool.parents) else []
        assert trace.graph.select(f"type:max_pool2d & child_of(type:{type_})") == expected
    assert trace.graph.select("type:max_pool2d & descendant_of(type:relu) & child_of(type:mul)") == [pool]


def is_beside_the_shortcut(op: Any) -> bool:
    return any("layer2.0.downsample" in beside.keys for beside in op.relations.siblings)


def reaches_first_block(op: Any) -> bool:
    return any("layer1.0" in below.keys for below in op.relations.descendants)


@pytest.mark.parametrize(
    ("pattern", "chosen"),
    [
        ("type:conv2d & child_of(type:relu)", lambda op: op.type == "conv2d" and "relu" in types(op.parents)),
        ("parent_of(type:batch_norm) & !kind:parameter & !kind:buffer", lambda op: "layer1.0.conv1" in op.keys
            or "layer1.1.conv1" in op.keys or "layer2.0.conv1" in op.keys),
        ("in:layer1 & !in:layer1.0", lambda op: "layer1" in op.modules and "layer1.0" not in op.modules),
        ("type:relu & ancestor_of(layer1.0)", lambda op: op.type == "relu" and reaches_first_block(op)),
        ("sibling_of(layer2.0.downsample)", is_beside_the_shortcut),
        ("layer1.? | fc.*", lambda op: {"layer1.0", "layer1.1", "fc.weight", "fc.bias"} & set(op.keys)),
        ("!type:* | layer1.1 | kind:output", lambda op: "layer1.1" in op.keys or op.kind == "output"),
        ("descendant_of(kind:input) & !child_of(*)", lambda op: False),
    ],
    ids=lambda value: "" if callable(value) else str(value),
)  # fmt: skip
def test_selection_and_saving_agree_with_looking(pattern: str, chosen: Any) -> None:
    model = ResNet().eval()
    trace = endoscope.trace(model, IMAGE)
    expected = sorted(op.label for op in trace.everything() if chosen(op))
    assert sorted(labels(trace.graph.select(pattern))) == expected
    if expected:
        kept = endoscope.trace(model, IMAGE, save=pattern)
        assert sorted(op.label for op in kept.everything() if op.kept) == expected
        assert all(identical(kept[label].value, trace[label].value) for label in expected)


def test_no_answer_and_no_question() -> None:
    graph = endoscope.trace(ResNet(), IMAGE).graph
    assert graph.select("type:conv2d & child_of(type:flatten)") == []
    with pytest.raises(NothingMatches, match=r"Nothing in it matches 'type:conv3d'. Nearest: type:conv2d"):
        graph.select("type:conv3d & child_of(type:relu)")
    with pytest.raises(NothingMatches, match="'type:conv3d' matches no operation of ResNet"):
        graph.select("type:conv3d")
    with pytest.raises(BadArgument, match=r"this \( is never closed\.\n    child_of\(type:relu\n            \^"):
        graph.select("child_of(type:relu")


# ---- edges ---------------------------------------------------------------------------------------


def uses(graph: Any, source: Any, target: Any) -> tuple[tuple[str, int], ...]:
    (found,) = (edge.uses for edge in graph.edges if edge.source is source and edge.target is target)
    return tuple(found)


def test_edges_know_arguments_and_outputs() -> None:
    trace = endoscope.trace(Several(), torch.rand(4, 4))
    graph, chunk, largest, where = trace.graph, only(trace, "chunk"), only(trace, "max"), only(trace, "where")
    first, second = (op for op in trace.ops if op.type == "getitem")
    cat, product = only(trace, "cat"), only(trace, "mul")
    assert uses(graph, chunk, largest) == (("0", 1),)
    assert uses(graph, first, cat) == (("0[0]", 0),) and uses(graph, second, cat) == (("0[1]", 0),)
    assert uses(graph, cat, product) == (("0", 0), ("1", 0))
    assert uses(graph, largest, where) == (("input", 0), ("other", 1))
    assert uses(graph, only(trace, "gt"), where) == (("condition", 0),)


def test_what_is_only_overwritten_has_no_edge() -> None:
    def target(x: Tensor) -> Tensor:
        memory = torch.zeros(5, 5)
        torch.add(x, 1, out=memory)
        return memory

    trace = endoscope.trace(target, X)
    assert uses(trace.graph, trace.inputs[0], only(trace, "add")) == (("0", 0),)
    assert trace.graph.parents("add_1") == list(trace.inputs)


# ---- contraction ---------------------------------------------------------------------------------


def test_a_resnet_by_its_blocks() -> None:
    trace = endoscope.trace(ResNet(), IMAGE)
    blocks = ["kind:input", "stem", "layer1.0", "layer1.1", "layer2.0", "fc", "kind:output"]
    part = trace.graph.contract(blocks)
    assert part.nodes == [trace.inputs[0], *(trace[b] for b in blocks[1:-1]), trace.outputs[0]]
    chain = list(part.nodes)
    assert [(edge.source, edge.target) for edge in part.edges] == list(itertools.pairwise(chain))
    assert part.distance("stem", "fc") == 4
    assert part.ops_of("layer1") == [trace["layer1.0"], trace["layer1.1"]]
    assert part.contract(["stem", "fc"]).parents("fc") == [trace["stem"]]
    with pytest.raises(LookupFailed, match="is no node of this contracted graph, which has 7: input_1_0"):
        part.ancestors("flatten_1")


def test_relations_in_a_contracted_graph_are_its_own() -> None:
    graph = endoscope.trace(ResNet(), IMAGE).graph
    pattern = "type:conv2d & child_of(type:max_pool2d)"
    assert len(graph.contract("type:conv2d | type:max_pool2d").select(pattern)) > len(graph.select(pattern))


def test_contracted_edges_keep_the_order_of_arguments() -> None:
    trace = endoscope.trace(Siamese(), (X, X + 1))
    part = trace.graph.contract(["kind:input", "type:sub"])
    left, right = trace.inputs
    assert uses(part, left, only(trace, "sub")) == (("0", 0),)
    assert uses(part, right, only(trace, "sub")) == (("1", 0),)
    data = part.to_dict()
    line = trace["sub_1"].source
    assert data["nodes"][-1]["source"] == [line.file, line.line, line.function]
    assert [node["shapes"] for node in data["nodes"]] == [[[5, 5]], [[5, 5]], [[5, 4]]]


def test_a_siamese_encoder() -> None:
    trace = endoscope.trace(Siamese(), (X, X + 1))
    graph = trace.graph
    left, right = trace.inputs
    assert left in graph.ancestors("encoder:1") and right not in graph.ancestors("encoder:1")
    assert types(graph.ops_of("encoder")) == ["linear", "tanh"] * 2
    assert list(graph.ops_of("encoder:2")) == list(graph.ops_of("encoder"))[2:]
    assert graph.distance(left, "encoder:2") is None
    assert set(graph.siblings("encoder.0:1")) == {trace["encoder.0:2"]}  # they share the weights


def test_contracting_to_nothing() -> None:
    graph = endoscope.trace(ResNet(), IMAGE).graph
    assert len(graph.contract([])) == 0
    with pytest.raises(NothingMatches, match="'type:conv3d'"):
        graph.contract(["stem", "type:conv3d"])


# ---- good manners --------------------------------------------------------------------------------


def test_a_trace_whose_graph_was_used_is_freed_at_once() -> None:
    trace = endoscope.trace(ResNet(), IMAGE)
    graph = trace.graph
    assert graph.hash and graph.contract("type:relu").edges and graph.ops_of("fc") and graph.select("type:relu")
    gone = weakref.ref(trace)
    gc.disable()
    try:
        del trace, graph
        assert gone() is None
    finally:
        gc.enable()


def test_a_running_trace_can_be_asked() -> None:
    model = ConvNet()
    with endoscope.tracing(model) as trace:
        model(torch.rand(1, 1, 8, 8))
        before = len(trace.graph), trace.graph.hash
        assert trace.graph.select("type:max_pool2d & child_of(type:relu)")
        model(torch.rand(1, 1, 8, 8))
        assert len(trace.graph) > before[0]
    assert trace.graph.hash != before[1]
    assert trace.complete


def test_an_unfinished_trace_has_a_graph() -> None:
    def target(x: Tensor) -> Tensor:
        F.relu(x).sum()
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop") as caught:
        endoscope.trace(target, X, save="type:relu & child_of(kind:input)")
    trace = caught.value.endoscope_trace  # type: ignore[attr-defined]
    assert types(trace.graph.descendants("input_1")) == ["relu", "sum"]
    assert types(trace.kept) == ["relu"]
