"""Turn one table row into a tiny, seeded model of `transformers` and the inputs of its forward pass.

    row (class name, inputs, overrides)  ->  tiny_config  ->  model with random weights, in eval mode
                                         ->  inputs(config)

Nothing is downloaded: every model starts from its configuration class. The rows only say what differs from
`TINY`, a dictionary of small sizes of which each configuration takes the names it knows.
"""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

# Must be set before the first import of `transformers`: a forgotten download should fail at once, not wait.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import transformers
from torch import nn

# Tiny sizes contradict published token ids and missing kernels fall back to plain torch: no need to say so.
transformers.logging.set_verbosity_error()

SEED = 20240
VOCABULARY = 96
FIRST_PLAIN_TOKEN = 8  # the tokens below are left to padding, begin, end, mask, ...
IMAGE = 32

Inputs = dict[str, Any]
MakeInputs = Callable[[Any], Inputs]

TINY: dict[str, Any] = {
    # width
    "hidden_size": 32,
    "d_model": 32,
    "n_embd": 32,
    "embedding_size": 32,
    "embed_dim": 32,
    "projection_dim": 16,
    "head_dim": 8,
    "d_kv": 8,
    "intermediate_size": 64,
    "ffn_dim": 64,
    "d_ff": 64,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    # depth
    "num_hidden_layers": 2,
    "num_layers": 2,
    "num_decoder_layers": 2,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "n_layer": 2,
    # heads
    "num_attention_heads": 4,
    "num_heads": 4,
    "n_head": 4,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "num_key_value_heads": 2,
    # experts
    "num_experts": 4,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "n_routed_experts": 4,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
    # tokens
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
    # pictures
    "image_size": IMAGE,
    "patch_size": 8,
    # With the usual 0.02 a net this narrow is nearly constant, and no operation would matter for the output.
    "initializer_range": 0.2,
    "init_std": 0.2,
}


@dataclass(frozen=True, slots=True)
class Architecture:
    """One row of the zoo."""

    name: str
    family: str
    model_class: str
    inputs: MakeInputs
    overrides: Mapping[str, Any] = field(default_factory=dict)

    def build(self) -> tuple[nn.Module, Inputs]:
        """The model in eval mode and the keyword arguments of one forward pass; the same at every call."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            model_type = getattr(transformers, self.model_class)
            config = tiny_config(model_type.config_class, self.overrides)
            model = model_type(config)
            _disturb_constant_parameters(model)
            return model.eval(), self.inputs(config)


def row(name: str, model_class: str, inputs: MakeInputs, **overrides: Any) -> Callable[[str], Architecture]:
    """A row that still waits for its family."""
    return lambda family: Architecture(name, family, model_class, inputs, overrides)


def family(name: str, *rows: Callable[[str], Architecture]) -> tuple[Architecture, ...]:
    return tuple(make(name) for make in rows)


def tiny_config(config_class: type, overrides: Mapping[str, Any]) -> Any:
    """A configuration of that class with the sizes of `TINY`, changed by `overrides`.

    An override that is a dictionary fills the sub-configuration of that name, which starts from `TINY` too.
    With the key `model_type` inside, the dictionary chooses the class of the sub-configuration (a backbone).
    """
    fields = {f.name: f for f in dataclasses.fields(config_class)}
    sizes = {name: size for name, size in TINY.items() if name in fields and not _is_list(fields[name])}
    nested = {
        name: tiny_config(sub_class, overrides.get(name, {}))
        for name in getattr(config_class, "sub_configs", {})
        if (sub_class := _sub_config_class(config_class, name, overrides)) is not None
    }
    plain = {name: value for name, value in overrides.items() if name != "model_type"}
    # Rows share lists of sizes, and some models change the lists of their configuration.
    return config_class(**copy.deepcopy(sizes | plain | nested))


def _sub_config_class(config_class: Any, name: str, overrides: Mapping[str, Any]) -> type | None:
    """None: leave the sub-configuration to its owner."""
    override = overrides.get(name, {})
    if override is None:
        return None
    if "model_type" in override:
        return type(transformers.AutoConfig.for_model(override["model_type"]))
    declared: type = config_class.sub_configs[name]
    return None if declared is transformers.AutoConfig else declared


def _is_list(config_field: dataclasses.Field[Any]) -> bool:
    """Sizes per stage are lists; a single number in their place would be wrong."""
    return config_field.default_factory is not dataclasses.MISSING or isinstance(config_field.default, list | tuple)


def _disturb_constant_parameters(model: nn.Module) -> None:
    """Zeros and ones make operations without effect (`x * 0`, `x + 0`): give them noise."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.numel() and parameter.is_floating_point() and (parameter == parameter.flatten()[0]).all():
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
