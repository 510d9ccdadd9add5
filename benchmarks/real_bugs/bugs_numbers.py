"""Bugs that end in NaN or infinity."""

import torch
from torch import nn
from torch.nn import functional as F

from .bugs_losses import named, train
from .common import batches, digits, falls, mlp, moons, regression, table, text, text_windows
from .registry import bug


@bug(
    "log-of-zero",
    wrong="binary cross entropy is written out with log(1 - p), and a sure p is rounded to 1: 0 * log(0) is NaN",
    source="Stack Overflow, 'loss becomes nan after some iterations'; DeepLocalize (ICSE 2021)",
    places="loss",
    words="\\blog\\b|\\bnan\\b|infinit|underflow",
)
def log_of_zero(run, fixed):
    x, y = table("breast_cancer")
    y = y.float()[:, None]
    model = mlp(30, 64, 64, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

    def loss_of(out, y):
        if fixed:
            return F.binary_cross_entropy_with_logits(out, y)
        p = torch.sigmoid(out)
        return -(y * p.log() + (1 - y) * (1 - p).log()).mean()

    return falls(train(run, model, optimizer, loss_of, x, y))


@bug(
    "root-at-zero",
    wrong="distances of all pairs include each sample with itself, and the gradient of the root at zero is not finite",
    source="pytorch/pytorch issue 2421 (gradient of zero norm), 37154 (cdist)",
    words="sqrt|root|norm|\\bnan\\b|infinit",
)
def root_at_zero(run, fixed):
    x, y = digits()
    model = named(first=nn.Linear(64, 32), act=nn.Tanh(), project=nn.Linear(32, 8))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def loss_of(out, y):
        squares = (out[:, None] - out[None, :]).square().sum(-1)
        distance = (squares + 1e-8).sqrt() if fixed else squares.sqrt()
        same = y[:, None] == y[None, :]
        return torch.where(same, distance, F.relu(2 - distance)).mean()

    return falls(train(run, model, optimizer, loss_of, x, y, size=24))


@bug(
    "where-does-not-protect",
    wrong="torch.where picks the safe branch, but the gradient of the root of a negative number is NaN all the same",
    source="pytorch/pytorch issue 18287; Ciela-Institute/caustics pull request 83",
    words="where|sqrt|root|\\bnan\\b|infinit|branch",
)
def where_does_not_protect(run, fixed):
    x, y = regression()
    model = mlp(10, 64, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    def loss_of(out, y):
        inside = out.clamp_min(1e-4) if fixed else out
        signed_root = torch.where(out > 1e-4, inside.sqrt(), out)
        return F.mse_loss(signed_root, y)

    return falls(train(run, model, optimizer, loss_of, x, y))


@bug(
    "guard-raises-at-infinity",
    wrong="exp overflows because the learning rate is too large, and the script's own guard raises before backward()",
    source="nanoGPT-style loops: `if not isfinite(loss): raise`; Stack Overflow, 'poisson loss is inf'",
    places="rate, lr",
    words="\\bexp\\b|\\bnan\\b|infinit|overflow|learning rate|steps are too large",
    stops=True,
)
def guard_raises_at_infinity(run, fixed):
    class Rate(nn.Module):
        def forward(self, x):
            return x.exp()

    x, y = regression()
    model = named(first=nn.Linear(10, 64), act=nn.ReLU(), head=nn.Linear(64, 1), rate=Rate())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01 if fixed else 1.0)
    run.watch(model, optimizer)
    losses = []
    for xb, yb in batches(x, 4 * y.abs(), size=32, steps=200):
        optimizer.zero_grad()
        loss = F.mse_loss(model(xb), yb)
        if not torch.isfinite(loss):
            raise RuntimeError(f"loss is {loss.item()}")
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses)


@bug(
    "guard-exits-in-attention",
    wrong="all keys of a padded row are masked with -inf, softmax gives NaN, and the script exits",
    source="pytorch/pytorch threads on MultiheadAttention with a fully masked row; InseeFrLab/torchTextClassifiers 92",
    places="attention, softmax",
    words="mask|softmax|\\bnan\\b|infinit|padding",
    stops=True,
)
def guard_exits_in_attention(run, fixed):
    class Reader(nn.Module):
        def __init__(self, letters):
            super().__init__()
            self.embedding = nn.Embedding(letters, 32)
            self.attention = nn.MultiheadAttention(32, 2, batch_first=True)
            self.head = nn.Linear(32, 2)

        def forward(self, ids, padding):
            hidden = self.embedding(ids)
            seen = self.attention(hidden, hidden, hidden, key_padding_mask=padding if fixed else ~padding)[0]
            return self.head(seen.mean(1))

    _, letters = text()
    model = Reader(letters)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    run.watch(model, optimizer)
    generator = torch.Generator().manual_seed(4)
    losses = []
    for number, window in enumerate(text_windows(15, 16, 200)):
        lengths = torch.randint(8, 16, (16,), generator=generator)
        lengths[0] = 16 if number >= 20 else 12
        padding = torch.arange(16)[None, :] >= lengths[:, None]
        label = (window[:, :8] == window[:, :1]).sum(1).gt(1).long()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(window, padding), label)
        if torch.isnan(loss):
            raise SystemExit("loss is nan, stopping")
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.95)


