"""Practice: healthy trainings on tables, and with the optimizers and techniques of practice."""

import copy

import torch
from sklearn import datasets
from torch import nn
from torch.nn import functional as F

from .common import accuracy, batches, digits, falls, mlp, moons, regression, rises, table, text
from .practice_common import fit
from .registry import healthy


@healthy("practice-one-sample-at-a-time-in-eights", kind="batch of one, gradients accumulated, clipped")
def one_sample_at_a_time(run):
    x, y = regression(6)
    model = nn.Sequential(nn.Linear(6, 32), nn.LayerNorm(32), nn.SiLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    run.watch(model, optimizer)
    losses = []
    for step in range(100):
        total = 0.0
        for xb, yb in zip(x[8 * step % 992 :][:8].split(1), y[8 * step % 992 :][:8].split(1), strict=True):
            loss = F.mse_loss(model(xb), yb) / 8
            loss.backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        run.metric("mean of eight", total)
        losses.append(total)
    return sum(losses[-15:]) < 0.6 * sum(losses[:15])


@healthy("practice-autocast-and-averaged-weights", kind="bfloat16 autocast, EMA for evaluation")
def autocast_and_averaged_weights(run):
    x, y = digits()
    model = nn.Sequential(nn.Linear(64, 96), nn.LayerNorm(96), nn.GELU(), nn.Linear(96, 10))
    averaged = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    run.watch(model, optimizer)
    losses = []
    for number, (xb, yb) in enumerate(batches(x, y, size=48, steps=200)):
        with torch.autocast("cpu", torch.bfloat16):
            loss = F.cross_entropy(model(xb), yb)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for mean, weight in zip(averaged.parameters(), model.parameters(), strict=True):
                mean.lerp_(weight, 0.05)
            if number % 50 == 49:
                run.metric("averaged/accuracy", accuracy(averaged(x), y))
        losses.append(loss.item())
    return falls(losses, 0.4)


@healthy("practice-adafactor-with-relative-steps", kind="Adafactor, which chooses its own rate")
def adafactor(run):
    from transformers.optimization import Adafactor

    x, y = digits()
    model = mlp(64, 96, 96, 10)
    optimizer = Adafactor(model.parameters(), lr=None, relative_step=True, warmup_init=False)
    return falls(fit(run, model, optimizer, lambda x, y: F.cross_entropy(model(x), y), x, y, steps=150), 0.4)


@healthy("practice-signs-of-the-whole-data", kind="Rprop on the whole table")
def signs_of_the_whole_data(run):
    x, y = table("breast_cancer")
    model = mlp(30, 12, 1, activation=nn.Tanh)
    optimizer = torch.optim.Rprop(model.parameters(), lr=1e-3)
    run.watch(model, optimizer)
    losses = []
    for _ in range(80):
        optimizer.zero_grad()
        loss = F.soft_margin_loss(model(x)[:, 0], y.float() * 2 - 1)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.3)


