"""Healthy trainings with the techniques of practice: adapters, experts, quantisation, precision, several tasks."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

from .bugs_families import Experts
from .bugs_losses import named, train
from .common import accuracy, batches, digit_images, digits, falls, mlp, regression, rises
from .registry import healthy


class LowRank(nn.Module):
    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + 2 * x @ self.a.T @ self.b.T


@healthy("low-rank-adapters", kind="LoRA")
def low_rank_adapters(run):
    x, y = digits()
    base = mlp(64, 64, 64, 10)
    early = torch.optim.Adam(base.parameters(), lr=3e-3)
    for xb, yb in batches(x, y, size=64, steps=200):
        early.zero_grad()
        F.cross_entropy(base(xb), yb).backward()
        early.step()
    early.zero_grad()
    for number in (0, 2, 4):
        base[number] = LowRank(base[number])
    other = x.view(-1, 8, 8).transpose(1, 2).flatten(1)  # the new task: pictures lie on their side
    optimizer = torch.optim.AdamW([p for p in base.parameters() if p.requires_grad], lr=5e-3)
    return falls(train(run, base, optimizer, F.cross_entropy, other, y))


@healthy("low-rank-adapters-in-gpt2", kind="LoRA")
def low_rank_gpt2(run):
    from transformers import GPT2Config, GPT2LMHeadModel

    from .common import text, text_windows

    class Adapter(nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base = base
            self.down, self.up = nn.Linear(base.nx, 4, bias=False), nn.Linear(4, base.nf, bias=False)
            nn.init.zeros_(self.up.weight)

        def forward(self, x):
            return self.base(x) + self.up(self.down(x))

    letters = text()[1]
    config = GPT2Config(
        vocab_size=letters, n_positions=32, n_embd=48, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0
    )
    model = GPT2LMHeadModel(config)
    early = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for window in text_windows(24, 16, 60):
        early.zero_grad()
        model(input_ids=window % 30, labels=window % 30).loss.backward()
        early.step()
    early.zero_grad()
    model.requires_grad_(False)
    for block in model.transformer.h:
        block.attn.c_attn, block.mlp.c_fc = Adapter(block.attn.c_attn), Adapter(block.mlp.c_fc)
    model.lm_head.weight = nn.Parameter(model.lm_head.weight.clone())
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=5e-3)
    run.watch(model, optimizer)
    losses = []
    for window in text_windows(24, 16, 120):
        optimizer.zero_grad()
        loss = model(input_ids=window, labels=window).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.85)


@healthy("balanced-experts", kind="mixture of experts")
def balanced_experts(run):
    x, y = digits()
    model = Experts(0.3)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    run.watch(model, optimizer)
    losses = []
    for xb, yb in batches(x, y, size=64, steps=250):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        (loss + 2 * model.load.square().sum()).backward()
        optimizer.step()
        run.metric("loss", loss)
        losses.append(loss.item())
    return falls(losses)


@healthy("soft-experts", kind="mixture of experts")
def soft_experts(run):
    class Mixture(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(10, 4)
            self.experts = nn.ModuleList([mlp(10, 24, 1) for _ in range(4)])

        def forward(self, x):
            weight = torch.softmax(self.gate(x), 1)
            return (weight[:, None] * torch.stack([expert(x) for expert in self.experts], -1)).sum(-1)

    x, y = regression()
    model = Mixture()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    return falls(train(run, model, optimizer, F.mse_loss, x, y))


@healthy("mixtral-from-its-configuration", kind="mixture of experts")
def mixtral(run):
    from transformers import MixtralConfig, MixtralForCausalLM

    from .common import text, text_windows

    config = MixtralConfig(
        vocab_size=text()[1], hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2, output_router_logits=True,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model = MixtralForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    run.watch(model, optimizer)
    losses = []
    for window in text_windows(24, 12, 100):
        optimizer.zero_grad()
        loss = model(input_ids=window, labels=window).loss
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.85)


class FakeQuantised(nn.Linear):
    """A linear layer whose weights and inputs are rounded to eight bits, with the straight-through gradient."""

    def forward(self, x):
        return F.linear(self.rounded(x), self.rounded(self.weight), self.bias)

    @staticmethod
    def rounded(value):
        scale = value.detach().abs().max() / 127 + 1e-8
        return value + ((value / scale).round() * scale - value).detach()


@healthy("quantisation-aware-training", kind="quantisation-aware")
def quantisation_aware(run):
    x, y = digits()
    model = named(first=FakeQuantised(64, 64), act=nn.ReLU(), second=FakeQuantised(64, 32), act2=nn.ReLU())
    model.add_module("head", FakeQuantised(32, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


@healthy("binary-weights", kind="quantisation-aware")
def binary_weights(run):
    class Binary(nn.Linear):
        def forward(self, x):
            sign = self.weight.sign() * self.weight.detach().abs().mean()
            return F.linear(x, self.weight + (sign - self.weight).detach(), self.bias)

    x, y = digits()
    model = named(first=Binary(64, 128), norm=nn.BatchNorm1d(128), act=nn.Hardtanh(), head=Binary(128, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


@healthy("gradients-accumulated-over-four", kind="accumulation")
def accumulated(run):
    x, y = digits()
    model = mlp(64, 64, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    run.watch(model, optimizer)
    losses = []
    for number, (xb, yb) in enumerate(batches(x, y, size=16, steps=600)):
        loss = F.cross_entropy(model(xb), yb) / 4
        loss.backward()
        if number % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(4 * loss.item())
    return falls(losses)


@healthy("bfloat16-autocast", kind="precision")
def autocast(run):
    x, y = digit_images()
    model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    run.watch(model, optimizer)
    losses = []
    for xb, yb in batches(x, y, size=32, steps=150):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses)


@healthy("scaled-gradients-unscaled-and-clipped", kind="precision")
def scaled(run):
    x, y = regression()
    model = mlp(10, 64, 64, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=100)
    run.watch(model, optimizer)
    losses = []
    for xb, yb in batches(x, y, size=32, steps=250):
        optimizer.zero_grad()
        loss = F.mse_loss(model(xb), yb)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return falls(losses)


@healthy("sharpness-aware-minimisation", kind="optimizer")
def sharpness_aware(run):
    x, y = digits()
    model = mlp(64, 64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    run.watch(model, optimizer)
    losses = []
    for xb, yb in batches(x, y, size=32, steps=200):
        with run.step():
            optimizer.zero_grad()
            loss = F.cross_entropy(model(xb), yb)
            loss.backward()
            norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
            moves = [0.05 * p.grad / (norm + 1e-12) for p in model.parameters()]
            with torch.no_grad():
                for parameter, move in zip(model.parameters(), moves, strict=True):
                    parameter.add_(move)
            optimizer.zero_grad()
            F.cross_entropy(model(xb), yb).backward()
            with torch.no_grad():
                for parameter, move in zip(model.parameters(), moves, strict=True):
                    parameter.sub_(move)
            optimizer.step()
        losses.append(loss.item())
    return falls(losses)


@healthy("frozen-body-new-head", kind="fine-tuning")
def frozen_body(run):
    x, y = digits()
    model = named(body=mlp(64, 96, 64), act=nn.ReLU(), head=nn.Linear(64, 10))
    early = torch.optim.Adam(model.parameters(), lr=3e-3)
    for xb, yb in batches(x, y // 2, size=64, steps=200):
        early.zero_grad()
        F.cross_entropy(model(xb), yb).backward()
        early.step()
    early.zero_grad()
    model.body.requires_grad_(False)
    model.head = nn.Linear(64, 10)
    optimizer = torch.optim.Adam(model.head.parameters(), lr=1e-2)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


@healthy("two-tasks-two-heads", kind="multi-task")
def two_tasks(run):
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = mlp(64, 64, 48)
            self.digit, self.ink = nn.Linear(48, 10), nn.Linear(48, 1)

        def forward(self, x):
            hidden = torch.relu(self.body(x))
            return self.digit(hidden), self.ink(hidden)

    x, y = digits()
    model = Shared()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    run.watch(model, optimizer)
    losses = []
    for xb, yb in batches(x, y, size=32, steps=250):
        optimizer.zero_grad()
        digit, ink = model(xb)
        first, second = F.cross_entropy(digit, yb), F.mse_loss(ink, 4 * xb.mean(1, keepdim=True))
        (first + second).backward()
        optimizer.step()
        run.metric("digit loss", first)
        run.metric("ink loss", second)
        losses.append(first.item() + second.item())
    return falls(losses)


@healthy("domains-confused-by-reversed-gradient", kind="adversarial")
def domains_confused(run):
    class Reverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            return -0.2 * gradient

    class Adapting(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = mlp(64, 64, 48)
            self.digit, self.domain = nn.Linear(48, 10), mlp(48, 24, 2)

        def forward(self, x):
            hidden = torch.relu(self.body(x))
            return self.digit(hidden), self.domain(Reverse.apply(hidden))

    x, y = digits()
    model = Adapting()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    run.watch(model, optimizer)
    losses = []
    for xb, yb in batches(x, y, size=32, steps=250):
        both = torch.cat([xb, 0.8 * xb + 0.1])
        optimizer.zero_grad()
        digit, domain = model(both)
        first = F.cross_entropy(digit[:32], yb)
        second = F.cross_entropy(domain, torch.arange(2).repeat_interleave(32))
        (first + second).backward()
        optimizer.step()
        run.metric("digit loss", first)
        losses.append(first.item())
    return falls(losses)


@healthy("reptile-meta-learning", kind="meta-learning")
def reptile(run):
    model = mlp(1, 32, 32, 1, activation=nn.Tanh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    run.watch(model, optimizer)
    losses = []
    for _ in range(100):
        phase, height = 3 * torch.rand(1), 0.5 + torch.rand(1)
        fast = copy.deepcopy(model)
        inner = torch.optim.SGD(fast.parameters(), lr=0.05)
        for _ in range(8):
            time = 6 * torch.rand(24, 1) - 3
            inner.zero_grad()
            loss = F.mse_loss(fast(time), height * torch.sin(time + phase))
            loss.backward()
            inner.step()
        losses.append(loss.item())
        with run.step() as step:
            optimizer.zero_grad()
            distance = sum(
                (slow - quick.detach()).square().sum() / 2
                for slow, quick in zip(model.parameters(), fast.parameters(), strict=True)
            )
            distance.backward()
            optimizer.step()
            step.metric("loss after adaptation", loss.item())
    return falls(losses)


@healthy("spectral-norm-and-hinge", kind="normalisation")
def spectral_norm(run):
    x, y = digits()
    layers = [nn.utils.parametrizations.spectral_norm(nn.Linear(64, 64)), nn.ReLU()]
    model = nn.Sequential(*layers, nn.utils.parametrizations.weight_norm(nn.Linear(64, 10)))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    return falls(train(run, model, optimizer, F.multi_margin_loss, x, y))


@healthy("steps-named-and-validated", kind="validation")
def steps_validated(run):
    x, y = digits()
    model = nn.Sequential(nn.Linear(64, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Dropout(0.3), nn.Linear(96, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    run.watch(model, optimizer)
    scores = []
    for number, (xb, yb) in enumerate(batches(x[:1400], y[:1400], size=32, steps=250)):
        with run.step() as step:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
            step.metric("train loss", loss)
        if number % 25 == 24:
            model.eval()
            with torch.no_grad():
                run.metric("validation loss", F.cross_entropy(model(x[1400:]), y[1400:]).item())
                scores.append(accuracy(model(x[1400:]), y[1400:]))
            model.train()
    return rises(scores, 0.8)


@healthy("several-epochs-with-a-loader", kind="validation")
def several_epochs(run):
    x, y = digits()
    data = torch.utils.data.TensorDataset(x, y)
    loader = torch.utils.data.DataLoader(data, batch_size=50, shuffle=True)
    model = mlp(64, 64, 10)
    optimizer = torch.optim.NAdam(model.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    run.watch(model, optimizer)
    losses = []
    for _ in range(7):
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
    return falls(losses)
