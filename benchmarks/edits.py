"""What-if runs: a rerun from kept values ÷ a full forward pass, and activation patching beside two peers.

python benchmarks/edits.py [--quick] [--no-peer] [--nnsight-python PATH] [--transformer-lens-python PATH]

README.md in this folder says how to read the tables.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Any

import measure

measure.one_thread()

import peer  # noqa: E402  (one_thread sets a variable that torch reads when it is imported)
import torch  # noqa: E402
from models import CASES  # noqa: E402
from patching import LAYERS, TOKENS, Patch, by_hand, language_model, largest_difference, prompts, sweep  # noqa: E402
from table import print_table  # noqa: E402

import endoscope  # noqa: E402
from endoscope import edits  # noqa: E402

LAST_BLOCK_AT_MOST = 0.25  # of a forward pass
PEERS = {
    "nnsight": peer.Peer("nnsight==0.8.1", "peer_patching.py", same_version=("transformers",)),
    "transformer-lens": peer.Peer("transformer-lens==4.3.0", "peer_patching.py", same_version=("transformers",)),
}


@dataclass(frozen=True)
class Row:
    """One line of the second table; the cost of one patch is None where nothing could be measured."""

    way: str
    forwards: float | None
    apart: float = 0.0
    note: str = ""


def main() -> None:
    options = _options()
    effort = measure.QUICK if options.quick else measure.FULL
    with torch.no_grad():
        missed = _print_reruns(effort)
        rows = _patching(options)
    for name, found in PEERS.items():
        if not options.no_peer:
            rows.append(_peer(name, found, options))
    _print_patching(rows, options)
    if missed:
        sys.exit(f"a rerun of the last block took more than {LAST_BLOCK_AT_MOST} of a forward pass")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What-if runs: reruns, edited runs, activation patching.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, two positions instead of all")
    parser.add_argument("--no-peer", action="store_true", help="do not install and measure the peers")
    for name in PEERS:
        parser.add_argument(f"--{name}-python", help="use this interpreter, which has the peer already")
    return parser.parse_args()


# ---- reruns --------------------------------------------------------------------------------------


def _print_reruns(effort: measure.Effort) -> bool:
    case = next(case for case in CASES if case.name.startswith("GPT-2"))
    model, ids = case.make()
    trace = endoscope.trace(model, ids)

    def zeroed(layer: int) -> measure.Side:
        return lambda: trace.rerun(edit={f"h.{layer}.attn": edits.zero()})

    sides: dict[str, measure.Side] = {
        "forward": lambda: model(ids),
        "forward again": lambda: model(ids),
        "rerun, last block": zeroed(11),
        "rerun, middle block": zeroed(6),
        "rerun, first block": zeroed(0),
        "trace(edit=), last block": lambda: endoscope.trace(model, ids, edit={"h.11.attn": edits.zero()}),
    }
    compared = measure.compare(sides, effort)
    edited = _inside_a_block(model, ids, effort.min_rounds)
    rows = [["zero the attention of a block", "÷ forward", "±", "best ÷ best", "target", ""]]
    missed = compared.ratio("rerun, last block", "forward") > LAST_BLOCK_AT_MOST
    for way in list(sides)[1:]:
        judged = way == "rerun, last block"
        target, verdict = f"≤ {LAST_BLOCK_AT_MOST}" if judged else "", "MISSED" if judged and missed else ""
        rows.append([way, *_ratios(compared, way), target, verdict])
    rows.append(["forward inside editing()", *_ratios(edited, "edited"), "", ""])
    print(f"{case.name}, {1e3 * compared.median_secs('forward'):.0f} ms a forward pass\n")
    print_table(rows)
    return missed


def _ratios(compared: measure.Comparison, way: str) -> list[str]:
    found = compared.ratio(way, "forward"), compared.error(way, "forward"), compared.best_ratio(way, "forward")
    return [f"{number:.3f}" for number in found]


def _inside_a_block(model: Any, ids: Any, rounds: int) -> measure.Comparison:
    """Forward passes with and without a block in turns; the first in a block, which resolves, is off the clock."""
    secs: dict[str, list[float]] = {"forward": [], "edited": []}
    for _ in range(rounds):
        secs["forward"].append(measure.sample(lambda: model(ids), 3))
        with endoscope.editing(model, {"h.11.attn": edits.zero()}):
            model(ids)
            secs["edited"].append(measure.sample(lambda: model(ids), 3))
    return measure.Comparison({name: tuple(values) for name, values in secs.items()})


# ---- patching ------------------------------------------------------------------------------------


def _positions(options: argparse.Namespace) -> list[int]:
    return list(range(2 if options.quick else TOKENS))


def _patching(options: argparse.Namespace) -> list[Row]:
    model, corrupt, positions = language_model(), prompts()[1], _positions(options)
    ways = {"forward hooks by hand": by_hand(model), "endoscope: trace once, then rerun": _with_reruns(model)}
    rounds = 2 if options.quick else 3
    effort = measure.Effort(budget_secs=1.0, min_rounds=rounds, max_rounds=rounds)
    _say("activation patching ...")
    sides: dict[str, measure.Side] = {"forward": lambda: model(corrupt)}
    for name, patch in ways.items():
        sides[name] = lambda patch=patch: sweep(patch, positions)  # type: ignore[misc]
    compared = measure.compare(sides, effort)
    expected = sweep(ways["forward hooks by hand"], positions[:2])
    count = LAYERS * len(positions)
    return [
        Row(name, compared.ratio(name, "forward") / count, largest_difference(sweep(patch, positions[:2]), expected))
        for name, patch in ways.items()
    ]


def _with_reruns(model: Any) -> Patch:
    clean, corrupt = prompts()
    source, trace = endoscope.trace(model, clean), endoscope.trace(model, corrupt)

    def patch(layer: int, position: int) -> torch.Tensor:
        edit = {f"transformer.h.{layer}": edits.patch_from(source, positions=[position])}
        logits: torch.Tensor = trace.rerun(edit=edit).result.logits
        return logits[:, -1]

    return patch


def _peer(name: str, found: peer.Peer, options: argparse.Namespace) -> Row:
    python = getattr(options, f"{name.replace('-', '_')}_python")
    rounds = 2 if options.quick else 3
    arguments = [name, "--positions", str(len(_positions(options))), "--rounds", str(rounds)]
    _say(f"{name} ...")
    try:
        answer = peer.run(found, arguments, python)
    except peer.PeerUnavailable as error:
        return Row(name, None, note=str(error))
    return Row(f"{name} {answer['version']}", answer["forwards"], answer["apart"])


def _print_patching(rows: list[Row], options: argparse.Namespace) -> None:
    ours = next(row.forwards for row in rows if row.way.startswith("endoscope"))
    assert ours is not None
    table = [["one patch", "÷ forward", "÷ ours", "largest difference to hooks", ""]]
    for row in rows:
        if row.forwards is None:
            table.append([row.way, "–", "–", "–", row.note])
        else:
            table.append([row.way, f"{row.forwards:.3f}", f"{row.forwards / ours:.2f}", f"{row.apart:.1e}", ""])
    places = f"{LAYERS} layers × {len(_positions(options))} positions"
    print(f"Activation patching, {places} of a prompt of {TOKENS} tokens\n")
    print_table(table)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
