"""Healthy trainings on small images."""

import torch
from torch import nn
from torch.nn import functional as F

from .bugs_losses import named, train
from .common import accuracy, batches, digit_images, digits, falls, mlp, rises
from .registry import healthy


@healthy("convolutions-on-digits", kind="vision")
def convolutions(run):
    x, y = digit_images()
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.25), nn.Linear(128, 10),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


class ResidualBlock(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.shortcut = (
            nn.Conv2d(before, after, 1, stride, bias=False) if stride > 1 or before != after else nn.Identity()
        )

    def forward(self, x):
        out = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(out + self.shortcut(x))


@healthy("residual-network", kind="vision")
def residual_network(run):
    x, y = digit_images()
    model = named(
        stem=nn.Conv2d(1, 16, 3, padding=1), block1=ResidualBlock(16, 16, 1), block2=ResidualBlock(16, 32, 2),
        block3=ResidualBlock(32, 48, 2), pool=nn.AdaptiveAvgPool2d(1), flat=nn.Flatten(), head=nn.Linear(48, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 150)
    run.watch(model, optimizer)
    losses = []
    for xb, yb in batches(x, y, size=32, steps=150):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return falls(losses)


@healthy("vision-transformer", kind="vision")
def vision_transformer(run):
    class ViT(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches = nn.Conv2d(1, 48, 2, 2)
            self.token = nn.Parameter(torch.zeros(1, 1, 48))
            self.position = nn.Parameter(0.02 * torch.randn(1, 17, 48))
            layer = nn.TransformerEncoderLayer(
                48, 4, 96, dropout=0.1, activation="gelu", batch_first=True, norm_first=True
            )
            self.encoder = nn.TransformerEncoder(layer, 3, norm=nn.LayerNorm(48), enable_nested_tensor=False)
            self.head = nn.Linear(48, 10)

        def forward(self, x):
            patches = self.patches(x).flatten(2).transpose(1, 2)
            tokens = torch.cat([self.token.expand(len(x), -1, -1), patches], 1)
            return self.head(self.encoder(tokens + self.position)[:, 0])

    x, y = digit_images()
    model = ViT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y, steps=200))


@healthy("autoencoder", kind="vision")
def autoencoder(run):
    x, _ = digits()
    model = named(encoder=mlp(64, 48, 12), act=nn.ReLU(), decoder=mlp(12, 48, 64), out=nn.Sigmoid())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    return falls(train(run, model, optimizer, F.mse_loss, x, x, steps=300), 0.6)


@healthy("u-net-segments-squares", kind="vision")
def u_net(run):
    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down1 = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU())
            self.down2 = nn.Sequential(nn.Conv2d(12, 24, 3, 2, 1), nn.BatchNorm2d(24), nn.ReLU())
            self.up = nn.ConvTranspose2d(24, 12, 2, 2)
            self.out = nn.Sequential(nn.Conv2d(24, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 1, 1))

        def forward(self, x):
            fine = self.down1(x)
            return self.out(torch.cat([fine, self.up(self.down2(fine))], 1))

    model = UNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    run.watch(model, optimizer)
    losses = []
    for _ in range(150):
        corner = torch.randint(0, 9, (16, 2))
        axis = torch.arange(16)
        rows = (axis >= corner[:, :1]) & (axis < corner[:, :1] + 6)
        columns = (axis >= corner[:, 1:]) & (axis < corner[:, 1:] + 6)
        mask = (rows[:, :, None] & columns[:, None, :]).float()[:, None]
        image = 0.7 * mask + 0.4 * torch.randn(16, 1, 16, 16)
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(image), mask)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.5)


@healthy("depthwise-convolutions", kind="vision")
def depthwise(run):
    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.depthwise = nn.Conv2d(width, width, 3, padding=1, groups=width)
            self.norm = nn.GroupNorm(1, width)
            self.wide, self.narrow = nn.Conv2d(width, 2 * width, 1), nn.Conv2d(2 * width, width, 1)

        def forward(self, x):
            return x + self.narrow(F.gelu(self.wide(self.norm(self.depthwise(x)))))

    x, y = digit_images()
    model = named(
        stem=nn.Conv2d(1, 24, 2, 2), blocks=nn.Sequential(Block(24), Block(24), Block(24)),
        pool=nn.AdaptiveAvgPool2d(1), flat=nn.Flatten(), head=nn.Linear(24, 10),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y, steps=200))


