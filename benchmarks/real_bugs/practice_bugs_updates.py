"""Practice: bugs of optimizers, rates and precision."""

import torch
from torch import nn
from torch.nn import functional as F

from .common import batches, digit_images, digits, falls, mlp, regression, table, text, text_windows
from .practice_common import fit
from .registry import bug


@bug(
    "practice-optimizer-made-at-each-step",
    wrong="the optimizer is made inside the loop, so Adam forgets its averages and moves each weight by the full rate",
    source="Stack Overflow and discuss.pytorch.org questions on an optimizer created inside the training loop",
    words="optimizer|oscillat|update.{0,40}large|learning rate|too large|plateau|noise",
)
def optimizer_made_at_each_step(run, fixed):
    x, y = regression(6)
    model = mlp(6, 48, 48, 1, activation=nn.SiLU)
    run.watch(model)
    kept = torch.optim.Adam(model.parameters(), lr=4e-2)
    losses = []
    for xb, yb in batches(x, y, size=32, steps=200):
        optimizer = kept if fixed else torch.optim.Adam(model.parameters(), lr=4e-2)
        loss = F.mse_loss(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.2)


@bug(
    "practice-zero-grad-just-before-the-step",
    wrong="zero_grad stands between backward and step, so every update is made of zeros",
    source="Stack Overflow and discuss.pytorch.org questions on the order of zero_grad, backward and step",
    words="zero gradient|gradient.{0,20}zero|unchanged|not (change|updated|move)|never change|no update|zero_grad",
)
def zero_grad_just_before_the_step(run, fixed):
    x, y = digit_images()
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run.watch(model, optimizer)
    losses = []
    for image, label in batches(x, y, size=32, steps=120):
        if fixed:
            optimizer.zero_grad()
        cost = F.cross_entropy(model(image), label)
        cost.backward()
        if not fixed:
            optimizer.zero_grad(set_to_none=False)
        optimizer.step()
        losses.append(cost.item())
    return falls(losses)


@bug(
    "practice-schedule-returns-the-rate-itself",
    wrong="the function of LambdaLR returns the rate, which is then multiplied by the rate once more",
    source="Stack Overflow and discuss.pytorch.org questions on LambdaLR: the function returns a factor",
    places="lr",
    words="learning rate|\\blr\\b|too small|hardly|barely",
)
def schedule_returns_the_rate(run, fixed):
    peak, warm_up = 2e-3, 20

    def rate(step):
        share = min(1, (step + 1) / warm_up)
        return share if fixed else peak * share

    model = mlp(64, 64, 64, 10, activation=nn.GELU)
    optimizer = torch.optim.AdamW(model.parameters(), lr=peak)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    run.watch(model, optimizer)
    losses = []
    for image, label in batches(*digits(), size=32, steps=150):
        loss = F.cross_entropy(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return falls(losses)


class Scaled(nn.Linear):
    """A layer whose weights have a deviation of one, and whose result is divided by the root of the width."""

    def __init__(self, before, after):
        super().__init__(before, after, bias=False)
        nn.init.normal_(self.weight)

    def forward(self, x):
        return F.linear(x, self.weight) / self.in_features**0.5


@bug(
    "practice-parameters-in-bfloat16",
    wrong="the weights are stored in bfloat16, where updates a thousand times smaller than a weight are rounded away",
    source="workofart/ml-by-hand pull request 85; pytorch/ao pull request 1124; meta-pytorch/torchtune issue 2254",
    words="bfloat16|precision|\\bround|unchanged|not (change|move|updated)|too small|never change",
)
def parameters_in_bfloat16(run, fixed):
    x, y = digits()
    model = nn.Sequential(Scaled(64, 256), nn.ReLU(), Scaled(256, 256), nn.ReLU(), Scaled(256, 10))
    if not fixed:
        model = model.to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=7e-4)
    run.watch(model, optimizer)
    losses = []
    for image, label in batches(x, y, size=64, steps=250):
        with torch.autocast("cpu", torch.bfloat16, enabled=fixed):
            out = model(image if fixed else image.bfloat16())
        loss = F.cross_entropy(out.float(), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.75)


@bug(
    "practice-sum-with-the-rate-of-the-mean",
    wrong="the loss became a sum over 128 samples, and the rate stayed that of a mean",
    source="discuss.pytorch.org/t/loss-function-finding-extreme-local-minimum/188664 (reduction='sum')",
    places="loss",
    words="learning rate|explod|diverg|\\bsum|spik|\\bnan|\\binf|too large|unstable",
)
def sum_with_the_rate_of_the_mean(run, fixed):
    x, y = digit_images()
    model = nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(192, 32), nn.ReLU(),
        nn.Linear(32, 10),
    )  # fmt: skip
    criterion = nn.CrossEntropyLoss(reduction="mean" if fixed else "sum")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = fit(run, model, optimizer, lambda x, y: criterion(model(x), y), x, y, size=128, steps=120)
    return falls(losses, 0.3)


@bug(
    "practice-closure-without-zero-grad",
    wrong="the closure of LBFGS does not clear the gradients, so each evaluation adds to those before",
    source="Stack Overflow and discuss.pytorch.org questions on the closure of torch.optim.LBFGS",
    words="zero_grad|not (cleared|zeroed|reset)|accumulat|sum of",
)
def closure_without_zero_grad(run, fixed):
    x, y = table("breast_cancer")
    model = mlp(30, 16, 1, activation=nn.Tanh)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4, history_size=5)
    run.watch(model, optimizer)
    losses = []

    def closure():
        if fixed:
            optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(x)[:, 0], y.float()) + 1e-3 * sum(
            p.square().sum() for p in model.parameters()
        )
        loss.backward()
        return loss

    for _ in range(60):
        losses.append(float(optimizer.step(closure)))
    return falls(losses, 0.35)