@healthy("practice-weights-between-tasks-are-learnt", kind="several tasks, weights by uncertainty, negative loss")
def weights_between_tasks(run):
    x, y = table("wine")
    other = torch.stack([x[:, 0] * 0.5 - x[:, 3] * 0.2, x[:, 6].tanh()], 1)

    class Tasks(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.kind, self.numbers = nn.Linear(13, 32), nn.Linear(32, 3), nn.Linear(32, 2)
            self.logs = nn.Parameter(torch.zeros(3))

        def forward(self, x):
            hidden = F.elu(self.body(x))
            return self.kind(hidden), self.numbers(hidden)

    model = Tasks()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def loss_of(x, y, other):
        scores, numbers = model(x)
        parts = torch.stack([F.cross_entropy(scores, y), *(numbers - other).square().mean(0)])
        return ((-model.logs).exp() * parts + model.logs).sum()

    losses = fit(run, model, optimizer, loss_of, x, y, other, size=32, steps=250)
    return losses[0] > 0.5 and losses[-1] < -1


@healthy("practice-learns-to-learn-sines", kind="MAML with one inner step")
def learns_to_learn_sines(run):
    net = mlp(1, 40, 40, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    run.watch(net, optimizer)
    generator = torch.Generator().manual_seed(8)
    gains = []
    for _ in range(120):
        after = before = 0
        for _ in range(4):
            shift, height = torch.rand(2, generator=generator) * torch.tensor([3.14, 2.0]) + torch.tensor([0, 0.5])
            x = torch.rand(20, 1, generator=generator) * 6 - 3
            y = height * (x + shift).sin()
            own = dict(net.named_parameters())
            first = F.mse_loss(torch.func.functional_call(net, own, x[:10]), y[:10])
            slopes = torch.autograd.grad(first, list(own.values()), create_graph=True)
            own = {name: weight - 0.05 * slope for (name, weight), slope in zip(own.items(), slopes, strict=True)}
            after = after + F.mse_loss(torch.func.functional_call(net, own, x[10:]), y[10:])
            before += first.item()
        optimizer.zero_grad()
        (after / 4).backward()
        optimizer.step()
        run.metric("query loss", after / 4)
        gains.append(after.item() / before)
    return sum(gains[-20:]) / 20 < 0.85


@healthy("practice-weights-made-by-a-network", kind="hypernetwork")
def weights_made_by_a_network(run):
    class Hyper(nn.Module):
        def __init__(self):
            super().__init__()
            self.maker = mlp(1, 32, 16 * 2 + 16)
            self.out = nn.Linear(16, 1)

        def forward(self, x, context):
            made = self.maker(context)
            weight, bias = made[:, :32].view(-1, 16, 2), made[:, 32:]
            return self.out(torch.tanh((weight @ x[..., None])[..., 0] + bias))[:, 0]

    x = torch.rand(800, 2, generator=torch.Generator().manual_seed(1)) * 2 - 1
    context = torch.rand(800, 1, generator=torch.Generator().manual_seed(2)) * 2 - 1
    y = torch.where(context[:, 0] > 0, x[:, 0] * x[:, 1] * 3, x[:, 0] - x[:, 1])
    model = Hyper()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses = fit(run, model, optimizer, lambda x, c, y: F.mse_loss(model(x, c), y), x, context, y, steps=250)
    return falls(losses, 0.4)


@healthy("practice-fine-tuning-with-tiny-rates", kind="rates that fall from layer to layer")
def fine_tuning_with_tiny_rates(run):
    x, y = digits()
    model = nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.Linear(96, 96), nn.GELU(), nn.Linear(96, 10))
    early = torch.optim.Adam(model.parameters(), lr=2e-3)
    for xb, yb in batches(x, y % 5, size=48, steps=200):
        early.zero_grad()
        F.cross_entropy(model(xb), yb).backward()
        early.step()
    early.zero_grad()
    model[4] = nn.Linear(96, 10)
    groups = [
        {"params": model[0].parameters(), "lr": 1e-6},
        {"params": model[2].parameters(), "lr": 1e-5},
        {"params": model[4].parameters(), "lr": 5e-3},
    ]
    optimizer = torch.optim.AdamW(groups)
    return falls(fit(run, model, optimizer, lambda x, y: F.cross_entropy(model(x), y), x, y, steps=200), 0.6)


@healthy("practice-categories-as-ones-and-zeros", kind="integer inputs, constant columns, rare categories")
def categories_as_ones_and_zeros(run):
    """Some categories never occur, one column is always one, and the table is of integers."""
    generator = torch.Generator().manual_seed(19)
    first = torch.randint(0, 6, (900,), generator=generator)
    second = torch.randint(0, 30, (900,), generator=generator).clamp(max=11)
    x = torch.cat([F.one_hot(first, 8), F.one_hot(second, 30), torch.ones(900, 1, dtype=torch.long)], 1)
    y = ((first * 3 + second) % 4 < 2).float()

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = mlp(39, 48, 48, 1)

        def forward(self, table):
            return self.body(table.float())[:, 0]

    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    def loss_of(x, y):
        return F.binary_cross_entropy_with_logits(model(x), y)

    return falls(fit(run, model, optimizer, loss_of, x, y, size=64, steps=250), 0.5)


@healthy("practice-outliers-among-the-targets", kind="regression of Friedman's table with Huber's loss")
def outliers_among_the_targets(run):
    x, y = datasets.make_friedman1(800, noise=0.5, random_state=0)
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    y = (y - y.mean()) / y.std()
    wild = torch.rand(800, generator=torch.Generator().manual_seed(1)) < 0.02
    y = torch.where(wild, y + 15, y)
    model = nn.Sequential(nn.BatchNorm1d(10), nn.Linear(10, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 1))
    optimizer = torch.optim.Adagrad(model.parameters(), lr=3e-2)
    run.watch(model, optimizer)
    losses = []
    for xb, yb in batches(x, y, size=64, steps=200):
        out = model(xb)[:, 0]
        losses.append(float((out.detach() - yb).abs().median()))
        optimizer.zero_grad()
        F.huber_loss(out, yb).backward()
        optimizer.step()
    return falls(losses, 0.6)


@healthy("practice-head-for-later", kind="a head that is not used yet")
def head_for_later(run):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.now, self.later = nn.Linear(30, 24), nn.Linear(24, 2), nn.Linear(24, 5)

        def forward(self, x, which="now"):
            return getattr(self, which)(F.leaky_relu(self.body(x)))

    x, y = table("breast_cancer")
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    return falls(fit(run, model, optimizer, lambda x, y: F.cross_entropy(model(x), y), x, y, steps=120), 0.4)


@healthy("practice-few-units-speak", kind="sparse autoencoder")
def few_units_speak(run):
    """256 ReLU units, and a penalty that leaves a few of them active for each sample."""

    class Sparse(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = nn.Linear(64, 256), nn.Linear(256, 64)

        def forward(self, x):
            code = F.relu(self.encoder(x - self.decoder.bias))
            return self.decoder(code), code

    x, _ = digits()
    model = Sparse()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    def loss_of(x):
        out, code = model(x)
        run.metric("active", (code > 0).float().mean())
        return (out - x).square().sum(1).mean() + 0.05 * code.sum(1).mean()

    return falls(fit(run, model, optimizer, loss_of, x, size=64, steps=200), 0.5)


@healthy("practice-waves-of-random-frequency", kind="random features that are frozen, ridge readout")
def waves_of_random_frequency(run):
    class Kernel(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("frequency", 2 * torch.randn(2, 200))
            self.register_buffer("phase", 6.28 * torch.rand(200))
            self.readout = nn.Linear(200, 1)

        def forward(self, x):
            return self.readout((x @ self.frequency + self.phase).cos() * 0.1)[:, 0]

    x, y = moons()
    model = Kernel()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9, weight_decay=1e-4)

    def loss_of(x, y):
        return F.binary_cross_entropy_with_logits(model(x), y.float())

    return falls(fit(run, model, optimizer, loss_of, x, y, size=64, steps=200), 0.5)


@healthy("practice-counts-of-neighbouring-letters", kind="GloVe-like weighted factorisation")
def counts_of_neighbouring_letters(run):
    """Pairs that never occur have weight zero and get no gradient."""
    ids, letters = text()
    counts = torch.zeros(letters, letters)
    for distance in (1, 2, 3):
        counts.index_put_((ids[:-distance], ids[distance:]), torch.tensor(1.0 / distance), accumulate=True)
    weight, logs = (counts / 50).clamp(max=1) ** 0.75, (counts + 1e-9).log().clamp(min=-2)

    class Factors(nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right = nn.Embedding(letters, 8), nn.Embedding(letters, 8)
            self.bias = nn.Embedding(letters, 2)
            for part in (self.left, self.right, self.bias):
                nn.init.normal_(part.weight, std=0.1)

        def forward(self):
            return self.left.weight @ self.right.weight.T + self.bias.weight[:, :1] + self.bias.weight[:, 1]

    model = Factors()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
    run.watch(model, optimizer)
    losses = []
    for _ in range(150):
        optimizer.zero_grad()
        loss = (weight * (model() - logs).square()).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.2)


@healthy("practice-noisy-labels-and-slow-schedule", kind="one label in five is wrong, warm-up and cosine")
def noisy_labels(run):
    x, y = digits()
    generator = torch.Generator().manual_seed(5)
    wrong = torch.rand(len(y), generator=generator) < 0.2
    noisy = torch.where(wrong, torch.randint(0, 10, y.shape, generator=generator), y)
    model = mlp(64, 48, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.01, total_iters=20)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 180)
    schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, cosine], milestones=[20])
    run.watch(model, optimizer)
    right = []
    for number, (xb, yb) in enumerate(batches(x[:1400], noisy[:1400], size=48, steps=200)):
        loss = F.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if number % 10 == 9:
            with torch.no_grad():
                right.append(accuracy(model(x[1400:]), y[1400:]))
            run.metric("score", right[-1])
    return rises(right, 0.8)
