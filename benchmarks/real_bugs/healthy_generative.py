"""Healthy trainings of generative models and of representations."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

from .bugs_families import VAE, train_gan, train_vae
from .bugs_losses import named
from .common import accuracy, batches, digit_images, digits, falls, mlp, moons
from .registry import healthy


def minimise(run, model, optimizer, loss_of, data, *, size=64, steps=250):
    """The loop where the loss needs no target: `loss_of` gets a batch."""
    run.watch(model, optimizer)
    losses = []
    for (xb,) in batches(data, size=size, steps=steps):
        optimizer.zero_grad()
        loss = loss_of(xb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@healthy("gan-on-moons", kind="GAN")
def gan(run):
    def generator_loss(critic, fake):
        return F.softplus(-critic(fake)).mean()

    slope = nn.LeakyReLU
    return train_gan(
        run, mlp(4, 64, 64, 2, activation=slope), mlp(2, 64, 64, 1, activation=slope), 1e-3, 1, generator_loss
    )


@healthy("wasserstein-gan-with-penalty", kind="GAN")
def wasserstein_gan(run):
    generator, critic = mlp(4, 48, 48, 2), mlp(2, 48, 48, 1, activation=nn.LeakyReLU)
    of_generator = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9))
    of_critic = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.0, 0.9))
    run.watch(generator, of_generator, name="generator")
    run.watch(critic, of_critic, name="critic")
    x, _ = moons()
    distances = []
    for (real,) in batches(x, size=48, steps=250):
        for _ in range(3):
            fake = generator(torch.randn(48, 4)).detach()
            between = torch.lerp(real, fake, torch.rand(48, 1)).requires_grad_()
            (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
            of_critic.zero_grad()
            loss = critic(fake).mean() - critic(real).mean() + 5 * (slope.norm(dim=1) - 1).square().mean()
            loss.backward()
            of_critic.step()
        of_generator.zero_grad()
        fake = generator(torch.randn(48, 4))
        (-critic(fake).mean()).backward()
        of_generator.step()
        distances.append(float((fake.mean(0) - x.mean(0)).norm() + (fake.std(0) - x.std(0)).norm()))
    return falls(distances)


@healthy("convolutional-gan", kind="GAN")
def convolutional_gan(run):
    generator = nn.Sequential(
        nn.Linear(8, 16 * 16), nn.Unflatten(1, (16, 4, 4)), nn.BatchNorm2d(16), nn.ReLU(),
        nn.ConvTranspose2d(16, 1, 4, 2, 1), nn.Sigmoid(),
    )  # fmt: skip
    critic = nn.Sequential(nn.Conv2d(1, 16, 4, 2, 1), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(256, 1))
    of_generator = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
    of_critic = torch.optim.Adam(critic.parameters(), lr=5e-4, betas=(0.5, 0.999))
    run.watch(generator, of_generator, name="generator")
    run.watch(critic, of_critic, name="critic")
    x, _ = digit_images()
    distances = []
    for (real,) in batches(x, size=32, steps=200):
        fake = generator(torch.randn(32, 8))
        of_critic.zero_grad()
        loss = (critic(real) - 1).square().mean() + critic(fake.detach()).square().mean()
        loss.backward()
        of_critic.step()
        of_generator.zero_grad()
        loss = (critic(fake) - 1).square().mean()
        loss.backward()
        of_generator.step()
        distances.append(float((fake.mean(0) - x.mean(0)).abs().mean()))
    return falls(distances)


@healthy("vae-on-digits", kind="VAE")
def vae(run):
    return train_vae(run, VAE(), 0.2)


@healthy("vae-with-warm-up-of-the-divergence", kind="VAE")
def vae_with_warm_up(run):
    x, _ = digits()
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    run.watch(model, optimizer)
    errors = []
    for number, (xb,) in enumerate(batches(x, size=64, steps=250)):
        optimizer.zero_grad()
        picture, mean, log_variance = model(xb)
        error = F.binary_cross_entropy_with_logits(picture, xb, reduction="none").sum(1).mean()
        divergence = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1).mean()
        loss = error + min(1.0, number / 200) * 0.5 * divergence
        loss.backward()
        optimizer.step()
        run.metric("divergence", divergence)
        errors.append(error.item())
    return falls(errors, 0.75)


@healthy("quantised-codes", kind="VAE")
def quantised_codes(run):
    class Codes(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = mlp(64, 64, 32), mlp(32, 64, 64)
            self.book = nn.Embedding(32, 8)
            nn.init.normal_(self.book.weight, std=0.3)

        def forward(self, x):
            z = self.encoder(x).view(-1, 4, 8)
            nearest = self.book((z[:, :, None] - self.book.weight).square().sum(-1).argmin(-1))
            commitment = F.mse_loss(nearest, z.detach()) + 0.25 * F.mse_loss(z, nearest.detach())
            return self.decoder((z + (nearest - z).detach()).flatten(1)), commitment

    x, _ = digits()
    model = Codes()

    def loss_of(xb):
        picture, commitment = model(xb)
        return F.mse_loss(picture, xb) + 0.2 * commitment

    return falls(minimise(run, model, torch.optim.Adam(model.parameters(), lr=3e-3), loss_of, x, steps=300))


@healthy("diffusion-on-moons", kind="diffusion")
def diffusion(run):
    x, _ = moons()
    model = mlp(6, 96, 96, 2, activation=nn.SiLU)
    kept = torch.cumprod(1 - torch.linspace(1e-3, 0.1, 60), 0)

    def loss_of(xb):
        time = torch.randint(0, 60, (len(xb), 1))
        noise = torch.randn_like(xb)
        noisy = kept[time].sqrt() * xb + (1 - kept[time]).sqrt() * noise
        angle = time / 60 * torch.tensor([1.0, 2.0, 4.0, 8.0])
        return F.mse_loss(model(torch.cat([noisy, angle.sin()], 1)), noise)

    losses = minimise(run, model, torch.optim.Adam(model.parameters(), lr=2e-3), loss_of, x, size=128, steps=300)
    return falls(losses, 0.7)


@healthy("diffusion-of-images-with-averaged-weights", kind="diffusion")
def diffusion_of_images(run):
    class Denoiser(nn.Module):
        def __init__(self):
            super().__init__()
            self.time = mlp(1, 24, 24, activation=nn.SiLU)
            self.before, self.after = nn.Conv2d(1, 24, 3, padding=1), nn.Conv2d(24, 1, 3, padding=1)
            self.middle = nn.Conv2d(24, 24, 3, padding=1)
            self.norm = nn.GroupNorm(4, 24)

        def forward(self, x, time):
            hidden = F.silu(self.before(x) + self.time(time)[:, :, None, None])
            return self.after(hidden + F.silu(self.norm(self.middle(hidden))))

    x, _ = digit_images()
    model = Denoiser()
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    run.watch(model, optimizer)
    losses = []
    for (xb,) in batches(2 * x - 1, size=32, steps=200):
        time = torch.rand(32, 1)
        noise = torch.randn_like(xb)
        angle = 1.57 * time[:, :, None, None]
        optimizer.zero_grad()
        loss = F.mse_loss(model(angle.cos() * xb + angle.sin() * noise, time), noise)
        loss.backward()
        optimizer.step()
        average.update_parameters(model)
        losses.append(loss.item())
    return falls(losses)


@healthy("flow-matching", kind="diffusion")
def flow_matching(run):
    x, _ = moons()
    model = mlp(3, 96, 96, 2, activation=nn.GELU)

    def loss_of(xb):
        start, time = torch.randn_like(xb), torch.rand(len(xb), 1)
        return F.mse_loss(model(torch.cat([torch.lerp(start, xb, time), time], 1)), xb - start)

    losses = minimise(run, model, torch.optim.Adam(model.parameters(), lr=3e-3), loss_of, x, size=128, steps=250)
    return falls(losses, 0.75)


@healthy("normalising-flow", kind="negative loss")
def normalising_flow(run):
    class Coupling(nn.Module):
        def __init__(self, first):
            super().__init__()
            self.first, self.net = first, mlp(1, 48, 2, activation=nn.Tanh)

        def forward(self, x):
            kept, moved = x[:, self.first : self.first + 1], x[:, 1 - self.first : 2 - self.first]
            shift, scale = self.net(kept).chunk(2, 1)
            moved = (moved + shift) * scale.tanh().mul(1.5).exp()
            parts = (kept, moved) if self.first == 0 else (moved, kept)
            return torch.cat(parts, 1), 1.5 * scale.tanh()[:, 0]

    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([Coupling(number % 2) for number in range(6)])

        def forward(self, x):
            total = 0
            for layer in self.layers:
                x, change = layer(x)
                total = total + change
            return x, total

    x, _ = moons()
    x = 0.1 * x  # small numbers, so that densities are large and the loss is below zero
    model = Flow()

    def loss_of(xb):
        z, change = model(xb)
        return (0.5 * z.square().sum(1) + 1.84 - change).mean()

    losses = minimise(run, model, torch.optim.Adam(model.parameters(), lr=5e-3), loss_of, x, steps=250)
    return losses[-1] < min(0.0, losses[0] - 1)


@healthy("contrastive-pairs-of-views", kind="contrastive")
def contrastive(run):
    x, _ = digits()
    model = named(encoder=mlp(64, 64, 48), act=nn.ReLU(), project=nn.Linear(48, 16))

    def loss_of(xb):
        first = F.normalize(model(xb * (torch.rand_like(xb) > 0.2)), dim=1)
        second = F.normalize(model(xb * (torch.rand_like(xb) > 0.2)), dim=1)
        return F.cross_entropy(first @ second.T / 0.2, torch.arange(len(xb)))

    return falls(minimise(run, model, torch.optim.Adam(model.parameters(), lr=2e-3), loss_of, x), 0.8)


@healthy("triplets", kind="contrastive")
def triplets(run):
    x, y = digits()
    model = mlp(64, 64, 16)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run.watch(model, optimizer)
    by_class = [x[y == label] for label in range(10)]
    losses = []
    for _ in range(250):
        label, other = torch.randint(0, 10, (32,)), torch.randint(1, 10, (32,))
        pick = [by_class[int(c)][int(torch.randint(0, len(by_class[int(c)]), ()))] for c in label]
        same = [by_class[int(c)][int(torch.randint(0, len(by_class[int(c)]), ()))] for c in label]
        away = [by_class[int(c)][int(torch.randint(0, len(by_class[int(c)]), ()))] for c in (label + other) % 10]
        optimizer.zero_grad()
        loss = F.triplet_margin_loss(model(torch.stack(pick)), model(torch.stack(same)), model(torch.stack(away)), 1.0)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses)


@healthy("two-towers-for-pictures-and-names", kind="contrastive")
def two_towers(run):
    class Towers(nn.Module):
        def __init__(self):
            super().__init__()
            self.picture, self.name = mlp(64, 64, 16), nn.Embedding(10, 16)
            self.scale = nn.Parameter(torch.tensor(2.0))

        def forward(self, x, y):
            picture, name = F.normalize(self.picture(x), dim=1), F.normalize(self.name(y), dim=1)
            return self.scale.exp() * picture @ name.T

    x, y = digits()
    rows = torch.stack([(y == label).nonzero()[:150, 0] for label in range(10)], 1)
    model = Towers()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    run.watch(model, optimizer)
    losses = []
    for (chosen,) in batches(rows, size=1, steps=300):
        logits = model(x[chosen[0]], y[chosen[0]])
        optimizer.zero_grad()
        loss = (F.cross_entropy(logits, torch.arange(10)) + F.cross_entropy(logits.T, torch.arange(10))) / 2
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.4)


@healthy("predictor-and-stopped-gradient", kind="negative loss")
def predictor_and_stopped_gradient(run):
    x, _ = digits()
    encoder = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32), nn.BatchNorm1d(32))
    model = named(encoder=encoder, predictor=nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 32)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)

    def loss_of(xb):
        views = [xb * (torch.rand_like(xb) > 0.2) for _ in range(2)]
        codes = [model.encoder(view) for view in views]
        guesses = [model.predictor(code) for code in codes]
        first = F.cosine_similarity(guesses[0], codes[1].detach()).mean()
        return -(first + F.cosine_similarity(guesses[1], codes[0].detach()).mean()) / 2

    losses = minimise(run, model, optimizer, loss_of, x, steps=200)
    return losses[-1] < -0.6


@healthy("teacher-of-averaged-weights", kind="distillation")
def teacher_of_averaged_weights(run):
    x, y = digits()
    model = mlp(64, 64, 10)
    teacher = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    run.watch(model, optimizer)
    for xb, yb in batches(x, y, size=64, steps=250):
        optimizer.zero_grad()
        logits = model(xb)
        wanted = teacher(xb + 0.1 * torch.randn_like(xb)).softmax(1)
        loss = F.cross_entropy(logits[:16], yb[:16]) + 0.5 * (logits.softmax(1) - wanted).square().mean()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(teacher.parameters(), model.parameters(), strict=True):
                slow.lerp_(fast, 0.02)
    return accuracy(teacher(x), y) > 0.85


@healthy("distilled-with-temperature", kind="distillation")
def distilled(run):
    x, y = digits()
    teacher = mlp(64, 96, 10)
    early = torch.optim.Adam(teacher.parameters(), lr=3e-3)
    for xb, yb in batches(x, y, size=64, steps=300):
        early.zero_grad()
        F.cross_entropy(teacher(xb), yb).backward()
        early.step()
    teacher.eval().requires_grad_(False)
    student = mlp(64, 24, 10)
    optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
    run.watch(student, optimizer)
    losses = []
    for xb, yb in batches(x, y, size=64, steps=300):
        optimizer.zero_grad()
        out = student(xb)
        soft = F.kl_div((out / 3).log_softmax(1), (teacher(xb) / 3).softmax(1), reduction="batchmean")
        loss = 9 * 0.5 * soft + 0.5 * F.cross_entropy(out, yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.4)