@healthy("denoising-network", kind="vision")
def denoising(run):
    x, _ = digit_images()
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 1, 3, padding=1),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    run.watch(model, optimizer)
    losses = []
    for (xb,) in batches(x, size=16, steps=200):
        optimizer.zero_grad()
        loss = F.l1_loss(model(xb + 0.3 * torch.randn_like(xb)), xb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.7)


@healthy("mlp-mixer", kind="vision")
def mlp_mixer(run):
    class Mixer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(32), nn.LayerNorm(32)
            self.tokens = mlp(16, 32, 16, activation=nn.GELU)
            self.channels = mlp(32, 64, 32, activation=nn.GELU)

        def forward(self, x):
            x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
            return x + self.channels(self.norm2(x))

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches = nn.Conv2d(1, 32, 2, 2)
            self.mixers = nn.Sequential(Mixer(), Mixer())
            self.head = nn.Linear(32, 10)

        def forward(self, x):
            return self.head(self.mixers(self.patches(x).flatten(2).transpose(1, 2)).mean(1))

    x, y = digit_images()
    model = Network()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y, steps=200))


@healthy("box-regression", kind="vision")
def box_regression(run):
    model = nn.Sequential(
        nn.Conv2d(1, 12, 3, 2, 1), nn.ReLU(), nn.Conv2d(12, 24, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(384, 2)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    run.watch(model, optimizer)
    losses = []
    for _ in range(250):
        center = torch.rand(24, 2)
        axis = torch.linspace(0, 1, 16)
        near = (axis[:, None] - center[:, None, :1]).square().transpose(1, 2) + (axis - center[:, 1:]).square()[
            :, :, None
        ]
        image = (-40 * near).exp()[:, None]
        optimizer.zero_grad()
        loss = F.smooth_l1_loss(model(image), center, beta=0.1)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.5)


@healthy("super-resolution", kind="vision")
def super_resolution(run):
    x, _ = digit_images()
    model = nn.Sequential(
        nn.Conv2d(1, 24, 3, padding=1), nn.PReLU(), nn.Conv2d(24, 4, 3, padding=1), nn.PixelShuffle(2)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    run.watch(model, optimizer)
    losses = []
    for (xb,) in batches(x, size=16, steps=250):
        optimizer.zero_grad()
        loss = F.mse_loss(model(F.avg_pool2d(xb, 2)), xb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.6)


@healthy("mixup-and-cosine-rate", kind="vision")
def mixup(run):
    x, y = digits()
    model = mlp(64, 96, 96, 10, activation=nn.GELU)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=300)
    run.watch(model, optimizer)
    scores = []
    for number, (xb, yb) in enumerate(batches(x, y, size=64, steps=300)):
        share, order = float(torch.distributions.Beta(0.4, 0.4).sample()), torch.randperm(64)
        optimizer.zero_grad()
        logits = model(share * xb + (1 - share) * xb[order])
        loss = share * F.cross_entropy(logits, yb) + (1 - share) * F.cross_entropy(logits, yb[order])
        loss.backward()
        optimizer.step()
        scheduler.step()
        if number % 10 == 9:
            with torch.no_grad():
                scores.append(accuracy(model(x), y))
            run.metric("accuracy", scores[-1])
    return scores[-1] > 0.95


@healthy("adversarial-training", kind="vision")
def adversarial(run):
    x, y = digits()
    model = mlp(64, 96, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    run.watch(model, optimizer)
    losses = []
    for xb, yb in batches(x, y, size=32, steps=200):
        xb = xb.clone().requires_grad_()
        (direction,) = torch.autograd.grad(F.cross_entropy(model(xb), yb), xb)
        optimizer.zero_grad()
        loss = F.cross_entropy(model((xb + 0.05 * direction.sign()).detach()), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses)


@healthy("deep-residual-mlp-with-norms", kind="vision")
def deep_residual(run):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.body = nn.LayerNorm(48), mlp(48, 96, 48, activation=nn.SiLU)

        def forward(self, x):
            return x + self.body(self.norm(x))

    x, y = digits()
    model = named(first=nn.Linear(64, 48), blocks=nn.Sequential(*[Block() for _ in range(10)]), head=nn.Linear(48, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return rises([1 - loss for loss in train(run, model, optimizer, F.cross_entropy, x, y, steps=200)], 0.6)
