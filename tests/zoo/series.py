"""Time series, decision making, general-purpose inputs."""

from __future__ import annotations

from typing import Any

import torch

from .building import Inputs, family, row

CONTEXT, PREDICTION, LAGS = 12, 4, 3
FORECAST = {
    "prediction_length": PREDICTION,
    "context_length": CONTEXT,
    "lags_sequence": [1, 2, LAGS],
    "num_time_features": 2,
}


def past_and_future(_config: Any) -> Inputs:
    past = CONTEXT + LAGS
    return {
        "past_values": torch.rand(2, past),
        "past_time_features": torch.randn(2, past, 2),
        "past_observed_mask": torch.ones(2, past),
        "future_values": torch.rand(2, PREDICTION),
        "future_time_features": torch.randn(2, PREDICTION, 2),
    }


def channels(_config: Any) -> Inputs:
    return {"past_values": torch.randn(2, 32, 3)}


def states_and_actions(_config: Any) -> Inputs:
    return {
        "states": torch.randn(2, 5, 6),
        "actions": torch.randn(2, 5, 3),
        "rewards": torch.randn(2, 5, 1),
        "returns_to_go": torch.randn(2, 5, 1),
        "timesteps": torch.arange(5).repeat(2, 1),
        "attention_mask": torch.ones(2, 5, dtype=torch.long),
    }


SERIES = family(
    "time series and decisions",
    row("time_series_transformer", "TimeSeriesTransformerModel", past_and_future, **FORECAST),
    row("informer", "InformerModel", past_and_future, **FORECAST),
    row("autoformer", "AutoformerModel", past_and_future, moving_average=3, label_length=4, **FORECAST),
    row("patchtst", "PatchTSTForPrediction", channels, num_input_channels=3, patch_length=8, patch_stride=8),
    row("patchtsmixer", "PatchTSMixerForPrediction", channels, num_input_channels=3, mode="mix_channel"),
    row(
        "timesfm",
        "TimesFmModelForPrediction",
        lambda _config: {"past_values": list(torch.randn(2, 16)), "freq": [0, 1]},
        patch_length=8,
        context_length=16,
        horizon_length=8,
    ),
    row(
        "decision_transformer",
        "DecisionTransformerModel",
        states_and_actions,
        state_dim=6,
        act_dim=3,
        max_ep_len=16,
    ),
    row(
        "perceiver",
        "PerceiverModel",
        lambda _config: {"inputs": torch.randn(2, 12, 32)},
        num_latents=6,
        d_latents=16,
        num_self_attends_per_block=2,
        num_self_attention_heads=4,
        num_cross_attention_heads=4,
    ),
)
