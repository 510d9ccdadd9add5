"""Bugs in hyper-parameters: learning rates, schedules, decay, precision."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import lr_scheduler

from .common import accuracy, batches, digit_images, digits, falls, mlp, regression, rises, table, tones
from .registry import bug


def train(run, model, optimizer, x, y, *, steps=250, size=32, loss_of=F.cross_entropy, after_step=None):
    run.watch(model, optimizer)
    losses = []
    for number, (xb, yb) in enumerate(batches(x, y, size=size, steps=steps)):
        optimizer.zero_grad()
        loss = loss_of(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if after_step is not None:
            after_step(number, loss.item())
    return losses


class TinyTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Linear(8, 32)
        self.position = nn.Parameter(0.02 * torch.randn(8, 32))
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.encoder(self.patches(x.view(-1, 8, 8)) + self.position).mean(1))


@bug(
    "rate-too-large-adam-transformer",
    wrong="a small transformer is trained by Adam with a learning rate of 0.3 instead of 0.001",
    source="DeepFD (ICSE 2022), wrong learning rate; UMLAUT (CHI 2021), learning rate out of range",
    places="lr",
    words="learning rate|steps are too large|step size",
)
def rate_too_large_adam(run, fixed):
    x, y = digits()
    model = TinyTransformer()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3 if fixed else 0.3)
    return falls(train(run, model, optimizer, x, y, steps=150))


@bug(
    "rate-and-momentum-swapped",
    wrong="SGD(parameters, 0.9, 0.01) was meant as momentum 0.9 and learning rate 0.01",
    source="NeuraLint (TOSEM 2021); Islam et al. (FSE 2019), wrong arguments",
    places="lr",
    words="learning rate|steps are too large|step size",
)
def rate_and_momentum_swapped(run, fixed):
    x, y = table("wine")
    model = mlp(13, 64, 64, 64, 3)
    optimizer = (
        torch.optim.SGD(model.parameters(), 0.01, 0.9) if fixed else torch.optim.SGD(model.parameters(), 0.9, 0.01)
    )
    return falls(train(run, model, optimizer, x, y, size=16))


@bug(
    "rate-too-small",
    wrong="the learning rate of Adam is 1e-7",
    source="AUTOTRAINER (ICSE 2021), slow convergence; DeepFD (ICSE 2022)",
    places="lr",
    words="learning rate|steps are too small|step size|too small to",
)
def rate_too_small(run, fixed):
    x, y = regression()
    model = mlp(10, 64, 64, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3 if fixed else 1e-7)
    return falls(train(run, model, optimizer, x, y, loss_of=F.mse_loss))


@bug(
    "rate-of-one-group-tiny",
    wrong="the group of the head has a learning rate of 1e-9, a typing error for 1e-3",
    source="open-mmlab/mmdetection issue 6599 (paramwise_cfg not used); fine-tuning threads",
    places="head, lr 1",
    words="learning rate|steps are too small|step size|too small to",
)
def rate_of_one_group_tiny(run, fixed):
    x, y = digits()
    model = nn.Sequential()
    model.add_module("body", mlp(64, 64, 32))
    model.add_module("act", nn.ReLU())
    model.add_module("head", nn.Linear(32, 10))
    groups = [
        {"params": model.body.parameters(), "lr": 1e-3},
        {"params": model.head.parameters(), "lr": 1e-3 if fixed else 1e-9},
    ]
    return falls(train(run, model, torch.optim.Adam(groups), x, y))


@bug(
    "schedule-per-batch",
    wrong="the scheduler for epochs (gamma 0.5) is stepped after each batch, so the learning rate is zero at once",
    source="ivadomed/ivadomed pull request 55; pytorch/vision issue 1261",
    places="lr",
    words="learning rate|\\blr\\b|schedul",
)
def schedule_per_batch(run, fixed):
    x, y = digit_images()
    model = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(576, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5)

    def after_step(number, loss):
        if not fixed or number % 60 == 59:
            scheduler.step()

    return falls(train(run, model, optimizer, x, y, after_step=after_step))


@bug(
    "warmup-divides-integers",
    wrong="the warm-up computes step // 1000 instead of step / 1000, so the learning rate is zero",
    source="transformers and fairseq threads on warm-up; Islam et al. (FSE 2019)",
    places="lr",
    words="learning rate|\\blr\\b|schedul|warm",
)
def warmup_divides_integers(run, fixed):
    x, y = digits()
    model = TinyTransformer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    warmup = 100
    scheduler = lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / warmup) if fixed else min(1, (step + 1) // 1000)
    )
    return falls(train(run, model, optimizer, x, y, steps=200, after_step=lambda *_: scheduler.step()))


@bug(
    "plateau-mode-max",
    wrong="ReduceLROnPlateau watches a loss in the mode 'max', so the rate falls although the loss gets better",
    source="Stack Overflow, 'ReduceLROnPlateau reduces although val_loss improves'",
    places="lr",
    words="learning rate|\\blr\\b|schedul",
)
def plateau_mode_max(run, fixed):
    x, y = tones()
    model = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, "min" if fixed else "max", factor=0.1, patience=0)
    sums = []

    def after_step(number, loss):
        sums.append(loss)
        if number % 20 == 19:
            scheduler.step(sum(sums) / len(sums))
            sums.clear()

    return falls(train(run, model, optimizer, x, y, after_step=after_step))


@bug(
    "one-cycle-peak-too-large",
    wrong="the peak of OneCycleLR is 5 instead of 0.05, so the network is destroyed in the middle of training",
    source="fastai and Lightning threads on max_lr; AUTOTRAINER (ICSE 2021), oscillating loss",
    places="lr",
    words="learning rate|\\blr\\b|schedul|steps are too large|step size",
)
def one_cycle_peak_too_large(run, fixed):
    x, y = digit_images()
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(512, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    scheduler = lr_scheduler.OneCycleLR(optimizer, max_lr=0.05 if fixed else 5.0, total_steps=260)
    return falls(train(run, model, optimizer, x, y, after_step=lambda *_: scheduler.step()))


@bug(
    "decay-too-strong",
    wrong="weight_decay is 1 instead of 1e-4 in Adam, where it is added to the gradient, so weights shrink to nothing",
    source="DeepFD (ICSE 2022), wrong regularisation; Hugging Face threads on weight_decay",
    words="weight.?decay|decay|weights? (shrink|shrank|fall|vanish)|regulari",
)
def decay_too_strong(run, fixed):
    x, y = digits()
    model = mlp(64, 64, 64, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-4 if fixed else 1.0)
    return falls(train(run, model, optimizer, x, y))


@bug(
    "half-precision-adam",
    wrong="all of the training is in float16, where Adam's epsilon of 1e-8 is zero, so updates become infinite or NaN",
    source="discuss.pytorch.org and apex threads, 'Adam with half precision gives NaN'",
    words="\\bnan\\b|infinit|half|float16|epsilon|\\beps\\b|overflow",
)
def half_precision_adam(run, fixed):
    x, y = digits()
    kind = torch.float32 if fixed else torch.float16
    model = mlp(64, 64, 10).to(kind)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = train(
        run, model, optimizer, x.to(kind), y, steps=200, loss_of=lambda out, y: F.cross_entropy(out.float(), y)
    )
    return falls(losses)


@bug(
    "dropout-keep-confused",
    wrong="Dropout(0.95) was meant as the probability of keeping, as TensorFlow 1 has it",
    source="Humbatova et al. (ICSE 2020), TensorFlow to PyTorch conversions; Zhang et al. (ISSTA 2018)",
    places="drop1, drop2",
    words="dropout",
)
def dropout_keep_confused(run, fixed):
    x, y = digits()
    rate = 0.05 if fixed else 0.95
    model = nn.Sequential()
    for name, module in {
        "first": nn.Linear(64, 64), "act1": nn.ReLU(), "drop1": nn.Dropout(rate),
        "second": nn.Linear(64, 64), "act2": nn.ReLU(), "drop2": nn.Dropout(rate), "head": nn.Linear(64, 10),
    }.items():  # fmt: skip
        model.add_module(name, module)
    return falls(train(run, model, torch.optim.Adam(model.parameters(), lr=2e-3), x, y))


@bug(
    "running-statistics-frozen",
    wrong="BatchNorm has momentum 0.0001, meant in the other convention, so evaluation uses statistics of the start",
    source="Keras to PyTorch conversions (momentum 0.99 = 0.01); timm threads on bn_momentum",
    places="norm",
    words="running|momentum|evaluation|batch.?norm|validation",
)
def running_statistics_frozen(run, fixed):
    x, y = digits()
    x = 40 * x + 100
    model = nn.Sequential()
    model.add_module("norm", nn.BatchNorm1d(64, momentum=0.1 if fixed else 1e-4))
    model.add_module("first", nn.Linear(64, 64))
    model.add_module("act", nn.ReLU())
    model.add_module("head", nn.Linear(64, 10))
    scores = []

    def after_step(number, loss):
        if number % 10 == 9:
            model.eval()
            with torch.no_grad():
                scores.append(accuracy(model(x[:400]), y[:400]))
            run.metric("validation accuracy", scores[-1])
            model.train()

    train(run, model, torch.optim.Adam(model.parameters(), lr=3e-3), x, y, after_step=after_step)
    return rises(scores, 0.8)
