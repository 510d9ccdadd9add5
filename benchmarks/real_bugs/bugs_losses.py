"""Bugs between the output and the loss: activations, losses and shapes that do not fit each other."""

import torch
from torch import nn
from torch.nn import functional as F

from .common import batches, digits, falls, mlp, moons, regression, table, text, text_windows
from .registry import bug

NOT_CONNECTED = (
    "no gradient|without (a )?gradient|not connected|detach|disconnected|no parameter|does not depend on|"
    "do(es)? not reach"
)


def named(**modules):
    """A chain of modules with names."""
    chain = nn.Sequential()
    for name, module in modules.items():
        chain.add_module(name, module)
    return chain


def train(run, model, optimizer, loss_of, x, y, *, steps=250, size=32):
    """The usual loop; `loss_of` gets what the model returns, and the targets."""
    run.watch(model, optimizer)
    losses = []
    for xb, yb in batches(x, y, size=size, steps=steps):
        optimizer.zero_grad()
        loss = loss_of(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@bug(
    "softmax-before-cross-entropy",
    wrong="the model ends with a softmax, and cross_entropy applies another one",
    source="bowang-lab/Transformer-GCN-QA pull request 32; illiterate/BertClassifier issue 2",
    places="softmax",
    words="softmax|already (normali[sz]ed|probabilit)|probabilities",
)
def softmax_before_cross_entropy(run, fixed):
    x, y = digits()
    model = named(first=nn.Linear(64, 64), act=nn.ReLU(), head=nn.Linear(64, 10))
    if not fixed:
        model.add_module("softmax", nn.Softmax(dim=1))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


@bug(
    "softmax-over-the-batch",
    wrong="the softmax of the output runs over the batch (dim=0) and not over the classes",
    source="UMLAUT (CHI 2021), wrong axis; discuss.pytorch.org, 'nn.Softmax(dim=0)'",
    places="softmax",
    words="softmax|over the batch|batch dimension|dimension 0|dim=0|other samples|between samples|leak",
)
def softmax_over_the_batch(run, fixed):
    x, y = digits()
    model = named(
        first=nn.Linear(64, 64), act=nn.ReLU(), head=nn.Linear(64, 10), softmax=nn.Softmax(dim=1 if fixed else 0)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    return falls(train(run, model, optimizer, lambda out, y: F.nll_loss((out + 1e-9).log(), y), x, y))


@bug(
    "softmax-over-one-unit",
    wrong="a binary classifier ends with one unit and a softmax, so its output is 1 for every sample",
    source="Stack Overflow, 'binary classification, softmax on one output'; DeepLocalize (ICSE 2021)",
    places="softmax",
    words="softmax|size 1|one unit|single|constant|does not depend|same for|samples.*same",
)
def softmax_over_one_unit(run, fixed):
    x, y = table("breast_cancer")
    model = named(first=nn.Linear(30, 32), act=nn.ReLU(), head=nn.Linear(32, 1), softmax=nn.Softmax(dim=1))
    if fixed:
        model.softmax = nn.Sigmoid()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    return falls(train(run, model, optimizer, F.binary_cross_entropy, x, y.float()[:, None]))


@bug(
    "norm-over-one-unit",
    wrong="a LayerNorm stands behind the only output unit, so the output is the bias of the norm for every sample",
    source="pytorch/pytorch threads on LayerNorm with normalized_shape 1; NeuraLint (TOSEM 2021)",
    places="norm",
    words="size 1|one (unit|value|number)|single|constant|does not depend|same for|samples.*same",
)
def norm_over_one_unit(run, fixed):
    x, y = regression()
    model = named(first=nn.Linear(10, 64), act=nn.GELU(), head=nn.Linear(64, 1))
    if not fixed:
        model.add_module("norm", nn.LayerNorm(1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    return falls(train(run, model, optimizer, F.mse_loss, x, y))


@bug(
    "relu-on-the-logits",
    wrong="the output layer has a ReLU, so logits cannot be negative and units of classes die",
    source="DeepFD (ICSE 2022), wrong last activation; Stack Overflow questions on ReLU in the last layer",
    places="out_relu",
    words="relu|dead|negative|activation|zero for (all|every)",
)
def relu_on_the_logits(run, fixed):
    x, y = digits()
    model = named(first=nn.Linear(64, 64), act=nn.ReLU(), head=nn.Linear(64, 10))
    nn.init.constant_(model.head.bias, -0.3)
    if not fixed:
        model.add_module("out_relu", nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


@bug(
    "relu-on-signed-regression",
    wrong="a regression with targets of both signs ends with a ReLU, so negative targets cannot be reached",
    source="DeepDiagnosis (ICSE 2022), output out of range; UMLAUT (CHI 2021)",
    places="out_relu",
    words="relu|dead|negative|range|activation|zero for",
)
def relu_on_signed_regression(run, fixed):
    x, y = regression()
    model = named(first=nn.Linear(10, 64), act=nn.Tanh(), head=nn.Linear(64, 1))
    if not fixed:
        model.add_module("out_relu", nn.ReLU())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    return falls(train(run, model, optimizer, F.mse_loss, x, y))


@bug(
    "sigmoid-on-large-targets",
    wrong="a regression of targets from 25 to 346 ends with a sigmoid, which cannot exceed 1",
    source="DeepDiagnosis (ICSE 2022), output out of range; Stack Overflow questions on sigmoid for regression",
    places="out_sigmoid",
    words="sigmoid|saturat|range|target",
)
def sigmoid_on_large_targets(run, fixed):
    x, y = table("diabetes")
    y = y[:, None]
    model = named(first=nn.Linear(10, 64), act=nn.ReLU(), head=nn.Linear(64, 1))
    if fixed:
        y = (y - y.mean()) / y.std()
    else:
        model.add_module("out_sigmoid", nn.Sigmoid())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    return falls(train(run, model, optimizer, F.mse_loss, x, y))


@bug(
    "sigmoid-twice",
    wrong="the model ends with a sigmoid, and binary_cross_entropy_with_logits applies another one",
    source="Stack Overflow, 'BCEWithLogitsLoss after sigmoid'; NeuraLint (TOSEM 2021)",
    places="sigmoid",
    words="sigmoid|twice|already|probabilities|logits",
)
def sigmoid_twice(run, fixed):
    x, y = table("breast_cancer")
    model = named(first=nn.Linear(30, 32), act=nn.ReLU(), head=nn.Linear(32, 1))
    if not fixed:
        model.add_module("sigmoid", nn.Sigmoid())
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    return falls(train(run, model, optimizer, F.binary_cross_entropy_with_logits, x, y.float()[:, None]))


@bug(
    "targets-broadcast",
    wrong="the output is (batch, 1) and the target (batch,), so the loss compares each output with each target",
    source="Stack Overflow, 'Using a target size that is different to the input size'; pytorch UserWarning of mse_loss",
    places="target, loss",
    words="broadcast|shape|target size|each (output|sample) with (each|every)",
)
def targets_broadcast(run, fixed):
    x, y = regression()
    model = mlp(10, 64, 64, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    return falls(train(run, model, optimizer, F.mse_loss, x, y if fixed else y[:, 0]))


@bug(
    "nll-of-raw-logits",
    wrong="nll_loss gets logits without log_softmax, so the loss falls below zero without end",
    source="discuss.pytorch.org, 'NLLLoss is negative'; Islam et al. (FSE 2019), wrong loss",
    places="loss",
    words="log_?softmax|nll|negative|without (end|bound|limit)|unbounded|grow|diverge",
)
def nll_of_raw_logits(run, fixed):
    x, y = digits()
    model = mlp(64, 64, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    loss_of = F.cross_entropy if fixed else F.nll_loss
    return falls(train(run, model, optimizer, loss_of, x, y))


@bug(
    "kl-div-of-probabilities",
    wrong="kl_div gets probabilities where it wants their logarithm, so a distilled student learns nothing sensible",
    source="discuss.pytorch.org, 'KLDivLoss returns negative'; NeuraLint (TOSEM 2021)",
    places="loss",
    words="negative|kl|log_?softmax|probabilit|logarithm",
)
def kl_div_of_probabilities(run, fixed):
    x, _ = digits()
    torch.manual_seed(1)
    teacher = mlp(64, 32, 10)
    soft = F.softmax(5 * teacher(x), dim=1).detach()
    student = mlp(64, 64, 10)
    optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)

    def loss_of(out, y):
        guess = F.log_softmax(out, 1) if fixed else F.softmax(out, 1)
        return F.kl_div(guess, y, reduction="batchmean")

    return falls(train(run, student, optimizer, loss_of, x, soft))


@bug(
    "likelihood-sign-flipped",
    wrong="the mean log-likelihood is minimised, the minus is missing, so the density runs away from the data",
    source="Pyro and normflows threads; Zhang et al. (ISSTA 2018), loss with the wrong sign",
    places="loss",
    words="sign|without (end|bound|limit)|unbounded|grow|diverge|minus|explod|infinit|\\bnan\\b",
)
def likelihood_sign_flipped(run, fixed):
    x, y = regression()
    model = named(first=nn.Linear(10, 64), act=nn.Tanh(), head=nn.Linear(64, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    def loss_of(out, y):
        mean, log_std = out[:, :1], out[:, 1:]
        log_likelihood = -log_std - 0.5 * ((y - mean) / log_std.exp()).square()
        return -log_likelihood.mean() if fixed else log_likelihood.mean()

    losses = train(run, model, optimizer, loss_of, x, y)
    return losses[-1] < losses[0] - 0.3


@bug(
    "loss-made-from-a-number",
    wrong="the loss is rebuilt as torch.tensor(loss.item(), requires_grad=True), so no gradient reaches the model",
    source="Stack Overflow, 'element 0 of tensors does not require grad', answers that set requires_grad=True",
    words=NOT_CONNECTED,
)
def loss_made_from_a_number(run, fixed):
    x, y = moons()
    model = mlp(2, 32, 32, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

    def loss_of(out, y):
        loss = F.cross_entropy(out, y)
        return loss if fixed else torch.tensor(loss.item(), requires_grad=True)

    return falls(train(run, model, optimizer, loss_of, x, y))


@bug(
    "loss-of-rounded-output",
    wrong="the loss is computed from argmax, which has no gradient, and requires_grad_() hides the error",
    source="Stack Overflow, 'custom accuracy loss does not train'; Zhang et al. (ISSTA 2018)",
    words=NOT_CONNECTED + "|argmax",
)
def loss_of_rounded_output(run, fixed):
    x, y = digits()
    model = mlp(64, 64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)

    def loss_of(out, y):
        if fixed:
            return F.cross_entropy(out, y)
        return (out.argmax(1) != y).float().mean().requires_grad_()

    return falls(train(run, model, optimizer, loss_of, x, y))


@bug(
    "auxiliary-loss-dominates",
    wrong="the auxiliary loss has a weight of 1000 instead of 0.001, so the main loss is not learned",
    source="multi-task learning threads (Lightning, MMF); Humbatova et al. (ICSE 2020), wrong loss weights",
    places="loss, main, auxiliary",
    words="dominat|aux|weight of the loss|one loss|conflict|outweigh|several losses",
)
def auxiliary_loss_dominates(run, fixed):
    x, y = digits()
    model = named(first=nn.Linear(64, 48), act=nn.Tanh(), head=nn.Linear(48, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    run.watch(model, optimizer)
    losses = []
    for xb, yb in batches(x, y, size=32, steps=250):
        optimizer.zero_grad()
        out = model(xb)
        main, auxiliary = F.cross_entropy(out, yb), out.abs().mean()
        (main + (1e-3 if fixed else 1e3) * auxiliary).backward()
        optimizer.step()
        run.metric("main", main)
        run.metric("auxiliary", auxiliary)
        losses.append(main.item())
    return falls(losses)


class Bigram(nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.embedding = nn.Embedding(letters, 32)
        self.mix = nn.Conv1d(32, 48, 5)
        self.head = nn.Linear(48, letters)

    def forward(self, ids):
        hidden = F.pad(self.embedding(ids).transpose(1, 2), (4, 0))
        return self.head(torch.relu(self.mix(hidden)).transpose(1, 2))


@bug(
    "labels-not-shifted",
    wrong="a language model is trained to predict the token that it has just read: the labels are not shifted by one",
    source="Project-MONAI/GenerativeModels issue 314; huggingface/transformers issue 27517 (MBart)",
    places="target",
    words="shift|leak|cop(y|ies)|equals? (the|its) input|same as (the|its) input|is the input|too (easy|fast)",
)
def labels_not_shifted(run, fixed):
    _, letters = text()
    model = Bigram(letters)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    run.watch(model, optimizer)
    losses = []
    for window in text_windows(32, 16, 200):
        ids, targets = window[:, :-1], window[:, 1:] if fixed else window[:, :-1]
        optimizer.zero_grad()
        loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses)


@bug(
    "labels-shifted-twice",
    wrong="the labels are shifted by hand and once more by the model, so it learns to predict the token after the next",
    source="huggingface/transformers pull requests 47395 (GIT), 37830 (JetMoe), 46898 (Florence2)",
    places="target",
    words="shift",
)
def labels_shifted_twice(run, fixed):
    from transformers import GPT2Config, GPT2LMHeadModel

    _, letters = text()
    config = GPT2Config(vocab_size=letters, n_positions=32, n_embd=32, n_layer=2, n_head=2)
    config.resid_pdrop = config.embd_pdrop = config.attn_pdrop = 0.0
    model = GPT2LMHeadModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    run.watch(model, optimizer)
    losses = []
    for window in text_windows(25, 12, 150):
        ids = window[:, :-2]
        labels = ids if fixed else window[:, 1:-1]
        optimizer.zero_grad()
        loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.85)
