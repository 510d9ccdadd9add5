"""Measures activation patching with a peer; runs in the peer's own environment. Started by ``peer.py``.

python peer_patching.py RESULT nnsight|transformer-lens [--positions N] [--rounds N]
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import measure

measure.one_thread()
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch  # noqa: E402  (one_thread sets a variable that torch reads when it is imported)
from patching import LAYERS, Patch, by_hand, language_model, largest_difference, prompts, sweep  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("result", type=Path)
    parser.add_argument("peer", choices=["nnsight", "transformer-lens"])
    parser.add_argument("--positions", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    positions = list(range(options.positions))
    plain, corrupt = language_model(), prompts()[1]
    with torch.no_grad():
        patch = (with_nnsight if options.peer == "nnsight" else with_transformer_lens)(language_model())
        effort = measure.Effort(budget_secs=1.0, min_rounds=options.rounds, max_rounds=options.rounds)
        sides = {"forward": lambda: plain(corrupt), "patching": lambda: sweep(patch, positions)}
        compared = measure.compare(sides, effort)
        apart = largest_difference(sweep(patch, positions[:1]), sweep(by_hand(plain), positions[:1]))
    answer = {
        "version": importlib.metadata.version(options.peer),
        "forwards": compared.ratio("patching", "forward") / (LAYERS * len(positions)),
        "apart": apart,
    }
    options.result.write_text(json.dumps(answer))


def with_nnsight(model: Any) -> Patch:
    import nnsight

    wrapped = nnsight.NNsight(model)
    clean, corrupt = prompts()
    with wrapped.trace(clean):
        saved = nnsight.save([])
        for block in wrapped.transformer.h:
            saved.append(block.output)

    def patch(layer: int, position: int) -> torch.Tensor:
        with wrapped.trace(corrupt):
            wrapped.transformer.h[layer].output[:, position] = saved[layer][:, position]
            logits = wrapped.lm_head.output[:, -1].save()
        return logits  # type: ignore[no-any-return]

    return patch


def with_transformer_lens(model: Any) -> Patch:
    from transformer_lens import TransformerBridge

    with tempfile.TemporaryDirectory() as folder:  # it looks there again while it starts
        tokenizer = _some_tokenizer(folder)
        bridge = TransformerBridge.boot_transformers("gpt2", hf_model=model, device="cpu", tokenizer=tokenizer)
    clean, corrupt = prompts()
    _, cache = bridge.run_with_cache(clean)

    def patch(layer: int, position: int) -> torch.Tensor:
        name = f"blocks.{layer}.hook_resid_post"

        def put(value: torch.Tensor, hook: Any = None) -> torch.Tensor:
            value = value.clone()
            value[:, position] = cache[name][:, position]
            return value

        return bridge.run_with_hooks(corrupt, fwd_hooks=[(name, put)])[:, -1]  # type: ignore[no-any-return]

    return patch


def _some_tokenizer(folder: str) -> Any:
    """It insists on one, though only token numbers are used here."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(WordLevel({"<x>": 0, "a": 1}, unk_token="<x>"))
    special = dict.fromkeys(("bos_token", "eos_token", "pad_token", "unk_token"), "<x>")
    PreTrainedTokenizerFast(tokenizer_object=words, **special).save_pretrained(folder)
    return PreTrainedTokenizerFast.from_pretrained(folder)


if __name__ == "__main__":
    main()
