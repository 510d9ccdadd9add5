"""What a model is made of, so that causes and remedies speak only of what it has: for `causes_where` of a check."""

from __future__ import annotations

from endoscope.findings.facts import Facts
from endoscope.findings.functions import ATTENTIONS, NORMALISATIONS, RECTIFIERS, RECURRENCES, SIGMOIDS, TANHS

_GATED = RECURRENCES - frozenset("rnn_tanh rnn_relu rnn_tanh_cell rnn_relu_cell".split())


def has_rectifier(facts: Facts) -> bool:
    return bool(facts.functions & RECTIFIERS)


def has_batch_norm(facts: Facts) -> bool:
    return "batch_norm" in facts.functions


def has_attention(facts: Facts) -> bool:
    """As transformers have."""
    return bool(facts.functions & ATTENTIONS) or bool(facts.siblings)


def has_no_normalisation(facts: Facts) -> bool:
    """Only then there is a point in adding one; what was not recorded is not known to be missing."""
    return bool(facts.functions) and not facts.functions & NORMALISATIONS


def is_recurrent(facts: Facts) -> bool:
    """A cell of torch, or one layer that is passed many times in a step."""
    return bool(facts.functions & RECURRENCES) or any(tensor.key.pass_ > 2 for tensor in facts.values.tensors)


def lacks_gates(facts: Facts) -> bool:
    """A recurrence whose cells do not keep a gradient alive over many passes."""
    return is_recurrent(facts) and not facts.functions & _GATED


def is_squashed(facts: Facts) -> bool:
    """Sigmoid or tanh between layers; in transformers and recurrences they have their place and are not a choice."""
    return bool(facts.functions & (SIGMOIDS | TANHS)) and not has_attention(facts) and not is_recurrent(facts)


def is_taking_turns(facts: Facts) -> bool:
    """Steps of several types, as a generator and its discriminator have."""
    return len(set(facts.types.tolist())) > 1
