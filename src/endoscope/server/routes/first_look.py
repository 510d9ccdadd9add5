"""What the page looks at if nobody has chosen anything, so that it can be sent along with the page.

The page chooses for itself, by the same rules (frontend/src/state/relax.ts). What is missing here it asks for, and what
is here in vain it never looks at: a difference costs a few milliseconds and nothing else.
"""

from __future__ import annotations

import contextlib
from urllib.parse import quote

import pyarrow as pa

from endoscope.errors import EndoscopeError
from endoscope.query import bulk
from endoscope.query.recording import Recording
from endoscope.query.summary import loss_among

_TELLING = ("loss", "output", "computed", "parameter")  # what says most about a network, first


def addresses(recording: Recording, here: str) -> list[str]:
    """Of the curve on top, and of the tensor that is selected at the newest step; `here` is that of the trial."""
    steps = recording.steps
    curve = loss_among(list(recording.metrics), recording.losses)
    found = [f"{here}/gaps", *([f"{here}/metrics?names={_quoted(curve)}"] if curve is not None else [])]
    if steps and steps[-1].tensors:
        step = steps[-1]
        at = f"&step={step.number}&type={_quoted(step.type)}"
        with contextlib.suppress(EndoscopeError, OSError):  # whoever asks for it is told
            found += [f"{here}/{word}" for word in _of_tensor(bulk.step_table(recording, step), at)]
    return found


def _of_tensor(table: pa.Table, at: str) -> list[str]:
    ofs, kinds = (table[name].to_pylist() for name in ("of", "kind"))
    values = [row for row, of in enumerate(ofs) if of in ("value", "parameter")]
    if not values:
        return []
    chosen = min(values, key=lambda row: _TELLING.index(kinds[row]) if kinds[row] in _TELLING else len(_TELLING))
    best = table.slice(chosen, 1).to_pylist()[0]
    which = f"node={_quoted(best['node'])}&of=value&role={_quoted(best['role'])}&pass={best['pass']}"
    raw = [f"tensor?{which}{at}"] if best["raw"] else []
    if best["count"] == 1:
        return [f"series?{which}&statistics=mean", *raw]
    found = [f"series?{which}&statistics=std", f"histograms?{which}", *raw]
    if best["batch_dim"] is not None and best["batch_dim"] >= 0:
        found += [f"samples?{which}{at}", *([f"units?{which}{at}"] if len(best["shape"]) > 1 else [])]
    return found


def _quoted(text: str) -> str:
    return quote(text, safe="")
