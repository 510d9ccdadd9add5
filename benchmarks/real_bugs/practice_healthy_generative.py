"""Practice: healthy generative models, and models that learn from pairs."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

from .common import batches, digit_images, digits, falls, mlp, moons, rises
from .practice_common import fit
from .registry import healthy


@healthy("practice-digits-on-demand", kind="conditional GAN with hinge loss")
def digits_on_demand(run):
    x, y = digits()
    x = x * 2 - 1

    class Generator(nn.Module):
        def __init__(self):
            super().__init__()
            self.label = nn.Embedding(10, 16)
            self.body = nn.Sequential(nn.Linear(32, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Linear(96, 64), nn.Tanh())

        def forward(self, z, label):
            return self.body(torch.cat([z, self.label(label)], 1))

    class Judge(nn.Module):
        def __init__(self):
            super().__init__()
            norm = nn.utils.parametrizations.spectral_norm
            self.label = nn.Embedding(10, 96)
            self.body = nn.Sequential(norm(nn.Linear(64, 96)), nn.LeakyReLU(0.2), norm(nn.Linear(96, 96)))
            self.out = nn.Linear(96, 1)

        def forward(self, x, label):
            hidden = F.leaky_relu(self.body(x), 0.2)
            return self.out(hidden)[:, 0] + (hidden * self.label(label)).sum(1)

    generator, judge = Generator(), Judge()
    paint = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9))
    look = torch.optim.Adam(judge.parameters(), lr=2e-3, betas=(0.0, 0.9))
    run.watch(generator, paint, name="generator")
    run.watch(judge, look, name="judge")
    means = torch.stack([x[y == label].mean(0) for label in range(10)])
    far = []
    for real, label in batches(x, y, size=64, steps=300):
        fake = generator(torch.randn(64, 16), label)
        look.zero_grad()
        (F.relu(1 - judge(real, label)).mean() + F.relu(1 + judge(fake.detach(), label)).mean()).backward()
        look.step()
        paint.zero_grad()
        (-judge(fake, label).mean()).backward()
        paint.step()
        far.append(float((fake.detach() - means[label]).square().mean()))
    return falls(far, 0.75)


@healthy("practice-vae-that-knows-the-class", kind="conditional VAE with free bits")
def vae_that_knows_the_class(run):
    x, y = digits()

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = mlp(74, 96, 12), mlp(16, 96, 64)

        def forward(self, x, label):
            known = F.one_hot(label, 10).float()
            mean, logvar = self.encoder(torch.cat([x, known], 1)).chunk(2, 1)
            z = mean + torch.randn_like(mean) * (logvar / 2).exp()
            nats = 0.5 * (mean.square() + logvar.exp() - 1 - logvar)
            return self.decoder(torch.cat([z, known], 1)), nats.mean(0).clamp(min=0.1).sum()

    model = Model()
    optimizer = torch.optim.Adamax(model.parameters(), lr=4e-3)

    def loss_of(x, label):
        out, nats = model(x, label)
        rebuilt = F.binary_cross_entropy_with_logits(out, x, reduction="sum") / len(x)
        run.metric("elbo", -(rebuilt + nats))
        return rebuilt + nats

    return falls(fit(run, model, optimizer, loss_of, x, y, size=64, steps=200), 0.75)


@healthy("practice-codes-by-gumbel", kind="discrete VAE with falling temperature")
def codes_by_gumbel(run):
    x, _ = digits()

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.codes = mlp(64, 96, 32), nn.Parameter(torch.randn(4, 8, 12) * 0.5)
            self.decoder = mlp(48, 96, 64)
            self.temperature = 1.0

        def forward(self, x):
            chosen = F.gumbel_softmax(self.encoder(x).view(-1, 4, 8), self.temperature)
            return self.decoder(torch.einsum("bgk,gkd->bgd", chosen, self.codes).flatten(1))

    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    run.watch(model, optimizer)
    errors = []
    for number, (image,) in enumerate(batches(x, size=64, steps=250)):
        model.temperature = max(0.4, 0.99**number)
        loss = (model(image) - image).square().sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        errors.append(loss.item())
    return falls(errors, 0.6)


@healthy("practice-slopes-of-the-density", kind="score matching, negative loss")
def slopes_of_the_density(run):
    """Sliced score matching: the loss has no lower limit that is known, and is soon negative."""
    points = moons()[0] + 0.1 * torch.randn(1000, 2, generator=torch.Generator().manual_seed(2))
    net = mlp(2, 96, 96, 2, activation=nn.Softplus)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)

    def loss_of(x):
        x = x.clone().requires_grad_()
        direction = torch.randn_like(x)
        score = net(x)
        along = (score * direction).sum()
        (slope,) = torch.autograd.grad(along, x, create_graph=True)
        return ((slope * direction).sum(1) + 0.5 * score.square().sum(1)).mean()

    losses = fit(run, net, optimizer, loss_of, points, size=128, steps=250)
    return sum(losses[-20:]) / 20 < -1


@healthy("practice-energies-held-near-zero", kind="energy-based model")
def energies_held_near_zero(run):
    x, _ = digits()
    energy = mlp(64, 96, 96, 1, activation=nn.SiLU)
    optimizer = torch.optim.Adam(energy.parameters(), lr=1e-3, betas=(0.0, 0.99))
    memory = torch.rand(512, 64)
    gaps = []

    def loss_of(real):
        rows = torch.randint(0, 512, (len(real),))
        fake = memory[rows]
        for _ in range(5):
            fake.requires_grad_()
            (slope,) = torch.autograd.grad(energy(fake).sum(), fake)
            fake = (fake - 0.1 * slope.clamp(-0.3, 0.3) + 0.005 * torch.randn_like(fake)).clamp(0, 1).detach()
        memory[rows] = fake
        low, high = energy(real), energy(fake)
        with torch.no_grad():
            gaps.append(float(energy(torch.rand_like(real)).mean() - low.mean()))
        return (low - high).mean() + 0.3 * (low.square() + high.square()).mean()

    fit(run, energy, optimizer, loss_of, x, size=64, steps=150)
    return rises(gaps, 0.3)


@healthy("practice-narrow-density", kind="normalising flow, negative loss")
def narrow_density(run):
    """Points in a ring a tenth wide: their density is large, so the loss in nats goes below zero."""
    angle = torch.rand(1000, generator=torch.Generator().manual_seed(6)) * 6.283
    points = torch.stack([angle.cos(), angle.sin()], 1) * 0.3
    points = points + 0.02 * torch.randn(1000, 2, generator=torch.Generator().manual_seed(7))

    class Half(nn.Module):
        def __init__(self, side):
            super().__init__()
            self.side, self.net = side, mlp(1, 64, 64, 2)
            nn.init.zeros_(self.net[-1].weight)

        def forward(self, x):
            kept, moved = x[:, self.side, None], x[:, 1 - self.side, None]
            scale, shift = self.net(kept).chunk(2, 1)
            scale = 2 * torch.tanh(scale / 2)
            moved = moved * scale.exp() + shift
            return torch.cat([kept, moved] if self.side == 0 else [moved, kept], 1), scale.sum(1)

    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.halves = nn.ModuleList(Half(n % 2) for n in range(6))

        def forward(self, x):
            volume = torch.zeros(len(x))
            for half in self.halves:
                x, more = half(x)
                volume = volume + more
            return -0.5 * x.square().sum(1) - 1.838 + volume

    model = Flow()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    losses = fit(run, model, optimizer, lambda x: -model(x).mean(), points, size=128, steps=250)
    return losses[0] > 1 and sum(losses[-10:]) / 10 < 0


@healthy("practice-same-digit-other-view", kind="momentum contrast with a queue")
def same_digit_other_view(run):
    """The key network is an average that no optimizer holds; its queue begins as noise."""
    x, y = digit_images()

    class Encoder(nn.Sequential):
        def __init__(self):
            super().__init__(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten())
            self.append(nn.Linear(512, 24))

    query = Encoder()
    key = copy.deepcopy(query).requires_grad_(False)
    queue = F.normalize(torch.randn(256, 24), dim=1)
    optimizer = torch.optim.SGD(query.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    run.watch(query, optimizer)

    def view(image):
        return torch.roll(image, (int(torch.randint(-1, 2, ())), int(torch.randint(-1, 2, ()))), (2, 3)) + (
            0.05 * torch.randn_like(image)
        )

    losses = []
    for (image,) in batches(x, size=48, steps=200):
        q = F.normalize(query(view(image)), dim=1)
        with torch.no_grad():
            for old, new in zip(key.parameters(), query.parameters(), strict=True):
                old.lerp_(new, 0.05)
            k = F.normalize(key(view(image)), dim=1)
        logits = torch.cat([(q * k).sum(1, keepdim=True), q @ queue.T], 1) / 0.1
        loss = F.cross_entropy(logits, torch.zeros(48, dtype=torch.long))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        queue = torch.cat([k, queue])[:256]
        losses.append(loss.item())
    with torch.no_grad():
        out = F.normalize(query(x[:400]), dim=1)
        near = (out @ out.T - 2 * torch.eye(400)).argmax(1)
    return float((y[:400][near] == y[:400]).float().mean()) > 0.8


@healthy("practice-variance-and-covariance", kind="self-supervised with VICReg terms")
def variance_and_covariance(run):
    x, _ = digits()
    model = nn.Sequential(nn.Linear(64, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Linear(96, 32))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

    def off_diagonal(z):
        z = z - z.mean(0)
        between = z.T @ z / (len(z) - 1)
        return (between - between.diag().diag()).square().sum() / 32

    def loss_of(x):
        one, two = (model(x * (torch.rand_like(x) > 0.2)) for _ in range(2))
        invariance = F.mse_loss(one, two)
        spread = sum(F.relu(1 - (z.var(0) + 1e-4).sqrt()).mean() for z in (one, two))
        covariance = off_diagonal(one) + off_diagonal(two)
        for name, part in (("invariance", invariance), ("spread", spread), ("covariance", covariance)):
            run.metric(name, part)
        return 25 * invariance + 25 * spread + covariance

    return falls(fit(run, model, optimizer, loss_of, x, size=96, steps=200), 0.7)


@healthy("practice-angles-of-classes", kind="metric learning with ArcFace")
def angles_of_classes(run):
    """Logits are cosines times 30, so they are large and the loss begins far above log(10)."""
    x, y = digits()

    class Arc(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.centres = mlp(64, 64, 16), nn.Parameter(torch.randn(10, 16))

        def forward(self, x, y):
            cosine = F.normalize(self.body(x), dim=1) @ F.normalize(self.centres, dim=1).T
            angle = cosine.clamp(-1 + 1e-6, 1 - 1e-6).acos()
            return 30 * torch.where(F.one_hot(y, 10) > 0, (angle + 0.3).cos(), cosine)

    model = Arc()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    return falls(fit(run, model, optimizer, lambda x, y: F.cross_entropy(model(x, y), y), x, y, steps=200), 0.4)


@healthy("practice-few-shots", kind="prototypical network, episodes")
def few_shots(run):
    x, y = digits()
    by_class = [x[y == label] for label in range(10)]
    generator = torch.Generator().manual_seed(10)
    net = mlp(64, 64, 32)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    run.watch(net, optimizer)
    right = []
    for _ in range(200):
        ways = torch.randperm(10, generator=generator)[:5].tolist()
        episode = torch.cat(
            [by_class[way][torch.randperm(len(by_class[way]), generator=generator)[:4]] for way in ways]
        )
        out = net(episode).view(5, 4, 32)
        centres, questions = out[:, 0], out[:, 1:].flatten(0, 1)
        scores = -torch.cdist(questions, centres).square()
        asked = torch.arange(5).repeat_interleave(3)
        loss = F.cross_entropy(scores, asked)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right.append(float((scores.argmax(1) == asked).float().mean()))
    return rises(right, 0.8)
