"""Singular values that were recorded on request."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from endoscope.errors import LookupFailed, ValueNotKept
from endoscope.query.steps import Step


class Spectrum(NamedTuple):
    """What is known of the singular values of one matrix."""

    singular_values: np.ndarray  # float64: the largest, in descending order
    effective_rank: float  # exp(entropy of the singular values divided by their sum)


def find(step: Step, node: str, role: str | None, pass_: int | None) -> Spectrum:
    recorded = step.extra.get("spectra")
    if recorded is None:
        raise LookupFailed(
            f"Step {step.number} has no singular values: they are computed only on request. Say at which recorded "
            "steps: run.watch(model, optimizer, spectra=endoscope.policies.every(100))."
        )
    try:
        for name, its_role, its_pass, _, rank, values in recorded:
            if name == node and role in (None, its_role) and pass_ in (None, its_pass):
                return Spectrum(np.array(values, dtype=np.float64), float("nan") if rank is None else float(rank))
        known = ", ".join(dict.fromkeys(str(entry[0]) for entry in recorded)) or "none"
    except (TypeError, ValueError) as error:
        raise ValueNotKept(f"The singular values of step {step.number} are damaged: {error}.") from error
    raise LookupFailed(
        f"Step {step.number} has no singular values of {node!r}; only matrices have them. There are those of: {known}."
    )
