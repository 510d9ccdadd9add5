"""`trace.rerun(edit=...)` equals a full run with the same edits, bit for bit, and computes only what it must."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

import endoscope
from endoscope import edits
from endoscope.errors import CannotReplay, ValueChanged
from endoscope.replay.compare import same
from tests import models


def both(model: Any, x: Any, edit: Any, **options: Any) -> tuple[Any, Any, Any]:
    """The plain trace, its rerun, and a full run; the last two are held against each other."""
    plain = endoscope.trace(model, x, **options)
    before = [[value.clone() for value in op.outputs] for op in plain.everything()]
    again = plain.rerun(edit=edit)
    full = endoscope.trace(model, x, edit=edit, **options)
    assert_same(again, full)
    for op, values in zip(plain.everything(), before, strict=True):
        assert all(map(same, op.outputs, values)), f"the rerun changed {op.label} of the original"
    return plain, again, full


def assert_same(left: Any, right: Any) -> None:
    assert [op.label for op in left.everything()] == [op.label for op in right.everything()]
    assert [op.label for op in left.edited] == [op.label for op in right.edited]
    wrong = [
        a.label
        for a, b in zip(left.everything(), right.everything(), strict=True)
        if not all(map(same, a.outputs, b.outputs))
    ]
    assert not wrong, f"first of {len(wrong)}: {wrong[0]}"


class Block(nn.Module):
    """A residual block as in ResNet: in-place activations and additions, normalisation."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels)
        self.conv2, self.bn2 = nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x
        return self.relu(out)


class Resnet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3)
        self.blocks = nn.Sequential(Block(4), Block(4), Block(4))
        self.head = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.flatten(F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1), 1))


