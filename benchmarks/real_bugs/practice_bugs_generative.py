"""Practice: bugs in generative models and in agents."""

import itertools

import torch
from torch import nn
from torch.nn import functional as F

from .common import digits, falls, mlp, moons, rises
from .practice_common import fit
from .registry import bug


class Variational(nn.Module):
    def __init__(self, code=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 96), nn.Tanh())
        self.mean, self.logvar = nn.Linear(96, code), nn.Linear(96, code)
        self.decoder = nn.Sequential(nn.Linear(code, 96), nn.Tanh(), nn.Linear(96, 64))

    def forward(self, x):
        hidden = self.encoder(x)
        mean, logvar = self.mean(hidden), self.logvar(hidden)
        code = mean + (0.5 * logvar).exp() * torch.randn_like(mean)
        return self.decoder(code), mean, logvar


@bug(
    "practice-divergence-subtracted",
    wrong="the KL divergence is subtracted from the loss of a VAE, so the code runs away from the prior",
    source="hhb072/IntroVAE issue 5 (sign of the KL term); FluxML/model-zoo pull request 147",
    places="mean, logvar",
    words="diverg|explod|grow|negative|unbounded|without (end|bound|limit)|below zero|overflow|\\bnan|\\bkl\\b",
)
def divergence_subtracted(run, fixed):
    x, _ = digits()
    model = Variational()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    def loss_of(x):
        out, mean, logvar = model(x)
        divergence = -0.5 * (1 + logvar - mean.square() - logvar.exp()).sum(1).mean()
        rebuilt = F.mse_loss(out, x, reduction="none").sum(1).mean()
        return rebuilt + 0.2 * divergence if fixed else rebuilt - 0.2 * divergence

    losses = fit(run, model, optimizer, loss_of, x, size=64, steps=200)
    return losses[-1] > 0 and falls(losses, 0.8)


def adversaries(run, steps, both_in_one=False, wrong_label=False):
    """A GAN on two moons; returns the distance of the means and deviations at the start and at the end."""
    points = moons()[0]
    points = (points - points.mean(0)) / points.std(0) * 0.5 + torch.tensor([2.0, -1.0])
    generator, critic = mlp(4, 48, 48, 2), mlp(2, 48, 48, 1, activation=nn.LeakyReLU)
    held = itertools.chain(generator.parameters(), critic.parameters()) if both_in_one else generator.parameters()
    first = torch.optim.Adam(held, lr=2e-3, betas=(0.5, 0.99))
    second = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.5, 0.99))
    run.watch(generator, first, name="generator")
    run.watch(critic, second, name="discriminator")
    distances = []
    for _ in range(steps):
        real = points[torch.randint(0, len(points), (64,))]
        fake = generator(torch.randn(64, 4))
        second.zero_grad()
        of_real, of_fake = critic(real), critic(fake.detach())
        (F.softplus(-of_real).mean() + F.softplus(of_fake).mean()).backward()
        second.step()
        first.zero_grad()
        answer = critic(fake)
        wished = torch.zeros_like(answer) if wrong_label else torch.ones_like(answer)
        F.binary_cross_entropy_with_logits(answer, wished).backward()
        first.step()
        distances.append(float((fake.mean(0) - real.mean(0)).norm()))
    return distances


@bug(
    "practice-generator-wants-to-be-caught",
    wrong="the generator is trained with the label 'fake', so it makes what the discriminator knows best",
    source="keras-team/keras-io issue 361; yunjey/pytorch-tutorial issue 45 (labels of the loss of the generator)",
    places="generator, discriminator",
    words="zero loss|vanish|\\bwins?\\b|discriminator|explod|diverg|saturat|wrong label",
)
def generator_wants_to_be_caught(run, fixed):
    return sum(adversaries(run, 300, wrong_label=not fixed)[-20:]) / 20 < 0.8


@bug(
    "practice-one-optimizer-holds-both",
    wrong="the optimizer of the generator holds the discriminator, too, and trains it to be deceived",
    source="discuss.pytorch.org questions on which parameters an optimizer of a GAN should hold",
    places="discriminator, generator",
    words="two optimizers|both optimizers|several optimizers|twice|discriminator|undo|opposite|oscillat|constant",
)
def one_optimizer_holds_both(run, fixed):
    return sum(adversaries(run, 300, both_in_one=not fixed)[-20:]) / 20 < 0.8


