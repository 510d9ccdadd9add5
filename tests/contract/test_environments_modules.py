"""Kinds of modules, ways to call them: functional, parametrised, recurrent, attention, language models."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import endoscope
from tests.contract.helpers import ancestors, computed, identical, labels, only, proves, types
from tests.models import AttentionBlock, Mlp

X = torch.linspace(-1, 1, 10).reshape(2, 5)


def test_functional_call() -> None:
    model = Mlp()
    other = {name: p.detach() * 2 for name, p in model.named_parameters()}

    def target(weights: dict[str, Tensor], x: Tensor) -> Tensor:
        result: Tensor = torch.func.functional_call(model, weights, (x,))
        return result

    trace = endoscope.trace(target, (other, X))
    assert types(computed(trace)) == ["linear", "relu", "linear"]
    assert identical(trace.result, target(other, X))
    assert len(trace.inputs) == 5
    assert {op.label for op in trace.inputs} <= ancestors(trace.outputs[0])
    assert isinstance(model.first.weight, nn.Parameter)
    proves(target, (other, X))


def test_vmap() -> None:
    def target(x: Tensor) -> Tensor:
        result: Tensor = torch.func.vmap(lambda row: torch.sin(row) * row.sum())(x)
        return result

    trace = endoscope.trace(target, X)
    assert {"sin", "mul"} <= set(types(trace.ops))
    assert identical(trace.result, target(X))
    assert "input_1_0" in ancestors(trace.outputs[0])
    proves(target, X)


def test_grad_of_a_function() -> None:
    def target(x: Tensor) -> Tensor:
        slope: Tensor = torch.func.grad(lambda v: (v**3).sum())(x)
        return slope * 2

    trace = endoscope.trace(target, X)
    assert torch.allclose(trace.result, 6 * X**2)
    assert "pow" in types(trace.ops)
    proves(target, X)


def test_gradients_per_sample() -> None:
    model = Mlp()
    weights = {name: p.detach() for name, p in model.named_parameters()}

    def loss(weights: dict[str, Tensor], row: Tensor) -> Tensor:
        result: Tensor = torch.func.functional_call(model, weights, (row,)).sum()
        return result

    def target(x: Tensor) -> Any:
        return torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weights, x)

    trace = endoscope.trace(target, X)
    plain = target(X)
    assert all(identical(trace.result[name], plain[name]) for name in plain)
    proves(target, X)


class Positive(nn.Module):
    """A parametrisation of the user's own."""

    def forward(self, weight: Tensor) -> Tensor:
        return F.softplus(weight)


def old_weight_norm() -> nn.Module:
    """The hook-based form that torch keeps for old checkpoints."""
    return nn.utils.weight_norm(nn.Linear(5, 5))


def own_parametrisation() -> nn.Module:
    """A linear layer whose weight is computed on every access."""
    layer = nn.Linear(5, 5)
    parametrize.register_parametrization(layer, "weight", Positive())
    return layer


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
@pytest.mark.parametrize(
    ("make", "sources"),
    [
        (own_parametrisation, {"parametrizations.weight.original"}),
        (
            lambda: parametrizations.weight_norm(nn.Linear(5, 5)),
            {"parametrizations.weight.original0", "parametrizations.weight.original1"},
        ),
        (lambda: parametrizations.spectral_norm(nn.Linear(5, 5)), {"parametrizations.weight.original"}),
        (lambda: parametrizations.orthogonal(nn.Linear(5, 5)), {"parametrizations.weight.original"}),
        (old_weight_norm, {"weight_g", "weight_v"}),
    ],
    ids=["own", "weight_norm", "spectral_norm", "orthogonal", "old weight_norm"],
)
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_parametrised_weights_are_computed_in_the_graph(make: Any, sources: set[str], training: bool) -> None:
    model = make().train(training)
    trace = endoscope.trace(model, X)
    assert sources <= ancestors(only(trace, "linear"))
    assert trace.complete is True
    model.eval()
    assert identical(endoscope.trace(model, X).result, model(X))
    proves(model.train(training), X)


def test_a_cached_parametrisation() -> None:
    model = own_parametrisation()

    def target(x: Tensor) -> Tensor:
        with parametrize.cached():
            return model(model(x))

    trace = endoscope.trace(target, X)
    assert types(trace.ops).count("softplus") == 1
    proves(target, X)