class Lstm(nn.Module):
    """A loop over time, written out."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(3, 5)
        self.drop = nn.Dropout(0.4)

    def forward(self, x: Tensor) -> Tensor:
        h, c = torch.zeros(x.shape[1], 5), torch.zeros(x.shape[1], 5)
        found = []
        for step in x:
            h, c = self.cell(step, (h, c))
            found.append(self.drop(h))
        return torch.stack(found)


def transformer(name: str, **config: Any) -> Any:
    transformers = pytest.importorskip("transformers")
    made = getattr(transformers, f"{name.split('_')[0]}Config")(**config)
    return getattr(transformers, name.replace("_", ""))(made)


def gpt2() -> Any:
    return transformer("GPT2_LMHeadModel", n_layer=2, n_embd=16, n_head=2, vocab_size=31, n_positions=16)


def bert() -> Any:
    return transformer(
        "Bert_Model", hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, vocab_size=31
    )


IDS = {"input_ids": torch.tensor([[3, 5, 8, 1], [2, 2, 7, 0]]), "attention_mask": torch.tensor([[1] * 4, [1, 1, 1, 0]])}

CASES: dict[str, tuple[Callable[[], Any], Callable[[], Any], list[Any]]] = {
    "ResNet with in-place operations": (Resnet, lambda: torch.rand(2, 3, 8, 8),
        ["blocks.0", "blocks.1.relu", "blocks.1.bn2", "blocks.2.conv1.weight", "add_2", "stem", "input_1"]),
    "LSTM over time": (Lstm, lambda: torch.rand(6, 2, 3),
        ["cell:3", "in:cell", "drop:2", "zeros_1", "stack_1", "cell.weight_hh", "unbind_1"]),
    "GPT-2": (gpt2, lambda: IDS,
        ["transformer.h.0", "transformer.h.1.attn", "transformer.h.0.mlp.act", "transformer.wte.weight",
         "scaled_dot_product_attention_1", "transformer.h.1.ln_1", "transformer.h.?.mlp", "split_1", "lm_head"]),
    "BERT": (bert, lambda: IDS,
        ["encoder.layer.0", "encoder.layer.1.attention.self", "embeddings.dropout", "pooler", "type:layer_norm",
         "encoder.layer.0.intermediate.dense.bias"]),
    "nn.LSTM": (lambda: nn.LSTM(3, 4, num_layers=2, dropout=0.5), lambda: torch.rand(5, 2, 3),
        ["lstm_1", "weight_ih_l0", "input_1"]),
    "a transformer layer of torch": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
        lambda: torch.rand(2, 3, 8), ["linear1", "self_attn", "norm1", "dropout1"]),
}  # fmt: skip


@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
@pytest.mark.parametrize(("name", "selector"), [(name, s) for name in CASES for s in CASES[name][2]])
def test_equals_a_full_run(name: str, selector: Any, training: bool) -> None:
    make, inputs, _ = CASES[name]
    model = make().train(training)
    for module in model.modules():  # two runs of batch norm in training see different statistics: pin what they say
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 0.0
            module.num_batches_tracked = None
    both(model, inputs(), {selector: edits.noise(0.5, 1)}, seed=3)
    both(model, inputs(), {selector: edits.zero()}, seed=3)


@pytest.mark.parametrize("grad", [False, True])
def test_matrix_products_take_the_same_way(grad: bool) -> None:
    """`torch.matmul` folds batches or not, depending on who requires a gradient."""
    weight = torch.rand(64, 64, requires_grad=grad)

    def model(x: Tensor) -> Tensor:
        return torch.matmul(x.sin(), weight).cos() @ weight.t()

    both(model, torch.rand(3, 40, 64), {"sin_1": edits.scale(1.1)})
    with torch.no_grad():
        both(model, torch.rand(3, 40, 64), {"sin_1": lambda t: t.detach() + 1})
    both(model, torch.rand(3, 40, 64), {"sin_1": lambda t: t.detach() + 1})


def test_autocast_and_random_numbers_are_as_they_were() -> None:
    layer = nn.Linear(8, 8)

    def model(x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = layer(x.sin())
        return F.dropout(y.float(), 0.5) + torch.randn(2, 8)

    plain, again, _ = both(model, torch.rand(2, 8), {"sin_1": edits.scale(2)}, seed=1)
    assert again["linear_1"].dtype is torch.bfloat16
    assert torch.equal(again["dropout_1"].value == 0, plain["dropout_1"].value == 0)


def test_buffers_that_the_run_updates() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    x, state = torch.rand(4, 3), {name: t.clone() for name, t in model.state_dict().items()}
    plain = endoscope.trace(model, x).freeze()
    model.load_state_dict(state)
    full = endoscope.trace(model, x, edit={"0": edits.scale(2)})
    again = plain.rerun(edit={"0": edits.scale(2)})
    assert same(again.result, full.result)
    before = {name: t.clone() for name, t in model.state_dict().items()}
    plain.rerun(edit={"0": edits.zero()})
    assert all(map(same, before.values(), model.state_dict().values()))


def test_views_and_writes() -> None:
    def model(x: Tensor) -> Tensor:
        y = x.exp()
        part = y[:, 1:]
        part.mul_(2)
        z = torch.zeros(2, 3)
        z[:, :2] = part
        z.add_(y)
        return z.t().reshape(-1) + y.sum()

    for selector in ("exp_1", "mul_1", "zeros_1", "setitem_1", "add_1", "t_1", "input_1"):
        both(model, torch.rand(2, 3), {selector: edits.noise(1.0)})


@pytest.mark.parametrize("kind", ["tuple", "dict", "named", "object", "nested"])
def test_the_result_is_the_models_own_kind(kind: str) -> None:
    class Named(NamedTuple):
        first: Tensor
        second: Tensor

    class Thing:
        def __init__(self, first: Tensor, second: Tensor) -> None:
            self.first, self.second, self.name = first, second, "thing"

    make: dict[str, Callable[[Tensor, Tensor], Any]] = {
        "tuple": lambda a, b: (a, b),
        "dict": lambda a, b: {"a": a, "b": b, "count": 2},
        "named": Named,
        "object": Thing,
        "nested": lambda a, b: {"all": [a, (b, {"again": a})]},
    }

    def model(x: Tensor) -> Any:
        return make[kind](x.sin(), x.cos())

    plain, again, full = both(model, torch.rand(3), {"cos_1": edits.zero()})
    assert type(again.result) is type(full.result) is type(plain.result)
    get: dict[str, Callable[[Any], tuple[Tensor, Tensor]]] = {
        "tuple": tuple, "named": tuple, "dict": lambda r: (r["a"], r["b"]), "object": lambda r: (r.first, r.second),
        "nested": lambda r: (r["all"][1][1]["again"], r["all"][1][0]),
    }  # fmt: skip
    for found, expected in zip(get[kind](again.result), get[kind](full.result), strict=True):
        assert same(found, expected)
    assert get[kind](again.result)[0] is get[kind](plain.result)[0]  # not touched, so shared
    assert not same(get[kind](plain.result)[1], get[kind](again.result)[1])


def test_the_output_of_a_language_model() -> None:
    plain, again, full = both(gpt2().eval(), IDS, {"transformer.h.1": edits.zero()})
    assert type(again.result) is type(plain.result)
    assert same(again.result.logits, full.result.logits) and same(again.result["logits"], full.result.logits)
    assert not same(again.result.logits, plain.result.logits)


# ---- only what must be computed ------------------------------------------------------------------


class Kernels(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func._schema.name.partition("::")[2])
        return func(*args, **(kwargs or {}))


def test_the_model_does_not_run_and_only_what_is_downstream_is_computed() -> None:
    runs = []

    class Chain(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            runs.append(1)
            return x.sin().exp().tanh() + x.cos()

    trace = endoscope.trace(Chain(), torch.rand(3))
    with Kernels() as kernels:
        again = trace.rerun(edit={"exp_1": edits.scale(2)})
    assert len(runs) == 1
    assert {"tanh", "add"} <= set(kernels.names)
    assert not {"sin", "exp", "cos"} & set(kernels.names)
    assert again["sin_1"].value.data_ptr() == trace["sin_1"].value.data_ptr()


def test_what_is_edited_at_the_end_costs_nothing_before() -> None:
    trace = endoscope.trace(models.Mlp(), torch.rand(2, 5))
    with Kernels() as kernels:
        trace.rerun(edit={"second": edits.scale(2)})
    assert not {"addmm", "linear", "relu", "t"} & set(kernels.names)


def test_a_rerun_can_be_run_again() -> None:
    model, x = models.Mlp(), torch.rand(2, 5)
    plain = endoscope.trace(model, x)
    twice = plain.rerun(edit={"first": edits.add(1)}).rerun(edit={"relu_1": edits.scale(2)})
    assert_same(twice, endoscope.trace(model, x, edit={"first": edits.add(1), "relu_1": edits.scale(2)}))
    other_way = plain.rerun(edit={"relu_1": edits.scale(2)}).rerun(edit={"first": edits.add(1)})
    assert_same(other_way, twice)
    same_place = plain.rerun(edit={"relu_1": edits.add(1)}).rerun(edit={"relu_1": edits.scale(2)})
    assert_same(same_place, endoscope.trace(model, x, edit={"relu_1": edits.add(1), "relu_?": edits.scale(2)}))
    assert twice.validate() and other_way.validate() and same_place.validate()


def test_an_edited_trace_can_be_run_again() -> None:
    model, x = models.Mlp(), torch.rand(2, 5)
    first = endoscope.trace(model, x, edit={"first": edits.add(1)})
    again = first.rerun(edit={"input_1": edits.scale(2)})
    assert_same(again, endoscope.trace(model, x, edit={"first": edits.add(1), "input_1": edits.scale(2)}))


def test_no_edit_is_the_same_trace_again() -> None:
    trace = endoscope.trace(models.Mlp(), torch.rand(2, 5))
    assert_same(trace.rerun(edit={}), trace)


def test_blocks_of_code_can_be_run_again_too() -> None:
    model, x = models.Mlp(), torch.rand(2, 5)
    with endoscope.tracing(model) as trace:
        loss = model(x).pow(2).mean() + model(x + 1).sum()
    again = trace.rerun(edit={"first:2": edits.zero()})
    expected = model(x).pow(2).mean() + model.second(torch.zeros(2, 7)).sum()
    assert same(again["add_2"].value, expected) and not same(again["add_2"].value, loss)


def test_a_surrounding_trace_hears_nothing() -> None:
    trace = endoscope.trace(models.Mlp(), torch.rand(2, 5))
    with endoscope.tracing() as outer:
        trace.rerun(edit={"relu_1": edits.apply(torch.sin)})
    assert not len(outer)


def test_the_random_state_is_not_touched() -> None:
    trace = endoscope.trace(lambda x: F.dropout(x.sin()), torch.rand(8))
    before = torch.get_rng_state()
    trace.rerun(edit={"sin_1": lambda t: t + torch.rand_like(t)})
    assert torch.equal(before, torch.get_rng_state())


def test_memory_is_freed_with_the_rerun() -> None:
    trace = endoscope.trace(models.Mlp(), torch.rand(2, 5))
    again = trace.rerun(edit={"first": edits.zero()})
    value = weakref.ref(again.recorder.kept[again["relu_1"].slots[0]])
    gc.collect()
    gc.disable()
    try:
        del again
        assert value() is None
    finally:
        gc.enable()


# ---- what a trace cannot know --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "edit", "said"),
    [
        (
            lambda x: x.sin() if (x.exp() > 0).all() else x,
            edits.scale(-1),
            r"all_1_3 that Python reads through __bool__\(\): False instead of True",
        ),
        (lambda x: x * x.exp().sum().item(), edits.scale(2), r"sum_1_2 that Python reads through item\(\)"),
        (lambda x: x[x.exp() > 1.5], edits.scale(0.1), r"has the shape \(0,\) instead of \(2,\)"),
        (lambda x: x * float(x.exp().tolist()[0]), edits.scale(2), r"that Python reads through tolist\(\)"),
        (
            lambda x: x.exp() if torch.equal(x.exp(), x.exp() * 1) else x,
            edits.scale(2).at(dims={0: [0]}),
            r"equal\(\): False instead of True",
        ),
    ],
)
def test_python_would_have_gone_elsewhere(model: Any, edit: Any, said: str) -> None:
    trace = endoscope.trace(model, torch.tensor([0.5, 1.0]))
    with pytest.raises(CannotReplay, match=said + r".*endoscope.trace\(model, inputs, edit=...\)"):
        trace.rerun(edit={"exp_1": edit})


def test_a_decision_that_stays_the_same_is_no_obstacle() -> None:
    def model(x: Tensor) -> Tensor:
        y = x.exp()
        if y.sum() > 0:
            y = y * 2
        return y if not torch.isnan(y).any() else x

    both(model, torch.rand(3), {"exp_1": edits.scale(2)})


def test_a_view_whose_memory_is_written_later() -> None:
    def model(x: Tensor) -> Tensor:
        y = x.exp()
        row = y[0]
        y.mul_(2)
        return row + 1

    trace = endoscope.trace(model, torch.rand(2, 3))
    with pytest.raises(CannotReplay, match=r"getitem_1_2 shares its memory.*it reads what mul_1_3 writes"):
        trace.rerun(edit={"getitem_1": edits.zero()})
    both(model, trace.inputs[0].value, {"exp_1": edits.scale(3)})  # elsewhere the same model can be rerun


def test_values_that_are_gone() -> None:
    model, x = models.Mlp(), torch.rand(2, 5)
    trace = endoscope.trace(model, x)
    with torch.no_grad():
        model.second.weight.add_(1)
    with pytest.raises(ValueChanged, match=r"second.weight.*was overwritten after it was captured"):
        trace.rerun(edit={"relu_1": edits.zero()})


def test_what_cannot_be_called_again() -> None:
    script = torch.jit.script(nn.Linear(3, 3))
    trace = endoscope.trace(lambda x: script(x.sin()), torch.rand(2, 3))
    with pytest.raises(CannotReplay, match=r"lies downstream of the edit and cannot be called again"):
        trace.rerun(edit={"sin_1": edits.zero()})
    full = endoscope.trace(lambda x: script(x.sin()), torch.rand(2, 3), edit={"sin_1": edits.zero()})
    assert same(full.result, script(torch.zeros(2, 3)))


def test_an_error_of_the_model_says_where() -> None:
    def model(x: Tensor) -> Tensor:
        return torch.zeros(3)[x.round().long()]

    trace = endoscope.trace(model, torch.tensor([0.0, 1.0]))
    with pytest.raises(IndexError) as caught:
        trace.rerun(edit={"round_1": edits.replace(7.0)})
    assert "raised when getitem_1_" in caught.value.__notes__[0]
