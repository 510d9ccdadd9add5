"""What a recording says about what it could not see, and what to type instead. Each is said once in a run."""

from __future__ import annotations

IN_EVALUATION_MODE = (
    "the model is trained in evaluation mode, and forward passes in evaluation mode begin no step. "
    "Put `with run.step():` around each training step."
)
HOOKS = (
    "the steps are so short that counting them takes more than the budget, although nothing is recorded in most of "
    "them; use a larger budget"
)
UNSEEN_PASS = (
    "gradients arrived, but no beginning of a backward pass was seen, so those of activations are missing. Call "
    "`loss.backward()`, or `torch.autograd.backward(...)`."
)
NO_PASS = (
    "the parameters changed, but no backward pass was seen: the gradients are missing, and the loss is not "
    "known. Call `loss.backward()`, or name the loss: `with run.step() as step:` and "
    "`step.tag('loss', loss, kind='loss')`."
)
BEGUN_UNKNOWN = (
    "was left out: the gradients of the step before were cleared without an update, so its beginning was seen too "
    "late. Call `optimizer.zero_grad()` before the forward pass."
)
NO_FORWARD = (
    "an optimizer moved the model, and no forward pass of it was seen. Call the model itself, `model(x)`, and not "
    "`model.forward(x)`; or put `with run.step():` around each training step."
)
STOPPED = (
    "was the last one, ended before its backward pass and was not recorded. If the training stopped there because "
    "something was wrong, `endoscope.Run(root, when=endoscope.policies.either(10, endoscope.policies.on_nonfinite()))` "
    "records the step in which something becomes NaN or infinite, and `when=1` every step."
)
SHAPES_CAME = "parameters that got their shapes in this step are recorded from the next step on"
LATE_UPDATE = (
    "another optimizer made its update after the step had ended, so it is missing here; later steps wait for it"
)