def test_data_parallel_on_cpu() -> None:
    model = nn.DataParallel(Mlp())
    trace = endoscope.trace(model, X)
    assert types(computed(trace)) == ["linear", "relu", "linear"]
    assert trace["module.first"].label == "linear_1_1"
    assert "module.first.weight" in labels(trace["linear_1"].parents)
    assert identical(trace.result, model(X))
    proves(model, X)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers(kind: type[nn.RNNBase]) -> None:
    model = kind(5, 4, num_layers=2, bidirectional=True)
    x = torch.rand(3, 2, 5)
    trace = endoscope.trace(model, x)
    core = next(op for op in computed(trace) if op.type in ("lstm", "gru", "rnn_tanh"))
    weights = {name for name, _ in model.named_parameters()}
    assert weights <= set(labels(core.parents))
    plain, _ = model(x)
    assert identical(trace.result[0], plain)
    assert isinstance(core.value, tuple)
    assert identical(core.value[0], plain)
    assert len(trace.outputs) == (3 if kind is nn.LSTM else 2)
    assert trace.recurrent is False
    proves(model, x)


def test_recurrent_cells_in_a_loop_have_passes() -> None:
    class Loop(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.GRUCell(5, 5)

        def forward(self, x: Tensor) -> Tensor:
            state = torch.zeros(2, 5)
            for _ in range(4):
                state = self.cell(x, state)
            return state

    trace = endoscope.trace(Loop(), X)
    assert trace.max_passes == 4
    assert trace["cell:4"].pass_ == 4
    assert trace["cell:3"].label in labels(trace["cell:4"].parents)
    proves(Loop(), X)


def test_packed_sequences() -> None:
    class Packed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.LSTM(5, 4, batch_first=True)

        def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            result, _ = self.rnn(packed)
            padded, _ = pad_packed_sequence(result, batch_first=True)
            return padded

    model, inputs = Packed(), (torch.rand(3, 4, 5), torch.tensor([2, 4, 1]))
    trace = endoscope.trace(model, inputs)
    core = only(trace, "lstm")
    assert "input_1_0" in ancestors(core)
    assert core.label in ancestors(trace.outputs[0])
    assert identical(trace.result, model(*inputs))
    proves(model, inputs)


def test_a_packed_sequence_as_input_and_output() -> None:
    packed = pack_padded_sequence(torch.rand(4, 3, 5), torch.tensor([4, 2, 1]))
    model = nn.GRU(5, 4)
    trace = endoscope.trace(model, (packed,))
    plain, _ = model(packed)
    assert identical(trace.result[0].data, plain.data)
    assert only(trace, "gru").label in ancestors(trace.outputs[0])
    proves(model, (packed,))


@pytest.mark.parametrize("mask", ["none", "causal", "tensor", "dropout"])
def test_scaled_dot_product_attention(mask: str) -> None:
    options: dict[str, dict[str, Any]] = {
        "none": {},
        "causal": {"is_causal": True},
        "tensor": {"attn_mask": torch.eye(3, dtype=torch.bool)},
        "dropout": {"dropout_p": 0.5},
    }

    def target(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, **options[mask])

    inputs = tuple(torch.rand(2, 2, 3, 4) for _ in range(3))
    trace = endoscope.trace(target, inputs)
    assert {"input_1_0", "input_2_1", "input_3_2"} <= ancestors(trace.outputs[0])
    assert identical(only(trace, "scaled_dot_product_attention").value, trace.result)
    proves(target, inputs)


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("need_weights", [True, False])
def test_multihead_attention(training: bool, need_weights: bool) -> None:
    model = nn.MultiheadAttention(8, 2, batch_first=True).train(training)
    x = torch.rand(2, 3, 8)

    def target(x: Tensor) -> Tensor:
        result: Tensor = model(x, x, x, need_weights=need_weights)[0]
        return result

    with torch.set_grad_enabled(training):
        plain = target(x)
        trace = endoscope.trace(target, x)
        proves(target, x)
    assert identical(trace.result, plain)
    assert trace.complete is True
    if training:
        assert ("softmax" in types(trace.ops)) is need_weights


@pytest.mark.parametrize("padded", [False, True])
def test_the_fast_path_of_the_encoder_is_what_is_recorded(padded: bool) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    inputs: dict[str, Tensor] = {"src": torch.rand(2, 3, 8)}
    if padded:
        inputs["src_key_padding_mask"] = torch.tensor([[False, False, True], [False, False, False]])
    with torch.no_grad():
        plain = model(**inputs)
        trace = endoscope.trace(model, inputs)
        proves(model, inputs)
    assert identical(trace.result, plain)
    fused = [op for op in trace.ops if "transformer_encoder_layer" in op.type]
    assert len(fused) == 2
    assert fused[0].label in ancestors(fused[1])
    assert "layers.1.linear1.weight" in labels(fused[1].parents)


@pytest.mark.filterwarnings("ignore:.*nested tensors is in prototype.*:UserWarning")
def test_the_fast_path_through_nested_tensors() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 1, enable_nested_tensor=True).eval()
    inputs = {
        "src": torch.rand(2, 3, 8),
        "src_key_padding_mask": torch.tensor([[False, False, True], [False, False, False]]),
    }
    with torch.no_grad():
        trace = endoscope.trace(model, inputs)
        assert identical(trace.result, model(**inputs))
        proves(model, inputs)


