"""Healthy trainings on tables, curves and physics: losses of many kinds, some summed, some negative."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from .bugs_losses import named, train
from .common import batches, falls, mlp, moons, regression, table
from .registry import healthy


@healthy("table-classifier", kind="tabular")
def table_classifier(run):
    x, y = table("breast_cancer")
    model = nn.Sequential(nn.Linear(30, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    return falls(train(run, model, optimizer, F.binary_cross_entropy_with_logits, x, y.float()[:, None]))


@healthy("table-regression", kind="tabular")
def table_regression(run):
    x, y = table("diabetes")
    y = ((y - y.mean()) / y.std())[:, None]
    model = mlp(10, 64, 64, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    return falls(train(run, model, optimizer, F.mse_loss, x, y))


@healthy("logistic-regression", kind="tabular")
def logistic_regression(run):
    x, y = table("iris")
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y, size=16))


@healthy("self-normalising-network", kind="tabular")
def self_normalising(run):
    x, y = table("wine")
    model = mlp(13, 48, 48, 48, 48, 3, activation=nn.SELU)
    for layer in model:
        if isinstance(layer, nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="linear")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y, size=16))


@healthy("categories-and-numbers", kind="tabular")
def categories_and_numbers(run):
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.embeddings = nn.ModuleList([nn.Embedding(size, 6) for size in (5, 12)])
            self.body = mlp(12 + 10, 48, 1)

        def forward(self, numbers, categories):
            looked_up = [table(categories[:, n]) for n, table in enumerate(self.embeddings)]
            return self.body(torch.cat([*looked_up, numbers], 1))

    x, y = regression()
    categories = torch.stack([torch.randint(0, 5, (1000,)), torch.randint(0, 12, (1000,))], 1)
    y = y + 0.5 * (categories[:, :1] - 2)
    model = Mixed()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    run.watch(model, optimizer)
    losses = []
    for xb, cb, yb in batches(x, categories, y, size=64, steps=250):
        optimizer.zero_grad()
        loss = F.mse_loss(model(xb, cb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses)


@healthy("quantile-regression", kind="tabular")
def quantile_regression(run):
    x, y = regression()
    model = mlp(10, 64, 3)
    levels = torch.tensor([0.1, 0.5, 0.9])
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    def loss_of(out, y):
        error = y - out
        return torch.maximum(levels * error, (levels - 1) * error).mean()

    return falls(train(run, model, optimizer, loss_of, x, y))


@healthy("counts-with-poisson-loss", kind="tabular")
def counts(run):
    x, y = regression()
    number = torch.poisson((0.7 * y).exp(), generator=torch.Generator().manual_seed(0))
    model = mlp(10, 32, 1, activation=nn.Tanh)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = train(run, model, optimizer, F.poisson_nll_loss, x, number)
    return sum(losses[-20:]) / 20 < sum(losses[:3]) / 3 - 0.1


@healthy("gaussian-likelihood-below-zero", kind="negative loss")
def gaussian_likelihood(run):
    x, y = regression()
    model = mlp(10, 64, 64, 2, activation=nn.SiLU)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    def loss_of(out, y):
        return F.gaussian_nll_loss(0.3 * out[:, :1], 0.1 * y, F.softplus(out[:, 1:]))

    return train(run, model, optimizer, loss_of, x, y)[-1] < -1


@healthy("mixture-density-network", kind="tabular")
def mixture_density(run):
    x = torch.rand(1000, 1, generator=torch.Generator().manual_seed(2)) * 2 - 1
    y = torch.where(torch.rand(1000, 1, generator=torch.Generator().manual_seed(3)) < 0.5, x.sin(), -x) + 0.05
    model = mlp(1, 48, 9, activation=nn.Tanh)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

    def loss_of(out, y):
        weight, mean, log_std = out.chunk(3, 1)
        log_std = log_std.clamp_min(-3)
        parts = torch.log_softmax(weight, 1) - log_std - 0.5 * ((y - mean) / log_std.exp()).square()
        return -torch.logsumexp(parts, 1).mean()

    losses = train(run, model, optimizer, loss_of, x, y, size=64)
    return losses[-1] < losses[0] - 0.5


@healthy("survival-with-cox-loss", kind="tabular")
def survival(run):
    x, y = regression()
    time = torch.distributions.Exponential((1.5 * y[:, 0]).exp()).sample()
    model = mlp(10, 32, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    def loss_of(out, time):
        risk = out[time.argsort(descending=True), 0]
        return -(risk - torch.logcumsumexp(risk, 0)).mean()

    losses = train(run, model, optimizer, loss_of, x, time, size=64)
    return sum(losses[-20:]) / 20 < sum(losses[:5]) / 5 - 0.15


@healthy("summed-loss", kind="summed loss")
def summed_loss(run):
    x, y = regression()
    model = mlp(10, 64, 64, 1, activation=nn.Tanh)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def loss_of(out, y):
        return F.mse_loss(out, y, reduction="sum")

    return falls(train(run, model, optimizer, loss_of, x, y, size=64, steps=300))


@healthy("summed-cross-entropy-with-adam", kind="summed loss")
def summed_cross_entropy(run):
    x, y = table("wine")
    model = mlp(13, 32, 32, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    def loss_of(out, y):
        return F.cross_entropy(out, y, reduction="sum")

    return falls(train(run, model, optimizer, loss_of, x, y, size=48))


@healthy("one-sample-per-batch", kind="tiny batches")
def one_sample(run):
    x, y = table("iris")
    model = mlp(4, 24, 3, activation=nn.Tanh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
    losses = train(run, model, optimizer, F.cross_entropy, x, y, size=1, steps=400)
    return sum(losses[-100:]) / 100 < 0.6 * sum(losses[:20]) / 20


@healthy("two-samples-per-batch", kind="tiny batches")
def two_samples(run):
    x, y = regression()
    model = mlp(10, 48, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = train(run, model, optimizer, F.mse_loss, x, y, size=2, steps=400)
    return sum(losses[-100:]) / 100 < 0.7 * sum(losses[:20]) / 20


@healthy("lbfgs-fits-a-curve", kind="LBFGS")
def lbfgs_curve(run):
    x, y = regression(samples=200)
    model = mlp(10, 16, 1, activation=nn.Tanh)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=1, max_iter=8, line_search_fn="strong_wolfe")
    run.watch(model, optimizer)
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        return loss

    for _ in range(25):
        losses.append(float(optimizer.step(closure)))
    return losses[-1] < 0.3 * losses[0]


@healthy("lbfgs-logistic-regression", kind="LBFGS")
def lbfgs_logistic(run):
    x, y = table("breast_cancer")
    model = nn.Linear(30, 2)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4)
    run.watch(model, optimizer)
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y) + 1e-3 * model.weight.square().sum()
        loss.backward()
        return loss

    for _ in range(20):
        losses.append(float(optimizer.step(closure)))
    return losses[-1] < 0.3 * losses[0]


@healthy("physics-informed-network", kind="physics")
def physics_informed(run):
    model = mlp(1, 32, 32, 1, activation=nn.Tanh)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    run.watch(model, optimizer)
    losses = []
    for _ in range(300):
        time = (2 * torch.rand(48, 1)).requires_grad_()
        optimizer.zero_grad()
        u = model(time)
        (speed,) = torch.autograd.grad(u.sum(), time, create_graph=True)
        loss = (speed + u).square().mean() + (model(torch.zeros(1, 1)) - 1).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.1)


@healthy("sine-network-fits-an-image", kind="physics")
def sine_network(run):
    class Sine(nn.Module):
        def __init__(self, before, after, scale):
            super().__init__()
            self.linear, self.scale = nn.Linear(before, after), scale
            bound = 1 / before if scale == 10 else math.sqrt(6 / before) / 10
            nn.init.uniform_(self.linear.weight, -bound, bound)

        def forward(self, x):
            return torch.sin(self.scale * self.linear(x))

    axis = torch.linspace(-1, 1, 32)
    grid = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1).view(-1, 2)
    picture = torch.sin(9 * grid[:, :1]) * torch.cos(6 * grid[:, 1:])
    model = named(first=Sine(2, 48, 10), second=Sine(48, 48, 10), head=nn.Linear(48, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return falls(train(run, model, optimizer, F.mse_loss, grid, picture, size=256), 0.2)


@healthy("neural-differential-equation", kind="physics")
def neural_differential_equation(run):
    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.speed = mlp(2, 32, 2, activation=nn.Tanh)

        def forward(self, x):
            for _ in range(8):
                x = x + 0.25 * self.speed(x)
            return x

    x, _ = moons()
    turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
    model = Flow()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    return falls(train(run, model, optimizer, F.mse_loss, x, x @ turn, size=64), 0.2)


@healthy("matrix-factorisation", kind="recommendation")
def matrix_factorisation(run):
    class Factors(nn.Module):
        def __init__(self):
            super().__init__()
            self.users, self.items = nn.Embedding(80, 8), nn.Embedding(60, 8)
            self.user_bias, self.item_bias = nn.Embedding(80, 1), nn.Embedding(60, 1)

        def forward(self, pairs):
            user, item = pairs.unbind(1)
            match = (self.users(user) * self.items(item)).sum(1)
            return match + self.user_bias(user)[:, 0] + self.item_bias(item)[:, 0]

    generator = torch.Generator().manual_seed(0)
    pairs = torch.stack([torch.randint(0, n, (3000,), generator=generator) for n in (80, 60)], 1)
    tastes = torch.randn(80, 3, generator=generator), torch.randn(60, 3, generator=generator)
    rating = (tastes[0][pairs[:, 0]] * tastes[1][pairs[:, 1]]).sum(1)
    model = Factors()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
    return falls(train(run, model, optimizer, F.mse_loss, pairs, rating, size=128, steps=300))


@healthy("sets-with-deep-sets", kind="tabular")
def deep_sets(run):
    class DeepSets(nn.Module):
        def __init__(self):
            super().__init__()
            self.each, self.all = mlp(2, 32, 32), mlp(32, 32, 1)

        def forward(self, x):
            return self.all(self.each(x).mean(1))

    x = torch.randn(800, 10, 2, generator=torch.Generator().manual_seed(1))
    y = x[..., 0].std(1, keepdim=True) + x[..., 1].mean(1, keepdim=True)
    model = DeepSets()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    return falls(train(run, model, optimizer, F.mse_loss, x, y))
