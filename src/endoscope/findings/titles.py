"""The title of a finding: one plain sentence that says where, what and since when.

    `encoder.3.relu`: 92% of 64 units are zero for every sample since step 40

The terminal, JSON, the page and reports all show this sentence.
"""

from __future__ import annotations

import numpy as np

from endoscope.findings.check import Seen
from endoscope.findings.facts import Facts

_MOSTLY = 0.5  # of the steps from the first one on: else it comes and goes


def title_of(seen: Seen, facts: Facts) -> str:
    """Its place is named once: a title may have named it already."""
    told = f"{seen.title}{_when(seen, facts)}"
    key = seen.tensor.key if seen.tensor is not None else None
    if not seen.name or f"`{seen.name}`" in told or (key is None and seen.name in told):
        return told
    role = f" ({key.role})" if key is not None and key.role else ""
    of = f", {key.of}" if key is not None and key.of not in ("value", "parameter") else ""
    return f"`{seen.name}`{role}{of}: {told}"


def _when(seen: Seen, facts: Facts) -> str:
    """Nothing if it was so from the first recorded step on."""
    recorded = np.unique(facts.numbers[np.isin(facts.types.astype(str), seen.types)] if seen.types else facts.numbers)
    if seen.of_the_run or not len(seen.steps) or not len(recorded):
        return ""
    first, last = int(seen.steps[0]), int(seen.steps[-1])
    if first == last:
        return f" at step {first}" if len(recorded) > 1 else ""
    if len(seen.steps) < _MOSTLY * np.count_nonzero((recorded >= first) & (recorded <= last)):
        return f" at {len(seen.steps)} steps, first at step {first}"
    if last < recorded[-1]:
        return f" from step {first} to step {last}"
    return f" since step {first}" if first > recorded[0] else ""