def test_the_encoder_in_training() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    trace = endoscope.trace(model, torch.rand(2, 3, 8))
    assert types(trace.ops).count("layer_norm") == 4
    assert trace["layers.1.linear1"].type == "linear"
    assert trace.complete is True
    proves(model, torch.rand(2, 3, 8))


def test_an_attention_block_in_detail() -> None:
    model, x = AttentionBlock(), torch.rand(2, 3, 8)
    trace = endoscope.trace(model, x)
    assert only(trace, "softmax").label in ancestors(trace.outputs[0])
    assert torch.allclose(only(trace, "softmax").value.sum(-1), torch.ones(4, 3))
    assert "attention.in_proj_weight" in ancestors(only(trace, "softmax"))
    proves(model, x)


@pytest.fixture(scope="module")
def tiny_gpt2() -> nn.Module:
    """Two layers, eight wide, seventeen tokens."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        n_layer=2,
        n_head=2,
        n_embd=8,
        vocab_size=17,
        n_positions=16,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
    )
    return GPT2LMHeadModel(config).eval()


IDS = torch.tensor([[2, 3, 4, 5]])


def test_a_language_model(tiny_gpt2: nn.Module) -> None:
    with torch.no_grad():
        trace = endoscope.trace(tiny_gpt2, {"input_ids": IDS, "attention_mask": torch.ones_like(IDS)})
    assert trace.recurrent is False
    assert trace.max_passes == 1
    assert trace.complete is True
    assert list(trace.warnings) == []
    assert any("logits" in str(op) for op in trace.outputs)
    assert any(name.startswith("transformer.h.1.attn") for op in trace.ops for name in op.modules)
    with torch.no_grad():
        proves(tiny_gpt2, {"input_ids": IDS})


def test_a_language_model_in_the_general_form(tiny_gpt2: nn.Module) -> None:
    with endoscope.tracing(tiny_gpt2, gradients=True) as trace:
        tiny_gpt2(IDS, attention_mask=torch.ones_like(IDS), labels=IDS).loss.backward()
    assert trace["transformer.ln_f"].gradient.shape == (1, 4, 8)
    assert any("loss" in str(op) for op in trace.outputs)
    tiny_gpt2.zero_grad()


@pytest.mark.parametrize("sample", [False, True], ids=["greedy", "sampled"])
def test_generate(tiny_gpt2: Any, sample: bool) -> None:
    def target(ids: Tensor) -> Tensor:
        mask = torch.ones_like(ids)
        result: Tensor = tiny_gpt2.generate(ids, attention_mask=mask, max_new_tokens=2, do_sample=sample)
        return result

    torch.manual_seed(6)
    plain = target(IDS)
    torch.manual_seed(6)
    trace = endoscope.trace(target, IDS)
    assert torch.equal(trace.result, plain)
    assert trace.max_passes >= 2
    assert "input_1_0" in ancestors(trace.outputs[0])
    proves(target, IDS)