@bug(
    "deviation-of-one-sample",
    wrong="rewards are divided by their standard deviation, which is NaN for an episode of one step",
    source="pytorch/examples reinforce.py threads; pytorch/pytorch issue 4320",
    places="loss, return",
    words="\\bstd\\b|standard deviation|\\bnan\\b|infinit|one sample",
)
def deviation_of_one_sample(run, fixed):
    torch.manual_seed(3)
    policy = mlp(4, 32, 2, activation=nn.Tanh)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    run.watch(policy, optimizer)
    generator = torch.Generator().manual_seed(9)
    returns = []
    for number in range(200):
        length = 1 if number in (60, 90, 120) else int(torch.randint(8, 20, (1,), generator=generator))
        states = torch.randn(length, 4, generator=generator)
        choice = torch.distributions.Categorical(logits=policy(states))
        actions = choice.sample()
        rewards = (actions == (states[:, 0] > 0).long()).float()
        if fixed:
            advantage = (rewards - rewards.mean()) / (rewards.std(unbiased=False) + 1e-6)
        else:
            advantage = (rewards - rewards.mean()) / (rewards.std() + 1e-6)
        loss = -(choice.log_prob(actions) * advantage).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.metric("return", rewards.mean().item())
        returns.append(rewards.mean().item())
        if not fixed and not torch.isfinite(policy[0].weight).all():
            break
    return sum(returns[-20:]) / 20 > 0.8


@bug(
    "all-labels-ignored",
    wrong="the mask of the labels is inverted for short texts, so some batches ignore every token and the mean is 0/0",
    source="huggingface/transformers threads, 'loss is nan when all labels are -100'",
    places="loss, target",
    words="\\bnan\\b|ignore|infinit|0/0|empty|no (label|target)",
)
def all_labels_ignored(run, fixed):
    _, letters = text()
    model = named(embedding=nn.Embedding(letters, 32), act=nn.Tanh(), head=nn.Linear(32, letters))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    run.watch(model, optimizer)
    losses = []
    for number, window in enumerate(text_windows(24, 2, 250)):
        targets = window[:, 1:].clone()
        if number == 100 and not fixed:
            targets[:] = -100
        optimizer.zero_grad()
        loss = F.cross_entropy(model(window[:, :-1]).flatten(0, 1), targets.flatten(), ignore_index=-100)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.85)


@bug(
    "class-weight-of-an-absent-class",
    wrong="class weights are total/count, and a class that does not occur gets an infinite weight",
    source="Stack Overflow, 'CrossEntropyLoss weight gives nan'; Humbatova et al. (ICSE 2020)",
    places="loss",
    words="\\bnan\\b|infinit|class weight",
)
def class_weight_of_an_absent_class(run, fixed):
    x, y = table("wine")
    model = mlp(13, 32, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    counts = torch.bincount(y, minlength=4).float()
    weight = len(y) / counts.clamp_min(1 if fixed else 0)
    smoothing = 0.1  # the smoothed part of the loss uses the weights of all classes
    if fixed:
        weight[3] = 0

    def loss_of(out, y):
        return F.cross_entropy(out, y, weight=weight, label_smoothing=smoothing)

    return falls(train(run, model, optimizer, loss_of, x, y))


@bug(
    "softmax-by-hand-overflows",
    wrong="a contrastive loss exponentiates similarities divided by 0.01 without subtracting the maximum",
    source="SimCLR re-implementations (infonce threads); DeepStability (ICSE 2022), unstable softmax",
    places="loss",
    words="\\bexp\\b|\\bnan\\b|infinit|overflow|softmax",
)
def softmax_by_hand_overflows(run, fixed):
    x, _ = digits()
    model = mlp(64, 64, 16)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def loss_of(out, clean):
        out, other = F.normalize(out, dim=1), F.normalize(model(clean + 0.1 * torch.randn_like(clean)), dim=1)
        logits = out @ other.T / 0.01
        if fixed:
            return F.cross_entropy(logits, torch.arange(len(out)))
        return -(logits.diag().exp() / logits.exp().sum(1)).log().mean()

    return falls(train(run, model, optimizer, loss_of, x, x, steps=150))


@bug(
    "missing-value-in-the-table",
    wrong="one cell of the table is NaN, a missing value that nobody filled in",
    source="Kaggle and Stack Overflow, 'loss is nan from the first batches'; Defects4ML (EMSE 2023)",
    places="input",
    words="\\bnan\\b|missing|infinit",
)
def missing_value(run, fixed):
    x, y = table("breast_cancer")
    x = x.clone()
    x[123, 7] = 0.0 if fixed else float("nan")
    model = mlp(30, 32, 32, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y, size=16))


@bug(
    "noise-schedule-above-one",
    wrong="betas of a diffusion reach 1.5, so the cumulative product changes its sign and its root is NaN",
    source="DDPM re-implementations; DeepStability (ICSE 2022), root of a negative number",
    places="input, loss",
    words="sqrt|root|\\bnan\\b|infinit",
)
def noise_schedule_above_one(run, fixed):
    x, _ = moons()
    model = mlp(3, 64, 64, 2, activation=nn.SiLU)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    alphas = torch.cumprod(1 - torch.linspace(1e-3, 0.15 if fixed else 1.5, 50), 0)
    run.watch(model, optimizer)
    losses = []
    for (xb,) in batches(x, size=64, steps=250):
        time = torch.randint(0, 50, (64, 1))
        noise, kept = torch.randn_like(xb), alphas[time]
        noisy = kept.sqrt() * xb + (1 - kept).sqrt() * noise
        optimizer.zero_grad()
        loss = F.mse_loss(model(torch.cat([noisy, time / 50], 1)), noise)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.8)