@bug(
    "practice-critic-without-a-limit",
    wrong="a Wasserstein critic has neither clipped weights nor a penalty, so its loss falls without end",
    source="ooples/AiDotNet issue 1844 (penalty without effect); discuss.pytorch.org 'WGAN loss goes to -inf'",
    places="critic",
    words="diverg|unbounded|without (end|bound|limit)|explod|grow|lipschitz|clip|penalty",
)
def critic_without_a_limit(run, fixed):
    points = moons()[0]
    generator, critic = mlp(4, 48, 48, 2), mlp(2, 48, 48, 1)
    first = torch.optim.RMSprop(generator.parameters(), lr=1e-3)
    second = torch.optim.RMSprop(critic.parameters(), lr=2e-2)
    run.watch(generator, first, name="generator")
    run.watch(critic, second, name="critic")
    gaps = []
    for _ in range(200):
        for _ in range(2):
            real = points[torch.randint(0, len(points), (64,))]
            second.zero_grad()
            gap = critic(generator(torch.randn(64, 4)).detach()).mean() - critic(real).mean()
            gap.backward()
            second.step()
            if fixed:
                with torch.no_grad():
                    for weight in critic.parameters():
                        weight.clamp_(-0.2, 0.2)
        first.zero_grad()
        (-critic(generator(torch.randn(64, 4))).mean()).backward()
        first.step()
        gaps.append(abs(gap.item()))
    return gaps[-1] < 5


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time, self.body = nn.Linear(2, 32), mlp(34, 64, 64, 2)

    def forward(self, x, t):
        angle = t[:, None] / 50 * 1.57
        return self.body(torch.cat([x, F.silu(self.time(torch.cat([angle.sin(), angle.cos()], 1)))], 1))


@bug(
    "practice-diffusion-returns-its-input",
    wrong="the target of the denoiser is the noisy point, which is its input, so it learns to copy",
    source="irom-princeton/dppo issue 14",
    places="target, loss",
    words="leak|input.*target|target.*input|copy|copies|identity|zero loss|same tensor",
)
def diffusion_returns_its_input(run, fixed):
    points = moons()[0]
    kept = torch.linspace(0.9999, 0.8, 50).cumprod(0)
    model = Denoiser()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    share = []

    def loss_of(x):
        t = torch.randint(0, 50, (len(x),))
        noise = torch.randn_like(x)
        noisy = kept[t, None].sqrt() * x + (1 - kept[t, None]).sqrt() * noise
        out = model(noisy, t.float())
        with torch.no_grad():
            share.append(F.mse_loss(out, noise).item())
        return F.mse_loss(out, noise if fixed else noisy)

    fit(run, model, optimizer, loss_of, points, size=128, steps=250)
    return falls(share, 0.38)


class Coupling(nn.Module):
    def __init__(self, first, bounded=True):
        super().__init__()
        self.first, self.bounded = first, bounded
        self.net = mlp(1, 48, 48, 2)

    def forward(self, x):
        kept, moved = x[:, self.first, None], x[:, 1 - self.first, None]
        scale, shift = self.net(kept).chunk(2, 1)
        scale = torch.tanh(scale) if self.bounded else 3 * scale
        moved = moved * scale.exp() + shift
        return torch.cat([kept, moved] if self.first == 0 else [moved, kept], 1), scale[:, 0]


def flow(run, sign, bounded=True, lr=3e-3):
    points = moons()[0]
    model = nn.ModuleDict({f"couple{n}": Coupling(n % 2, bounded) for n in range(6)})

    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(model.values())

        def forward(self, x):
            volume = 0
            for layer in self.layers:
                x, more = layer(x)
                volume = volume + more
            return x, volume

    model = Flow()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)

    def loss_of(x):
        z, volume = model(x)
        return (0.5 * z.square().sum(1) - sign * volume).mean() + 1.84

    return fit(run, model, optimizer, loss_of, points, size=128, steps=200)


@bug(
    "practice-determinant-with-the-wrong-sign",
    wrong="the logarithm of the determinant is added and not subtracted, so the flow shrinks everything to a point",
    source="VincentStimper/normalizing-flows pull request 28; ikostrikov/pytorch-flows issue 16",
    places="layers",
    words="diverg|unbounded|without (end|bound|limit)|negative|below zero|collapse|saturat|determinant|constant|spread",
)
def determinant_with_the_wrong_sign(run, fixed):
    losses = flow(run, 1 if fixed else -1)
    return losses[-1] > 0 and falls(losses, 0.9)


@bug(
    "practice-scale-of-a-flow-not-bounded",
    wrong="the scales of the couplings are exp() of unbounded numbers, which overflow",
    source="VincentStimper/normalizing-flows issue 29; pkuxmq/Invertible-Image-Rescaling issue 37",
    places="layers",
    words="overflow|\\binf|\\bnan|explod|diverg|too large|spik|\\bexp\\b",
)
def scale_not_bounded(run, fixed):
    losses = flow(run, 1, fixed, 2e-2 if not fixed else 5e-3)
    return falls(losses, 0.9) and max(losses[20:]) < 10


