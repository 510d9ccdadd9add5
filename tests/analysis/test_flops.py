"""FLOPs of real calls, against torch's own counter where it counts and against sums by hand elsewhere."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

from endoscope.analysis import flops
from endoscope.analysis.flops import RULES, Shape, count_flops
from tests.house.pages import prose
from tests.house.tree import ROOT, run_python

randn = torch.randn


class SmallRecorder(TorchFunctionMode):
    """Counts every call that returns tensors: a list of (plain name, FLOPs)."""

    def __init__(self) -> None:
        super().__init__()
        self.recorded: list[tuple[str, int | None]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        outputs = [tuple(t.shape) for t in _flatten(result) if isinstance(t, Tensor)]
        if outputs:
            flops = count_flops(_plain(func), _shapes(args), _shapes(kwargs or {}), outputs)
            self.recorded.append((_plain(func), flops))
        return result


def _plain(func: Any) -> str:
    name = func.__self__.__name__ if func.__name__ == "__get__" else func.__name__
    return name[2:-2] if name.startswith("__") else name.removesuffix("_")


def _flatten(value: Any) -> list[Any]:
    return [leaf for item in value for leaf in _flatten(item)] if isinstance(value, list | tuple) else [value]


def _shapes(value: Any) -> Any:
    if isinstance(value, Tensor):
        return Shape(value.shape)
    if isinstance(value, dict):
        return {key: _shapes(item) for key, item in value.items()}
    return type(value)(map(_shapes, value)) if type(value) in (list, tuple) else value


def ours(type_: str, run: Callable[[], Any]) -> int:
    """Our count of all calls of one type; all other calls must have a count too."""
    with SmallRecorder() as recorder:
        run()
    assert type_ in [name for name, _ in recorder.recorded]
    assert not [name for name, count in recorder.recorded if count is None]
    return sum(count for name, count in recorder.recorded if name == type_)


def theirs(run: Callable[[], Any]) -> int:
    """The count of torch; it knows nothing about the fused attention of the CPU, so that is switched off."""
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


# ---- equal to torch's counter

CONVOLUTIONS = {
    "conv1d": (nn.Conv1d(4, 6, 3, stride=2), (2, 4, 11)),
    "conv2d": (nn.Conv2d(3, 8, (3, 5), padding=1, bias=False), (2, 3, 9, 10)),
    "conv2d grouped": (nn.Conv2d(4, 8, 3, groups=2, dilation=2), (2, 4, 9, 9)),
    "conv2d depthwise": (nn.Conv2d(4, 8, 3, groups=4, padding="same"), (1, 4, 7, 7)),
    "conv2d reflecting": (nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect"), (1, 2, 7, 7)),
    "conv2d unbatched": (nn.Conv2d(4, 8, 3), (4, 9, 9)),
    "conv3d": (nn.Conv3d(2, 3, 2), (2, 2, 4, 5, 6)),
    "conv_transpose1d": (nn.ConvTranspose1d(4, 6, 3), (2, 4, 5)),
    "conv_transpose2d": (nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1), (2, 4, 5, 6)),
    "conv_transpose2d grouped": (nn.ConvTranspose2d(4, 6, 3, groups=2, dilation=2), (2, 4, 5, 6)),
    "conv_transpose2d unbatched": (nn.ConvTranspose2d(4, 6, 3), (4, 5, 6)),
    "conv_transpose3d": (nn.ConvTranspose3d(2, 3, 2), (1, 2, 3, 4, 5)),
}


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolutions(case: str) -> None:
    layer, shape = CONVOLUTIONS[case]
    x = randn(shape)
    assert ours(case.split()[0], lambda: layer(x)) == theirs(lambda: layer(x)) > 0


PRODUCTS: dict[str, tuple[Callable[..., Tensor], list[tuple[int, ...]]]] = {
    "linear": (F.linear, [(2, 3, 5), (7, 5), (7,)]),
    "linear flat": (F.linear, [(5, 4), (7, 4)]),
    "linear by name": (lambda x, w: F.linear(weight=w, input=x), [(3, 5), (7, 5)]),
    "matmul": (torch.matmul, [(3, 4), (4, 5)]),
    "matmul operator": (lambda a, b: a @ b, [(2, 3, 4), (4, 5)]),
    "matmul broadcast left": (torch.matmul, [(3, 4), (7, 4, 5)]),
    "matmul broadcast both": (torch.matmul, [(2, 1, 3, 4), (5, 4, 6)]),
    "matmul empty": (lambda a, b: a @ b, [(3, 0), (0, 5)]),
    "mm": (torch.mm, [(3, 4), (4, 5)]),
    "bmm": (torch.bmm, [(2, 3, 4), (2, 4, 5)]),
    "addmm": (torch.addmm, [(5,), (3, 4), (4, 5)]),
    "addmm by name": (lambda c, a, b: torch.addmm(c, mat2=b, mat1=a), [(3, 5), (3, 4), (4, 5)]),
    "baddbmm": (torch.baddbmm, [(2, 3, 5), (2, 3, 4), (2, 4, 5)]),
    "tensordot": (lambda a, b: torch.tensordot(a, b, dims=2), [(3, 4, 5), (4, 5, 6)]),
    "tensordot lists": (lambda a, b: torch.tensordot(a, b, ([0], [1])), [(3, 4), (5, 3)]),
    "einsum": (lambda a, b: torch.einsum("bij,bjk->bik", a, b), [(2, 3, 4), (2, 4, 5)]),
    "einsum heads": (lambda a, b: torch.einsum("bihd, bjhd -> bhij", a, b), [(2, 3, 4, 5), (2, 6, 4, 5)]),
    "einsum dots": (lambda a, b: torch.einsum("...ij,jk", a, b), [(7, 2, 3), (3, 5)]),
    "einsum all": (lambda a, b: torch.einsum("ij,ij->", a, b), [(2, 3), (2, 3)]),
    "einsum lists": (lambda a, b: torch.einsum(a, [0, 1], b, [1, 2], [0, 2]), [(2, 3), (3, 4)]),
    "einsum one list": (lambda a, b: torch.einsum("ij,jk->ik", [a, b]), [(2, 3), (3, 4)]),
}


@pytest.mark.parametrize("case", PRODUCTS)
def test_matrix_products(case: str) -> None:
    run, shapes = PRODUCTS[case]
    tensors = [randn(shape) for shape in shapes]
    assert ours(case.split()[0], lambda: run(*tensors)) == theirs(lambda: run(*tensors))


@given(st.data())
def test_random_broadcast_of_matmul(data: st.DataObject) -> None:
    m, k, n = (data.draw(st.integers(1, 4)) for _ in "mkn")
    batch = data.draw(st.lists(st.integers(1, 3), max_size=3))
    left = [data.draw(st.sampled_from([1, size])) for size in batch]
    right = batch[data.draw(st.integers(0, len(batch))) :]
    a, b = randn(*left, m, k), randn(*right, k, n)
    assert ours("matmul", lambda: a @ b) == theirs(lambda: a @ b) == 2 * (a @ b).numel() * k


ATTENTION: dict[str, tuple[list[tuple[int, ...]], dict[str, Any]]] = {
    "plain": ([(2, 4, 5, 8), (2, 4, 6, 8), (2, 4, 6, 8)], {}),
    "other width of values": ([(2, 4, 5, 8), (2, 4, 6, 8), (2, 4, 6, 3)], {}),
    "three dimensions": ([(4, 5, 8), (4, 6, 8), (4, 6, 8)], {}),
    "keys broadcast": ([(2, 4, 5, 8), (1, 4, 6, 8), (1, 4, 6, 8)], {}),
    "causal": ([(2, 4, 5, 8), (2, 4, 5, 8), (2, 4, 5, 8)], {"is_causal": True}),
    "grouped": ([(2, 4, 5, 8), (2, 2, 6, 8), (2, 2, 6, 8)], {"enable_gqa": True}),
}


@pytest.mark.parametrize("case", ATTENTION)
def test_attention(case: str) -> None:
    shapes, options = ATTENTION[case]
    q, k, v = map(randn, shapes)

    def run() -> Tensor:
        return F.scaled_dot_product_attention(q, k, value=v, **options)

    assert ours("scaled_dot_product_attention", run) == theirs(run)


RECURRENT = {
    "lstm": (nn.LSTM(5, 7, 2, bidirectional=True), (6, 3, 5)),
    "lstm batch first": (nn.LSTM(5, 7, bias=False, batch_first=True), (3, 6, 5)),
    "lstm projected": (nn.LSTM(5, 7, 2, proj_size=4), (6, 3, 5)),
    "gru": (nn.GRU(5, 7, 2), (6, 3, 5)),
    "gru unbatched": (nn.GRU(5, 7), (6, 5)),
    "rnn_tanh": (nn.RNN(5, 7), (6, 3, 5)),
    "rnn_relu": (nn.RNN(5, 7, nonlinearity="relu"), (6, 3, 5)),
    "lstm_cell": (nn.LSTMCell(5, 7), (3, 5)),
    "gru_cell": (nn.GRUCell(5, 7), (3, 5)),
    "rnn_tanh_cell": (nn.RNNCell(5, 7), (3, 5)),
}


@pytest.mark.parametrize("case", RECURRENT)
def test_recurrent_layers(case: str) -> None:
    layer, shape = RECURRENT[case]
    layer, x = (
        layer.double(),
        randn(shape).double(),
    )  # for single precision torch takes a kernel it cannot count
    assert ours(case.split()[0], lambda: layer(x)) == theirs(lambda: layer(x)) > 0


def test_a_packed_sequence_counts_only_the_steps_it_has() -> None:
    layer = nn.LSTM(5, 7).double()
    packed = nn.utils.rnn.pack_sequence([randn(4, 5).double(), randn(2, 5).double()])
    assert ours("lstm", lambda: layer(packed)) == theirs(lambda: layer(packed)) == 2 * 6 * 4 * 7 * (5 + 7)


def test_fast_paths_of_the_encoder_cost_what_the_slow_path_costs() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 32, batch_first=True).eval()
    attention, x = layer.self_attn, randn(2, 5, 8)
    weights = (
        attention.in_proj_weight,
        attention.in_proj_bias,
        attention.out_proj.weight,
        attention.out_proj.bias,
    )
    norms = layer.norm1.weight, layer.norm1.bias, layer.norm2.weight, layer.norm2.bias
    feed_forward = layer.linear1.weight, layer.linear1.bias, layer.linear2.weight, layer.linear2.bias

    def fast_attention() -> Any:
        return torch._native_multi_head_attention(x, x, x, 8, 2, *weights)

    def fast_layer() -> Any:
        return torch._transformer_encoder_layer_fwd(x, 8, 2, *weights, False, False, 1e-5, *norms, *feed_forward)

    # With gradients switched on both modules take the slow path, which torch's counter can follow.
    slow_attention, slow_layer = theirs(lambda: attention(x, x, x)), theirs(lambda: layer(x))
    with torch.no_grad():
        assert ours("_native_multi_head_attention", fast_attention) == slow_attention
        assert ours("_transformer_encoder_layer_fwd", fast_layer) == slow_layer


def test_a_whole_network_agrees_with_torch() -> None:
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
    )
    x = randn(2, 3, 8, 8)
    with SmallRecorder() as recorder:
        net(x)
    counted = dict(recorder.recorded)
    assert counted["conv2d"] + counted["linear"] == theirs(lambda: net(x))
    plane = 2 * 8 * 6 * 6
    assert counted["batch_norm"] == 7 * plane
    assert counted["relu"] == counted["adaptive_avg_pool2d"] == plane
    assert counted["flatten"] == 0


# ---- products that torch's counter leaves out, summed by hand


def grouped_mm(left: tuple[int, ...], right: tuple[int, ...]) -> Tensor:
    """Three groups; the kernel wants its right matrix column by column."""
    a, b = randn(left).bfloat16(), randn(right).bfloat16()
    ends = torch.tensor([4, 8, 16], dtype=torch.int32)
    return torch._grouped_mm(a, b.mT.contiguous().mT, offs=ends)


@pytest.mark.parametrize(
    ("type_", "run", "expected"),
    [
        ("dot", lambda: torch.dot(randn(5), randn(5)), 10),
        ("matmul", lambda: randn(5) @ randn(5), 10),
        ("matmul", lambda: randn(3, 5) @ randn(5), 2 * 3 * 5),
        ("matmul", lambda: randn(5) @ randn(7, 5, 3), 2 * 7 * 3 * 5),
        ("mv", lambda: torch.mv(randn(3, 5), randn(5)), 2 * 3 * 5),
        ("addmv", lambda: torch.addmv(randn(3), randn(3, 5), randn(5)), 2 * 3 * 5),
        ("inner", lambda: torch.inner(randn(2, 5), randn(4, 5)), 2 * 2 * 4 * 5),
        ("addmm", lambda: torch.zeros(3, 5).addmm_(randn(3, 4), randn(4, 5), beta=0.5), 2 * 3 * 4 * 5),
        ("addbmm", lambda: torch.addbmm(randn(3, 5), randn(2, 3, 4), randn(2, 4, 5)), 2 * 2 * 3 * 4 * 5),
        ("_grouped_mm", lambda: grouped_mm((16, 32), (3, 32, 8)), 2 * 16 * 32 * 8),
        ("_grouped_mm", lambda: grouped_mm((32, 16), (16, 8)), 2 * 32 * 16 * 8),
        ("_grouped_mm", lambda: grouped_mm((3, 8, 32), (32, 16)), 2 * 8 * 32 * 16),
        ("outer", lambda: torch.outer(randn(2), randn(3)), 6),
        ("bilinear", lambda: F.bilinear(randn(6, 3), randn(6, 4), randn(5, 3, 4)), 2 * 6 * 5 * (3 * 4 + 4)),
        ("cdist", lambda: torch.cdist(randn(3, 2), randn(4, 2)), 3 * 3 * 4 * 2),
        (
            "cosine_similarity",
            lambda: F.cosine_similarity(randn(3, 1, 5), randn(4, 5), dim=-1),
            6 * 3 * 4 * 5,
        ),
        ("einsum", lambda: torch.einsum("i,j->ij", randn(2), randn(3)), 6),
        ("einsum", lambda: torch.einsum("ij->j", randn(2, 3)), 6),
        ("einsum", lambda: torch.einsum("ij->ji", randn(2, 3)), 0),
        ("einsum", lambda: torch.einsum("ii", randn(3, 3)), 3),
        ("einsum", lambda: torch.einsum("ijx,jk->ik", randn(2, 3, 4), randn(3, 5)), 24 + 2 * 2 * 3 * 5),
        ("einsum", lambda: torch.einsum("...i,...i", randn(2, 1, 5), randn(4, 5)), 2 * 2 * 4 * 5),
    ],
)
def test_other_products(type_: str, run: Callable[[], Tensor], expected: int) -> None:
    assert ours(type_, run) == expected


# ---- element by element, reductions, windows


@pytest.mark.parametrize(
    ("type_", "run", "expected"),
    [
        ("add", lambda x: x + randn(2, 1, 1), 24),
        ("add", lambda x: x.clone().add_(1), 12),
        ("rsub", lambda x: 1 - x, 12),
        ("relu", lambda x: F.relu(x), 12),
        ("gelu", lambda x: F.gelu(x), 12),
        ("gt", lambda x: x > 0, 12),
        ("special_expit", lambda x: torch.special.expit(x), 12),
        ("glu", lambda x: F.glu(x), 6),
        ("dropout", lambda x: F.dropout(x), 12),
        ("dropout", lambda x: nn.Dropout().eval()(x), 0),
        ("sum", lambda x: x.sum(), 12),
        ("mean", lambda x: x.mean(0), 12),
        ("max", lambda x: x.max(), 12),
        ("max", lambda x: torch.max(x, 1), 12),
        ("max", lambda x: torch.max(x, randn(2, 1, 1)), 24),
        ("norm", lambda x: x.norm(2, -1), 24),
        ("var", lambda x: x.var(), 48),
        ("logsumexp", lambda x: x.logsumexp(1), 48),
        ("softmax", lambda x: x.softmax(-1), 60),
        ("log_softmax", lambda x: F.log_softmax(x, dim=-1), 60),
        ("layer_norm", lambda x: F.layer_norm(x, (4,)), 84),
        ("group_norm", lambda x: F.group_norm(x, 2), 84),
        ("rms_norm", lambda x: F.rms_norm(x, (4,)), 48),
        ("batch_norm", lambda x: F.batch_norm(x, None, None, training=True), 84),
        ("batch_norm", lambda x: F.batch_norm(x, torch.zeros(4), torch.ones(4)), 48),
        ("mse_loss", lambda x: F.mse_loss(x, x), 24),
        ("mse_loss", lambda x: F.mse_loss(x, x, reduction="none"), 12),
        ("cross_entropy", lambda x: F.cross_entropy(x, torch.tensor([0, 1, 2])), 60),
        ("nll_loss", lambda x: F.nll_loss(x, torch.tensor([0, 1, 2])), 3),
        ("index_add", lambda x: x.index_add(0, torch.tensor([0, 0]), randn(2, 4)), 8),
        ("scatter_add", lambda x: x.scatter_add(0, torch.zeros(1, 4, dtype=torch.long), x), 4),
        ("embedding", lambda x: F.embedding(torch.tensor([0, 1]), x), 0),
        ("embedding_bag", lambda x: F.embedding_bag(torch.tensor([[0, 1, 2]]), x), 12),
        ("embedding_bag", lambda x: F.embedding_bag(torch.tensor([0, 1, 2]), x, torch.tensor([0, 1])), 12),
        ("view", lambda x: x.view(-1), 0),
        ("T", lambda x: x.T, 0),
        ("getitem", lambda x: x[1:], 0),
        ("cat", lambda x: torch.cat([x, x]), 0),
        ("to", lambda x: x.to(torch.float64), 0),
        ("where", lambda x: torch.where(x > 0, x, 0.0), 0),
        ("zeros", lambda x: torch.zeros(3), 0),
        (
            "upsample_bilinear2d",
            lambda x: torch._C._nn.upsample_bilinear2d(x[None, None], (6, 8), False),
            8 * 48,
        ),
    ],
)
def test_by_hand(type_: str, run: Callable[[Tensor], Any], expected: int) -> None:
    x = randn(3, 4)
    assert ours(type_, lambda: run(x)) == expected


@pytest.mark.parametrize(
    ("layer", "window"),
    [
        (nn.MaxPool1d(3), 3),
        (nn.MaxPool2d(2), 4),
        (nn.MaxPool2d(3, 2, 1, return_indices=True), 9),
        (nn.AvgPool2d((2, 3), stride=1), 6),
        (nn.AvgPool3d(2), 8),
    ],
)
def test_pooling_looks_at_every_element_of_every_window(layer: nn.Module, window: int) -> None:
    x = randn(2, 3, *[7] * int(type(layer).__name__[-2]))
    with SmallRecorder() as recorder:
        out = layer(x)
    size = (out[0] if isinstance(out, tuple) else out).numel()
    assert recorder.recorded[-1][1] == size * window


@pytest.mark.parametrize(("size", "bins"), [((6, 8), (3, 2)), ((7, 5), (3, 4)), ((2, 3), (5, 3)), ((4, 4), (1, 1))])
def test_adaptive_pooling_measures_its_windows(size: tuple[int, int], bins: tuple[int, int]) -> None:
    """The twin lets torch say which inputs each output sees: those with a gradient."""
    x = randn(2, 3, *size, requires_grad=True)
    looked_at = 0
    for i, j in itertools.product(*map(range, bins)):
        (gradient,) = torch.autograd.grad(F.adaptive_avg_pool2d(x, bins)[0, 0, i, j], x)
        looked_at += int(gradient.count_nonzero())
    assert ours("adaptive_avg_pool2d", lambda: F.adaptive_avg_pool2d(x, bins)) == 2 * 3 * looked_at


# ---- what cannot be counted


@pytest.mark.parametrize(
    ("type_", "run"),
    [
        ("sort", lambda: randn(5).sort()),
        ("fft_fft", lambda: torch.fft.fft(randn(8))),
        ("linalg_svd", lambda: torch.linalg.svd(randn(3, 3))),
        ("norm", lambda: torch.norm(randn(3, 3), "nuc")),
        ("einsum", lambda: torch.einsum("ij,jk,kl->il", randn(2, 3), randn(3, 4), randn(4, 5))),
        ("tensordot", lambda: torch.tensordot(randn(2, 1), randn(3, 4), ([1], [0]))),
    ],
)
def test_unknown_is_none_and_never_a_guess(type_: str, run: Callable[[], Any]) -> None:
    with SmallRecorder() as recorder:
        run()
    assert recorder.recorded[-1] == (type_, None)


def test_a_name_nobody_knows() -> None:
    assert count_flops("frobnicate", (Shape((2, 3)),), {}, [(2, 3)]) is None


@pytest.mark.parametrize("args", [(), (3.0, "x"), (Shape((2,)), None), (None, [Shape((2, 3))])])
def test_odd_arguments_of_a_product_give_none(args: tuple[Any, ...]) -> None:
    for type_ in "conv2d addmm einsum scaled_dot_product_attention lstm_cell bilinear gru_cell".split():
        assert count_flops(type_, args, {}, [(2, 3)]) is None


ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 5) | st.text(max_size=5) | st.lists(st.integers(0, 4)).map(Shape),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)


@given(
    st.sampled_from(sorted(RULES)),
    st.lists(ODD, max_size=5),
    st.lists(st.lists(st.integers(0, 4)), max_size=2),
)
def test_no_argument_raises(type_: str, args: list[Any], outputs: list[list[int]]) -> None:
    count = count_flops(type_, args, {"input": args, "dim": None}, [tuple(shape) for shape in outputs])
    assert count is None or isinstance(count, int)


# ---- the file itself


def test_two_rules_for_one_name_are_refused() -> None:
    with pytest.raises(AssertionError, match="two rules for linear"):
        flops.counts("linear")(lambda call: 0)


def test_every_rule_is_documented() -> None:
    page = prose(ROOT / "docs/reference/flops.md")
    listed_in_bulk = {*flops.VIEWS, *flops.COPIES, *flops.INDEXING, *flops.FACTORIES, *flops.ELEMENTWISE}
    assert not [name for name in RULES if name not in listed_in_bulk and f"`{name}`" not in page]


def test_counting_needs_no_torch() -> None:
    code = "import endoscope.analysis.flops; assert 'torch' not in sys.modules"
    assert run_python(code).returncode == 0
