"""All runs of the suite: importing this file fills `CASES`."""

from __future__ import annotations

from tests.faults import collapse, forward, gradients, healthy, healthy_others, inputs, losses, parameters, shares
from tests.faults.label import CASES, Case, half, kinds

FILES = (forward, collapse, gradients, shares, parameters, losses, inputs, healthy, healthy_others)

#: Every class of fault that the checks are to find.
CLASSES = tuple(
    """nonfinite dead_units dormant_units saturated scale_range growing_activations collapsed_batch rank_collapse
    massive_activations attention_collapse residual_ignored overflow_underflow train_eval_mismatch vanishing_gradient
    exploding_gradient spiking_gradient missing_gradient zero_gradient branch_imbalance loss_imbalance
    conflicting_losses few_samples gradients_not_zeroed update_ratio unchanged_parameters diverging_weights
    dead_weights sign_collapse bad_initialisation wrong_initial_loss plateau divergence oscillation loss_spike overfit
    zero_loss inputs_not_normalised constant_features class_imbalance unshuffled repeated_batches
    asymmetric_range""".split()
)

__all__ = ["CASES", "CLASSES", "Case", "half", "kinds"]
