"""How many floating point operations one call takes, from the shapes of its arguments alone.

    count_flops(type, args, kwargs, outputs) ──► RULES[type](Call) ──► int, or None if nobody can say

One multiply-add is 2 FLOPs. An element-wise function is 1 per output element, whatever goes on inside, a
reduction 1 per input element. What only moves or makes values is 0. What rests on matrix products (attention,
recurrent layers) counts these products alone, as `torch.utils.flop_counter` does. A new rule is one function
under `@counts(names)`, its slow twin in the tests and one line in `docs/reference/flops.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from math import isqrt, prod
from typing import Any, NamedTuple


class Shape(tuple[int, ...]):
    """Stands for a tensor in the arguments of a call."""

    __slots__ = ()


class Call(NamedTuple):
    """One call of a torch function, as a rule sees it."""

    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    outputs: Sequence[tuple[int, ...]]

    def get(self, position: int, *names: str, default: Any = None) -> Any:
        """The argument, wherever it stands; torch spells some names in two ways."""
        if position < len(self.args):
            return self.args[position]
        return next((self.kwargs[name] for name in names if name in self.kwargs), default)

    def shape(self, position: int, *names: str) -> Shape:
        """The same for a tensor, without which the rule cannot count."""
        value = self.get(position, *names)
        if not isinstance(value, Shape):
            raise TypeError(f"argument {position} is no tensor but {value!r}")
        return value

    def out_size(self) -> int:
        return prod(self.outputs[0])


Rule = Callable[[Call], int]
RULES: dict[str, Rule] = {}  # plain name of a torch function -> how to count it


def count_flops(
    type: str, args: Sequence[Any], kwargs: Mapping[str, Any], outputs: Sequence[tuple[int, ...]]
) -> int | None:
    """FLOPs of one call, or None if there is no rule for it or the rule does not understand the arguments.

    `type` is the plain name of the torch function; every tensor in `args` and `kwargs` is a `Shape`.
    """
    rule = RULES.get(type) or RULES.get(type.removeprefix("special_"))
    if rule is None:
        return None
    try:
        return rule(Call(args, kwargs, outputs))
    except Exception:  # an overload nobody thought of may cost a number, never the trace
        return None


def counts(*names: str) -> Callable[[Rule], Rule]:
    """Register the rule for these functions."""

    def register(rule: Rule) -> Rule:
        for name in names:
            assert name not in RULES, f"two rules for {name}"
            RULES[name] = rule
        return rule

    return register


# ---- no arithmetic
VIEWS = """H T adjoint as_strided broadcast_tensors broadcast_to chunk conj data detach diagonal dsplit expand
    expand_as flatten getitem hsplit imag linalg_diagonal mH mT moveaxis movedim narrow permute ravel real
    reshape reshape_as select split split_with_sizes squeeze swapaxes swapdims t tensor_split transpose unbind
    unflatten unfold unsafe_split unsqueeze view view_as view_as_complex view_as_real vsplit""".split()
COPIES = """_pack_padded_sequence _pad_packed_sequence as_strided_scatter atleast_1d atleast_2d atleast_3d
    bfloat16 block_diag bool byte cat channel_shuffle char clone column_stack complex concat concatenate
    constant_pad_nd contiguous copy cpu cuda diag diag_embed diagflat diagonal_scatter double dstack flip
    fliplr flipud float half hstack im2col int long meshgrid native_channel_shuffle pad pad_sequence
    pixel_shuffle pixel_unshuffle repeat repeat_interleave resize resolve_conj resolve_neg roll rot90
    row_stack select_scatter set short slice_scatter stack tile to to_dense tril triu type type_as
    upsample_nearest1d upsample_nearest2d upsample_nearest3d vstack""".split()
INDEXING = """argwhere embedding fill_diagonal gather index index_copy index_fill index_select masked_fill
    masked_scatter masked_select max_unpool1d max_unpool2d max_unpool3d nonzero one_hot scatter setitem
    take take_along_dim where""".split()
FACTORIES = """arange as_tensor asarray bernoulli cauchy empty empty_like empty_permuted empty_strided
    exponential eye fill from_numpy full full_like geometric linspace log_normal logspace new_empty
    new_empty_strided new_full new_ones new_tensor new_zeros normal ones ones_like rand rand_like randint
    randint_like randn randn_like random randperm scalar_tensor sparse_coo_tensor tensor tril_indices
    triu_indices uniform zero zeros zeros_like""".split()

counts(*VIEWS, *COPIES, *INDEXING, *FACTORIES)(lambda call: 0)

# ---- element by element
ELEMENTWISE = """abs acos acosh add addcdiv addcmul angle asin asinh atan atan2 atanh bitwise_and
    bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil celu clamp clamp_max
    clamp_min clip copysign cos cosh dequantize digamma div divide elu eq erf erfc erfinv exp exp2 expit expm1
    float_power floor floor_divide fmax fmin fmod frac ge gelu glu gt hardshrink hardsigmoid hardswish
    hardtanh heaviside hypot i0 isclose isfinite isinf isnan isneginf isposinf kron ldexp le leaky_relu lerp
    lgamma log log10 log1p log2 log_sigmoid logaddexp logaddexp2 logical_and logical_not logical_or
    logical_xor logit logsigmoid lt maximum minimum mish mul multiply nan_to_num ne neg negative outer polar
    pos positive pow prelu quantize_per_channel quantize_per_tensor reciprocal relu relu6 remainder rfloordiv
    rmod round rpow rrelu rsqrt rsub rtruediv selu sgn sigmoid sign silu sin sinc sinh softplus softshrink
    softsign sqrt square sub subtract tan tanh tanhshrink threshold true_divide trunc xlogy""".split()
LOSSES = """binary_cross_entropy binary_cross_entropy_with_logits huber_loss kl_div l1_loss mse_loss
    poisson_nll_loss smooth_l1_loss soft_margin_loss""".split()

counts(*ELEMENTWISE)(Call.out_size)


@counts(*LOSSES)
def _pointwise_loss(call: Call) -> int:
    size = _broadcast_size(call.shape(0, "input"), call.shape(1, "target"))
    return size if call.out_size() == size else 2 * size  # the second half is the sum over all elements


def _broadcast_size(left: Shape, right: Shape) -> int:
    pairs = zip_longest(reversed(left), reversed(right), fillvalue=1)
    return prod(b if a == 1 else a for a, b in pairs)


counts("alpha_dropout", "dropout", "feature_alpha_dropout", "feature_dropout", "native_dropout")(
    lambda call: call.out_size() if call.get(2, "training", "train", default=True) else 0
)
counts("cosine_similarity")(  # three products of vectors: of both inputs, and of each with itself
    lambda call: 6 * _broadcast_size(call.shape(0, "x1"), call.shape(1, "x2"))
)

# ---- reductions
#: Steps per input element -> the functions that take so many; the documentation says which steps.
STEPS = {
    1: """all amax amin any argmax argmin col2im count_nonzero cummax cummin cumprod cumsum fold logcumsumexp
        mean nanmean nansum prod sum""",
    2: "aminmax linalg_vector_norm",
    3: "normalize _weight_norm",
    4: "logsumexp rms_norm std std_mean var var_mean",
    5: "softmax log_softmax cross_entropy cross_entropy_loss",
    7: "group_norm instance_norm layer_norm native_group_norm native_layer_norm",
}


def _per_input_element(call: Call, steps: int) -> int:
    return steps * prod(call.shape(0, "input", "self"))


for _steps, _reductions in STEPS.items():
    counts(*_reductions.split())(partial(_per_input_element, steps=_steps))
counts("batch_norm")(lambda call: _per_input_element(call, 7 if call.get(5, "training") else 4))
counts("nll_loss", "nll_loss_nd")(lambda call: prod(call.shape(1, "target")))
counts("scatter_add", "scatter_reduce")(lambda call: prod(call.shape(2, "index")))
counts("index_add")(lambda call: prod(call.shape(3, "source")))


@counts("max", "min")
def _extremum(call: Call) -> int:
    return call.out_size() if isinstance(call.get(1, "other"), Shape) else _per_input_element(call, 1)


@counts("norm")
def _norm(call: Call) -> int:
    if call.get(1, "p") == "nuc":
        raise NotImplementedError("singular values are needed")
    return _per_input_element(call, 2)


@counts("embedding_bag")
def _embedding_bag(call: Call) -> int:
    first, second = call.shape(0, "input"), call.shape(1, "weight")
    indices = second if len(second) == 1 else first  # torch.embedding_bag takes the weight first
    return prod(indices) * call.outputs[0][-1]


def _pool(call: Call, dims: int) -> int:
    kernel = call.get(1, "kernel_size")
    sizes = [kernel] if isinstance(kernel, int) else list(kernel)
    window: int = prod(sizes * (dims // len(sizes)))
    return call.out_size() * window


def _adaptive_pool(call: Call, dims: int) -> int:
    """Windows that do not divide the input overlap, so each is measured."""
    shape, out = call.shape(0, "input"), call.outputs[0]
    windows = [
        sum(-(-(i + 1) * size // bins) - i * size // bins for i in range(bins))
        for size, bins in zip(shape[-dims:], out[-dims:], strict=True)
    ]
    return prod(shape[:-dims]) * prod(windows)


for _dims in (1, 2, 3):
    _pools = (f"max_pool{_dims}d", f"max_pool{_dims}d_with_indices", f"avg_pool{_dims}d")
    counts(*_pools)(partial(_pool, dims=_dims))
    counts(*(f"adaptive_{name}" for name in _pools))(partial(_adaptive_pool, dims=_dims))

# ---- weighted sums and matrix products; a bias is the start of the sum and costs nothing
counts("linear", "matmul", "linalg_matmul", "mm", "bmm", "mv", "dot", "vdot", "inner")(
    lambda call: 2 * call.out_size() * call.shape(0, "input", "self")[-1]
)
counts("addmm", "addbmm", "baddbmm")(  # addbmm sums over the batch: its output is too small to count with
    lambda call: 2 * prod(call.shape(1, "mat1", "batch1")) * call.shape(2, "mat2", "batch2")[-1]
)
counts("_grouped_mm", "grouped_mm")(  # whichever of the three sizes is split among the groups
    lambda call: 2 * min(call.out_size() * call.shape(0)[-1], prod(call.shape(0)) * call.shape(1)[-1])
)
counts("addmv")(lambda call: 2 * prod(call.shape(1, "mat")))
counts("bilinear")(  # the first input times the weight, then the result times the second input
    lambda call: 2 * call.out_size() * (call.shape(0, "input1")[-1] + 1) * call.shape(1, "input2")[-1]
)
counts("cdist")(lambda call: 3 * call.out_size() * call.shape(0, "x1")[-1])
counts("conv1d", "conv2d", "conv3d")(lambda call: 2 * call.out_size() * prod(call.shape(1, "weight")[1:]))
counts("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")(
    lambda call: 2 * prod(call.shape(0, "input")) * prod(call.shape(1, "weight")[1:])
)
counts("upsample_linear1d")(lambda call: 2 * call.out_size() * 2)
counts("upsample_bilinear2d")(lambda call: 2 * call.out_size() * 4)
counts("upsample_trilinear3d")(lambda call: 2 * call.out_size() * 8)
counts("upsample_bicubic2d")(lambda call: 2 * call.out_size() * 16)


@counts("tensordot")
def _tensordot(call: Call) -> int:
    both, out = prod(call.shape(0, "a", "self")) * prod(call.shape(1, "b", "other")), call.out_size()
    inner = isqrt(both // out) if both else 0  # |a| · |b| = |out| · inner²
    if out * inner * inner != both:
        raise NotImplementedError("a contracted dimension was broadcast")
    return 2 * out * inner


@counts("einsum")
def _einsum(call: Call) -> int:
    """One or two operands; with more, the order of the products depends on what is installed."""
    inputs, arrow, result = call.args[0].replace(" ", "").replace("...", ".").partition("->")
    operands = call.args[1:] if isinstance(call.args[1], Shape) else call.args[1]
    if len(operands) > 2:
        raise NotImplementedError
    left, right = [*map(_sizes_by_label, inputs.split(","), operands), {}][:2]
    kept = set(result if arrow else (label for label in inputs if inputs.count(label) == 1))
    if "." in result or not arrow:
        kept.update("0123456789")
    alone = (left.keys() ^ right.keys()) - kept  # labels of one operand only: summed before the product
    sums = sum(prod(term.values()) for term in (left, right) if term.keys() & alone)
    if len(operands) == 1:
        return sums
    product = prod(size for label, size in (left | right).items() if label not in alone)
    return sums + (2 if (left.keys() & right.keys()) - kept else 1) * product


def _sizes_by_label(term: str, shape: Shape) -> dict[str, int]:
    """Dimensions under `...` are numbered from the right; those of size 1 broadcast and cost nothing."""
    dots = "".join(map(str, reversed(range(len(shape) - len(term) + 1))))
    return {label: n for label, n in zip(term.replace(".", dots), shape, strict=True) if n != 1}


@counts("scaled_dot_product_attention")
def _attention(call: Call) -> int:
    query, key, out = call.shape(0, "query"), call.shape(1, "key"), call.outputs[0]
    return 2 * prod(out[:-1]) * key[-2] * (query[-1] + out[-1])


@counts("_native_multi_head_attention")
def _multi_head_attention(call: Call) -> int:
    """Batch first, all of one width; the heads share the width, so their number does not matter."""
    (batch, length, width), source = call.shape(0, "query"), call.shape(1, "key")[1]
    projections = 2 * batch * (2 * length + 2 * source) * width * width
    return projections + 4 * batch * length * source * width


@counts("_transformer_encoder_layer_fwd")
def _encoder_layer(call: Call) -> int:
    source = call.shape(0, "src")
    feed_forward = prod(call.shape(14, "ffn_weight_1")) + prod(call.shape(16, "ffn_weight_2"))
    return _multi_head_attention(Call((source, source), {}, ())) + 2 * prod(source[:-1]) * feed_forward


@counts("lstm", "gru", "rnn_tanh", "rnn_relu")
def _recurrent(call: Call) -> int:
    """Every time step of every sequence meets every weight matrix of every layer and direction once."""
    tokens = prod(call.shape(0, "input", "data")[:-1])
    lists = [arg for arg in call.args if isinstance(arg, list | tuple) and not isinstance(arg, Shape)]
    weights: list[Shape] = [shape for shapes in lists for shape in shapes if len(shape) == 2]
    return 2 * tokens * sum(map(prod, weights))  # biases have one dimension, states three


@counts("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell")
def _recurrent_cell(call: Call) -> int:
    weights = prod(call.shape(2, "w_ih")) + prod(call.shape(3, "w_hh"))
    return 2 * prod(call.shape(0, "input")[:-1]) * weights