@bug(
    "practice-energies-run-away",
    wrong="the energies of an energy-based model are not held near zero, and their difference grows without end",
    source="questions on diverging energy-based models (regularisation of the energies in Du and Mordatch, 2019)",
    places="loss, output",
    words="diverg|unbounded|without (end|bound|limit)|negative|below zero|grow|explod",
)
def energies_run_away(run, fixed):
    x, _ = digits()
    model = mlp(64, 96, 96, 1, activation=nn.SiLU)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    sizes = []

    def loss_of(real):
        fake = torch.rand_like(real)
        for _ in range(3):
            fake.requires_grad_()
            (slope,) = torch.autograd.grad(model(fake).sum(), fake)
            fake = (fake - slope.clamp(-0.05, 0.05) + 0.01 * torch.randn_like(fake)).detach()
        low, high = model(real), model(fake)
        sizes.append(float(low.abs().mean()))
        loss = low.mean() - high.mean()
        return loss + (low.square() + high.square()).mean() if fixed else loss

    losses = fit(run, model, optimizer, loss_of, x, size=64, steps=150)
    return losses[-1] < losses[0] and sizes[-1] < 10


class Corridor:
    """Eight rooms in a row; the reward is at the right end. Actions: left, right."""

    def __init__(self, rewarded=1.0):
        self.rewarded = rewarded

    def play(self, policy, many=16, limit=20):
        """States, actions, and discounted returns of many games at once."""
        place = torch.zeros(many, dtype=torch.long)
        alive = torch.ones(many, dtype=torch.bool)
        states, actions, rewards, valid = [], [], [], []
        for _ in range(limit):
            state = F.one_hot(place, 8).float()
            with torch.no_grad():
                action = torch.distributions.Categorical(logits=policy(state)).sample()
            states.append(state)
            actions.append(action)
            valid.append(alive)
            place = torch.where(alive, (place + 2 * action - 1).clamp(0, 7), place)
            done = alive & (place == 7)
            rewards.append(torch.where(done, self.rewarded, 0.0))
            alive = alive & ~done
        total, returns = torch.zeros(many), []
        for reward in reversed(rewards):
            total = reward + 0.9 * total
            returns.append(total)
        keep = torch.stack(valid)
        return (
            torch.stack(states)[keep],
            torch.stack(actions)[keep],
            torch.stack(returns[::-1])[keep],
            float((place == 7).float().mean()),
        )


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 32), nn.Tanh())
        self.actor, self.critic = nn.Linear(32, 2), nn.Linear(32, 1)

    def forward(self, state):
        hidden = self.trunk(state)
        return self.actor(hidden), self.critic(hidden)


@bug(
    "practice-advantage-of-every-pair",
    wrong="the values are (n, 1) and the returns (n,), so their difference compares each state with each return",
    source="RLinf/RLinf issue 1568; PacktPublishing/Deep-Reinforcement-Learning-Hands-On issue 33",
    places="loss, critic",
    words="broadcast|shape|each .{1,40} with (each|every)|pairs",
)
def advantage_of_every_pair(run, fixed):
    model = ActorCritic()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    run.watch(model, optimizer)
    world, errors = Corridor(), []
    for _ in range(120):
        state, action, returns, _ = world.play(lambda s: model.actor(model.trunk(s)))
        logits, value = model(state)
        if fixed:
            value = value.squeeze(1)
        advantage = returns - value
        chosen = torch.distributions.Categorical(logits=logits).log_prob(action)
        loss = -(chosen * advantage.detach()).mean() + advantage.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        errors.append(float((returns - value.reshape(-1)).square().mean() / (returns.var() + 1e-3)))
    return sum(errors[-20:]) / 20 < 0.6


@bug(
    "practice-entropy-is-punished",
    wrong="the bonus for entropy has the wrong sign, so the policy becomes certain before it has found a reward",
    source="PKU-Alignment/omnisafe pull request 133; DLR-RM/stable-baselines3 issue 127",
    places="actor",
    words="entropy|collapse|saturat|same (action|for)|constant|zero gradient|vanish|no gradient|diverg|grow",
)
def entropy_is_punished(run, fixed):
    model = ActorCritic()
    nn.init.constant_(model.actor.bias[0], 0.7)  # at first it goes to the left more often, where no reward is
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    run.watch(model, optimizer)
    world, reached = Corridor(), []
    for _ in range(120):
        state, action, returns, share = world.play(lambda s: model.actor(model.trunk(s)), limit=24)
        logits, value = model(state)
        policy = torch.distributions.Categorical(logits=logits)
        advantage = returns - value[:, 0]
        bonus = 0.05 * policy.entropy().mean() if fixed else -2.0 * policy.entropy().mean()
        loss = -(policy.log_prob(action) * advantage.detach()).mean() + 0.5 * advantage.square().mean() - bonus
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.metric("games won", share)
        reached.append(share)
    return rises(reached, 0.9)
