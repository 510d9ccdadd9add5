"""`endoscope.probe_batch`: does what a model says about one sample depend on the others of its batch?

The only file of this folder that needs torch: no recording knows what another sample would have done.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from endoscope.errors import BadArgument
from endoscope.findings.finding import ERROR, INFO, Finding
from endoscope.replay.batch_mixing import Mixing, Probed, batch_mixing

CHECK = "batch_crossing"
_BUG = (
    "A reduction, softmax or normalisation over the dimension of the batch instead of that of the features.",
    "A view or reshape where a transpose was meant: elements of several samples come to stand in one row.",
    "A matrix product or broadcast that pairs every sample with every other.",
)
_HELP = (
    "Give the dimension explicitly, such as softmax(dim=-1), and look at the shapes on this line.",
    "To exchange dimensions use transpose or permute; view and reshape only cut the same order into other pieces.",
    "If it is meant (contrastive learning, statistics of the batch), there is nothing to do.",
)


def probe_batch(
    model: Any, inputs: Any, *, batch_dim: int = 0, shared: Iterable[Any] = (), seed: int = 0
) -> list[Finding]:
    """Find the operations that mix samples of a batch: one finding for the first operation on each path.

    `inputs` is a batch, as for `endoscope.trace`. `shared` are tensors in it that have no samples (a mask for all) but
    look like a batch by their size. The model runs a few times, with single samples changed. Afterwards its state, its
    gradients and the random states are restored.
    """
    if not isinstance(batch_dim, int) or isinstance(batch_dim, bool) or batch_dim < 0:
        raise BadArgument(f"batch_dim={batch_dim!r}: say the number of a dimension, from 0 on.")
    probed = batch_mixing(model, inputs, batch_dim, list(shared), seed)
    found = [_finding(mixing, probed) for mixing in probed.found]
    if probed.other_path:
        found.append(_not_told(probed))
    return sorted(found, key=lambda finding: finding.rank)


def _finding(mixing: Mixing, probed: Probed) -> Finding:
    place = f"{mixing.type} in {mixing.module}" if mixing.module else mixing.type
    samples = " and ".join(map(str, mixing.samples[:2]))
    common: dict[str, Any] = {
        "check": CHECK, "trial": "", "node": mixing.label, "first_step": 0, "last_step": 0, "samples": mixing.samples,
        "value": probed.reached, "threshold": 0.0, "source": mixing.source,
    }  # fmt: skip
    if mixing.expected:
        return Finding(
            severity=INFO, title="batch statistics", **common,
            detail=f"{place} normalises by the statistics of the batch, as it does while it trains. That is expected: "
            "in evaluation it uses its running statistics. Behind it, samples were probed with running statistics.",
            causes=("Batch normalisation in training mode.",),
            remedies=("If samples must not influence each other, use layer or group normalisation.",),
        )  # fmt: skip
    if mixing.moved:
        return Finding(
            severity=ERROR, title="samples change places", **common, causes=_BUG[1:2], remedies=_HELP[:2],
            detail=f"After {place}, what belongs to a sample is not at the sample's place in the batch.",
        )  # fmt: skip
    lost = (
        f" Since {mixing.lost} ({mixing.lost_source}) samples have had no dimension of their own."
        if mixing.lost
        else ""
    )
    return Finding(
        severity=ERROR, title="samples of the batch mix", **common, causes=_BUG, remedies=_HELP,
        also=(mixing.lost,) if mixing.lost else (),
        detail=f"{place} is the first operation whose result depends on several samples, {samples} for example. "
        f"{100 * probed.reached:.3g} % of what the model returns for other samples changes with one of them.{lost}",
    )  # fmt: skip


def _not_told(probed: Probed) -> Finding:
    return Finding(
        check=CHECK, severity=INFO, title="could not be told to the end", trial="", node=probed.other_path,
        first_step=0, last_step=0, value=float("nan"), threshold=float("nan"),
        detail=f"With another sample the model takes another path from {probed.other_path} on: a value of the batch "
        "steers what is computed for all of it. Operations behind it were not compared.",
    )  # fmt: skip
