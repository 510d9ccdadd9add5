"""Families of functions, by the plain names that graphs give them."""

from __future__ import annotations

RECTIFIERS = frozenset("relu relu_ relu6 threshold threshold_ clamp_min hardtanh".split())
LEAKY = frozenset("leaky_relu leaky_relu_ prelu rrelu elu elu_ celu selu gelu silu mish softplus hardswish".split())
ONE_SIDED = RECTIFIERS | LEAKY | frozenset("abs exp square pow softplus".split())
SIGMOIDS = frozenset("sigmoid sigmoid_ hardsigmoid logsigmoid".split())
TANHS = frozenset("tanh tanh_ hardtanh softsign".split())
SOFTMAXES = frozenset("softmax log_softmax gumbel_softmax softmin".split())
#: Losses that have the sigmoid or softmax in them.
LOSSES_OF_LOGITS = frozenset(
    "cross_entropy cross_entropy_loss binary_cross_entropy_with_logits multilabel_soft_margin_loss".split()
)
NORMALISATIONS = frozenset(
    "batch_norm layer_norm group_norm instance_norm rms_norm native_layer_norm local_response_norm normalize".split()
)
ATTENTIONS = frozenset("scaled_dot_product_attention multi_head_attention_forward".split())
MASKS = frozenset("masked_fill masked_fill_ where tril triu full full_like".split())
