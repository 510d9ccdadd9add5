"""Which findings probably follow from which others, so that causes are read first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from endoscope.findings.finding import INFO, Finding

_LEARNING_RATE = ("update_ratio", "gradients_not_zeroed")
_START = ("bad_initialisation", "inputs_not_normalised")
_STANDSTILL = ("unchanged_parameters", "missing_gradient", "zero_gradient", "dead_units", "vanishing_gradient")

#: Symptom -> what may be behind it.
EXPLAINED_BY: dict[str, tuple[str, ...]] = {
    "collapsed_batch": ("dead_units", "saturated", *_START),
    "zero_gradient": ("dead_units", "bad_initialisation"),
    "dormant_units": ("dead_units",),
    "vanishing_gradient": ("dead_units", "saturated", "bad_initialisation"),
    "saturated": (*_START, *_LEARNING_RATE),
    "scale_range": (*_START, *_LEARNING_RATE),
    "growing_activations": ("asymmetric_range", *_LEARNING_RATE, "diverging_weights"),
    "massive_activations": (*_START, "scale_range"),
    "diverging_weights": _LEARNING_RATE,
    "exploding_gradient": (*_START, *_LEARNING_RATE),
    "spiking_gradient": _LEARNING_RATE,
    "loss_imbalance": ("conflicting_losses",),
    "wrong_initial_loss": _START,
    "plateau": (*_STANDSTILL, *_LEARNING_RATE, *_START),
    "divergence": ("exploding_gradient", *_LEARNING_RATE, *_START),
    "oscillation": ("exploding_gradient", "unshuffled", *_LEARNING_RATE, *_START),
    "loss_spike": ("spiking_gradient", "exploding_gradient", *_LEARNING_RATE),
}


def explained(findings: Sequence[Finding]) -> list[Finding]:
    """The same findings; those that began no earlier than a likely cause say so, and stand behind the causes."""
    causes = [finding for finding in findings if finding.severity != INFO]
    found = []
    for finding in findings:
        likely = EXPLAINED_BY.get(finding.check, ())
        cause = next((one for one in causes if one.check in likely and _began_before(one, finding)), None)
        told = f"{cause.check} at {cause.node}" if cause is not None else ""
        found.append(replace(finding, follows=told))
    return sorted(found, key=lambda finding: finding.rank)


def _began_before(cause: Finding, symptom: Finding) -> bool:
    return cause.trial == symptom.trial and cause.first_step <= symptom.first_step
