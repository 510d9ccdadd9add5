"""The inputs of the zoo: each function takes what it should look like and returns `config -> arguments`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .building import FIRST_PLAIN_TOKEN, IMAGE, VOCABULARY, Inputs, MakeInputs

BATCH = 2
LENGTH = 12
MEL_BINS = 16
WAVE_SAMPLES = 1600
IMAGE_TOKEN = 7  # stands in the text where the picture goes


def token_ids(length: int = LENGTH, batch: int = BATCH) -> Tensor:
    return torch.randint(FIRST_PLAIN_TOKEN, VOCABULARY, (batch, length))


def padding_mask(length: int = LENGTH, batch: int = BATCH, padded: int = 3) -> Tensor:
    """Ones, with `padded` zeros at the end of the last sample."""
    mask = torch.ones(batch, length, dtype=torch.long)
    if padded:
        mask[-1, -padded:] = 0
    return mask


def image(size: int = IMAGE, channels: int = 3, batch: int = BATCH) -> Tensor:
    return torch.randn(batch, channels, size, size)


def tokens(length: int = LENGTH, padded: int = 3, **more: Any) -> MakeInputs:
    """Token ids and, unless `padded` is zero, the mask of a batch whose last sample is shorter."""

    def make(_config: Any) -> Inputs:
        ids = {"input_ids": token_ids(length)}
        mask = {"attention_mask": padding_mask(length, padded=padded)} if padded else {}
        return ids | mask | more

    return make


def source_and_target(length: int = LENGTH, padded: int = 3) -> MakeInputs:
    return lambda _config: {
        "input_ids": token_ids(length),
        "attention_mask": padding_mask(length, padded=padded),
        "decoder_input_ids": token_ids(LENGTH // 2),
    }


def pixels(size: int = IMAGE, channels: int = 3, batch: int = BATCH) -> MakeInputs:
    return lambda _config: {"pixel_values": image(size, channels, batch)}


def video(frames: int, name: str = "pixel_values") -> MakeInputs:
    return lambda _config: {name: torch.randn(1, frames, 3, IMAGE, IMAGE)}


def wave(samples: int = WAVE_SAMPLES, channels: int = 0, target: bool = False) -> MakeInputs:
    """Raw sound; with `channels` as an axis of its own, with `target` also the text that is being written."""
    shape = (BATCH, channels, samples) if channels else (BATCH, samples)
    return lambda _config: {"input_values": torch.randn(shape)} | _decoder_text(target)


def spectrogram(
    length: int = 24, name: str = "input_features", bins_first: bool = False, target: bool = False
) -> MakeInputs:
    shape = (BATCH, MEL_BINS, length) if bins_first else (BATCH, length, MEL_BINS)
    return lambda _config: {name: torch.randn(shape)} | _decoder_text(target)


def _decoder_text(wanted: bool) -> Inputs:
    return {"decoder_input_ids": token_ids(LENGTH // 2)} if wanted else {}


def pixels_and_tokens() -> MakeInputs:
    return lambda _config: {
        "input_ids": token_ids(),
        "attention_mask": padding_mask(),
        "pixel_values": image(),
    }


def pixels_and_target() -> MakeInputs:
    return lambda _config: {"pixel_values": image(), "decoder_input_ids": token_ids(LENGTH // 2)}


def tokens_with(more: Callable[[], Inputs]) -> MakeInputs:
    """Token ids, mask, and tensors that `more` makes afresh (so that they follow the seed)."""
    return lambda _config: {"input_ids": token_ids(), "attention_mask": padding_mask()} | more()


def boxes(length: int = LENGTH, limit: int = 32) -> Tensor:
    """The place of each token on the page: left, top, right, bottom."""
    corner = torch.randint(0, limit // 2, (BATCH, length, 2))
    return torch.cat((corner, corner + torch.randint(1, limit // 2, (BATCH, length, 2))), dim=-1)


def image_in_text(
    count: int,
    frames: bool = False,
    patches: tuple[int, ...] | None = None,
    more: Callable[[], Inputs] = dict,
) -> MakeInputs:
    """Text with `count` placeholders that the model fills with the features of the picture."""

    def make(_config: Any) -> Inputs:
        ids = torch.cat((torch.full((BATCH, count), IMAGE_TOKEN), token_ids()), dim=1)
        picture = image() if patches is None else torch.randn(patches)
        return {
            "input_ids": ids,
            "attention_mask": torch.ones_like(ids),
            "pixel_values": picture.unsqueeze(1) if frames else picture,
        } | more()

    return make
