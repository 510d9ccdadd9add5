"""Families of functions, by the plain names that graphs give them."""

from __future__ import annotations

RECTIFIERS = frozenset("relu relu_ relu6 threshold threshold_ clamp_min hardtanh".split())
LEAKY = frozenset("leaky_relu leaky_relu_ prelu rrelu elu elu_ celu selu gelu silu mish softplus hardswish".split())
ONE_SIDED = RECTIFIERS | LEAKY | frozenset("abs exp square pow softplus".split())
DROPOUTS = frozenset("dropout alpha_dropout feature_dropout dropout2d".split())
SIGMOIDS = frozenset("sigmoid sigmoid_ hardsigmoid logsigmoid".split())
TANHS = frozenset("tanh tanh_ hardtanh softsign".split())
SOFTMAXES = frozenset("softmax log_softmax gumbel_softmax softmin".split())
#: Losses that have the sigmoid or softmax in them.
LOSSES_OF_LOGITS = frozenset(
    "cross_entropy cross_entropy_loss binary_cross_entropy_with_logits multilabel_soft_margin_loss".split()
)
LOSSES_OF_CLASSES = frozenset("cross_entropy cross_entropy_loss".split())
LOSSES_OF_NUMBERS = frozenset("mse_loss l1_loss smooth_l1_loss huber_loss".split())
#: Targets that are no data: contrastive losses say by them which of the samples belong together.
MADE_IN_PLACE = frozenset("zeros ones full arange eye zeros_like ones_like full_like".split())
NORMALISATIONS = frozenset(
    "batch_norm layer_norm group_norm instance_norm rms_norm native_layer_norm local_response_norm normalize".split()
)
ATTENTIONS = frozenset("scaled_dot_product_attention multi_head_attention_forward".split())
RECURRENCES = frozenset("gru lstm rnn_tanh rnn_relu gru_cell lstm_cell rnn_tanh_cell rnn_relu_cell".split())
MASKS = frozenset("masked_fill masked_fill_ where tril triu full full_like".split())
LAYERS = frozenset("linear addmm conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d".split())
#: What changes no number, or adds and averages.
PLAIN_MOVES = frozenset(
    """view reshape flatten squeeze unsqueeze contiguous permute transpose t to float getitem __getitem__ select cat
    stack mean sum add add_ iadd sub avg_pool1d avg_pool2d adaptive_avg_pool1d adaptive_avg_pool2d identity clone
    unflatten embedding input output parameter buffer""".split()
)
