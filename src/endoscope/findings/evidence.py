"""The statistic in which a finding is seen best: the page colours the graph by it and shows it over training."""

from __future__ import annotations

#: Check -> statistic of the whole tensor. What is not here is seen in whatever is being looked at.
STATISTICS: dict[str, str] = {
    "asymmetric_range": "q01",
    "bad_initialisation": "std",
    "branch_imbalance": "norm",
    "collapsed_batch": "std",
    "constant_features": "std",
    "dead_units": "zeros",
    "dead_weights": "zeros",
    "diverging_weights": "norm",
    "dormant_units": "abs_mean",
    "exploding_gradient": "norm",
    "growing_activations": "std",
    "inputs_not_normalised": "std",
    "loss_imbalance": "norm",
    "massive_activations": "abs_max",
    "nonfinite": "nans",
    "overflow_underflow": "abs_max",
    "residual_ignored": "norm",
    "saturated": "abs_mean",
    "scale_range": "std",
    "sign_collapse": "mean",
    "spiking_gradient": "norm",
    "train_eval_mismatch": "mean",
    "unchanged_parameters": "norm",
    "update_ratio": "norm",
    "vanishing_gradient": "norm",
    "zero_gradient": "zeros",
}