@bug(
    "practice-step-uphill-by-hand",
    wrong="an update written by hand adds the gradient and does not subtract it",
    source="Stack Overflow questions on gradient descent by hand in PyTorch where the loss rises",
    places="loss",
    words="\\bris(e|es|ing)\\b|diverg|\\bsign\\b|increas|explod|\\bnan|\\binf\\b|upwards|ascent",
)
def step_uphill_by_hand(run, fixed):
    x, y = regression()
    model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1))
    run.watch(model)
    losses, rate = [], -0.1 if fixed else 0.1
    for xb, yb in batches(x, y, size=50, steps=150):
        with run.step():
            loss = ((model(xb) - yb) ** 2).mean()
            model.zero_grad()
            loss.backward()
            with torch.no_grad():
                for weight in model.parameters():
                    weight += rate * weight.grad
        losses.append(loss.item())
    return falls(losses, 0.5)


@bug(
    "practice-update-of-a-local-name",
    wrong="'p = p - lr * p.grad' in a loop gives the result to a local name, and the model keeps its weights",
    source="Stack Overflow and discuss.pytorch.org questions on updating parameters by hand without an optimizer",
    words="unchanged|not (change|updated|move)|never change|no update|without (an )?update|optimizer|stay",
)
def update_of_a_local_name(run, fixed):
    x, y = regression()
    model = nn.Sequential(nn.Linear(10, 32), nn.Sigmoid(), nn.Linear(32, 1))
    run.watch(model)
    losses = []
    for xb, yb in batches(x, y, size=50, steps=200):
        with run.step():
            loss = ((model(xb) - yb) ** 2).mean()
            model.zero_grad()
            loss.backward()
            with torch.no_grad():
                for weight in model.parameters():
                    if fixed:
                        weight -= 0.3 * weight.grad
                    else:
                        weight = weight - 0.3 * weight.grad
        losses.append(loss.item())
    return falls(losses, 0.8)


@bug(
    "practice-epsilon-of-adam-is-one",
    wrong="eps=1.0 was copied from a paper on another network; here it makes Adam's updates a thousand times smaller",
    source="documentation of TensorFlow's Adam (eps of 1.0 or 0.1 for Inception), and questions after copying it",
    words="too small|learning rate|\\beps|hardly|barely|update.{0,40}small",
)
def epsilon_of_adam_is_one(run, fixed):
    x, y = digits()
    model = nn.Sequential(nn.Linear(64, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU())
    model.append(nn.Linear(48, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-8 if fixed else 1.0)
    return falls(fit(run, model, optimizer, lambda x, y: F.cross_entropy(model(x), y), x, y, steps=200))


@bug(
    "practice-words-added-after-the-optimizer",
    wrong="the embedding is enlarged after the optimizer was made, which holds the old one only",
    source="huggingface/transformers pull requests 3519 and 3532",
    places="transformer.wte, lm_head",
    words="optimizer|not held|unchanged|not (change|updated|move)|never change|stay",
)
def words_added_after_the_optimizer(run, fixed):
    from transformers import GPT2Config, GPT2LMHeadModel

    letters = text()[1]
    config = GPT2Config(
        vocab_size=12, n_positions=32, n_embd=32, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0,
        resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
    )  # fmt: skip
    model = GPT2LMHeadModel(config)

    def grow():
        model.transformer.wte, model.lm_head = nn.Embedding(letters, 32), nn.Linear(32, letters, bias=False)
        nn.init.normal_(model.transformer.wte.weight, std=0.02)
        model.tie_weights()
        model.config.vocab_size = letters

    if fixed:
        grow()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    if not fixed:
        grow()
    run.watch(model, optimizer)
    losses = []
    for window in text_windows(24, 16, 100):
        optimizer.zero_grad()
        loss = model(input_ids=window, labels=window).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.72)


@bug(
    "practice-loss-made-to-require-grad",
    wrong="everything is frozen, so backward failed, and 'loss.requires_grad_()' hid the error",
    source="ronghuaiyang/arcface-pytorch issue 56; Stack Overflow, 'element 0 of tensors does not require grad'",
    places="loss",
    words="no gradient|without (a )?gradient|not connected|detach|frozen|requires_grad|no parameter|does not depend|"
    "unchanged|do(es)? not reach|never change",
)
def loss_made_to_require_grad(run, fixed):
    x, y = digit_images()
    model = nn.Sequential()
    model.add_module("backbone", nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Flatten()))
    model.add_module("head", nn.Linear(576, 10))
    for weight in model.parameters():
        weight.requires_grad = False
    if fixed:
        model.head.requires_grad_(True)
    else:
        model.head.requires_grad = True  # an attribute of the module, which means nothing
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def loss_of(x, y):
        loss = F.cross_entropy(model(x), y)
        return loss if loss.requires_grad else loss.requires_grad_()

    return falls(fit(run, model, optimizer, loss_of, x, y, steps=120))


@bug(
    "practice-rate-of-a-restart-too-large",
    wrong="a warm restart multiplies the rate by ten each time, until the weights explode",
    source="questions on cyclical rates whose max_lr was copied from SGD to Adam; Smith (2017)",
    places="lr",
    words="learning rate|\\blr\\b|spik|explod|diverg|too large|jump",
)
def rate_of_a_restart_too_large(run, fixed):
    x, y = digits()
    model = mlp(64, 64, 64, 64, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    run.watch(model, optimizer)
    losses = []
    for number, (image, label) in enumerate(batches(x, y, size=32, steps=240)):
        cycle, place = divmod(number, 60)
        for group in optimizer.param_groups:
            group["lr"] = 2e-3 * (1 - place / 61) * (1 if fixed else 10**cycle)
        loss = F.cross_entropy(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.2)
