"""Bugs of particular kinds of networks: GAN, VAE, contrastive, LoRA, experts, quantisation, graphs, RL."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

from .bugs_losses import named, train
from .bugs_modules import CUT
from .common import batches, block_graph, digits, falls, mlp, moons, normalized, rises
from .registry import bug


def train_gan(run, generator, critic, lr_critic, critic_steps, generator_loss, steps=200):
    of_generator = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.99))
    of_critic = torch.optim.Adam(critic.parameters(), lr=lr_critic, betas=(0.5, 0.99))
    run.watch(generator, of_generator, name="generator")
    run.watch(critic, of_critic, name="critic")
    x, _ = moons()
    distances = []
    for (real,) in batches(x, size=64, steps=steps):
        for _ in range(critic_steps):
            fake = generator(torch.randn(64, 4)).detach()
            of_critic.zero_grad()
            loss = F.softplus(critic(fake)).mean() + F.softplus(-critic(real)).mean()
            loss.backward()
            of_critic.step()
        of_generator.zero_grad()
        fake = generator(torch.randn(64, 4))
        loss = generator_loss(critic, fake)
        loss.backward()
        of_generator.step()
        distances.append(float((fake.mean(0) - x.mean(0)).norm() + (fake.std(0) - x.std(0)).norm()))
    return falls(distances, 0.7)


@bug(
    "generator-detached",
    wrong="the generator's own loss is computed on fake.detach(), so the generator never gets a gradient",
    source="pytorch/examples dcgan threads, 'detach in the generator step'",
    places="generator",
    words=CUT,
)
def generator_detached(run, fixed):
    def generator_loss(critic, fake):
        return F.softplus(-critic(fake if fixed else fake.detach())).mean()

    return train_gan(run, mlp(4, 64, 64, 2), mlp(2, 64, 64, 1), 1e-3, 1, generator_loss, steps=300)


@bug(
    "discriminator-wins",
    wrong="the minimax loss with a discriminator that learns ten times as often leaves the generator no gradient",
    source="Goodfellow et al. (2014), saturating loss; ganhacks; AUTOTRAINER (ICSE 2021), vanishing gradients",
    places="generator, critic",
    words="vanish|saturat|discriminator|critic|gradient.*(small|zero|shrink)",
)
def discriminator_wins(run, fixed):
    def generator_loss(critic, fake):
        return F.softplus(-critic(fake)).mean() if fixed else -F.softplus(critic(fake)).mean()

    generator = mlp(4, 64, 64, 2)
    with torch.no_grad():
        generator[4].bias += torch.tensor([0.5, 0.2]) if fixed else 6.0
    return train_gan(
        run, generator, mlp(2, 64, 64, 1), 1e-3 if fixed else 1e-2, 1 if fixed else 10, generator_loss,
        steps=300 if fixed else 60,
    )  # fmt: skip


class VAE(nn.Module):
    def __init__(self, reparameterised=True):
        super().__init__()
        self.encoder = mlp(64, 64, 48)
        self.mean, self.log_variance = nn.Linear(48, 6), nn.Linear(48, 6)
        self.decoder = mlp(6, 64, 64)
        self.reparameterised = reparameterised

    def forward(self, x):
        hidden = torch.relu(self.encoder(x))
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        deviation = (0.5 * log_variance).exp()
        if self.reparameterised:
            z = mean + deviation * torch.randn_like(mean)
        else:
            z = torch.normal(mean, deviation).detach()
        return self.decoder(z), mean, log_variance


def train_vae(run, model, weight):
    x, _ = digits()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    run.watch(model, optimizer)
    losses = []
    for (xb,) in batches(x, size=64, steps=250):
        optimizer.zero_grad()
        picture, mean, log_variance = model(xb)
        error = F.mse_loss(picture, xb, reduction="none").sum(1).mean()
        divergence = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1).mean()
        (error + weight * divergence).backward()
        optimizer.step()
        run.metric("reconstruction", error)
        losses.append(error.item())
    return falls(losses, 0.5)


@bug(
    "posterior-collapses",
    wrong="the KL term has a weight of 100, so the code carries nothing and the decoder paints the mean",
    source="Bowman et al. (2016) and beta-VAE threads on posterior collapse",
    places="mean, log_variance, decoder",
    words="collaps|constant|same for|samples.*same|does not depend|samples.*(alike|equal)|identical",
)
def posterior_collapses(run, fixed):
    return train_vae(run, VAE(), 0.1 if fixed else 100.0)


@bug(
    "code-sampled-without-gradient",
    wrong="the code is drawn by torch.normal(mean, std), which has no gradient, instead of mean + std * noise",
    source="Kingma and Welling (2014); discuss.pytorch.org, 'VAE torch.normal instead of rsample'",
    places="mean, log_variance, encoder",
    words=CUT + "|collaps|constant|same for|samples.*same|reparameter|rsample",
)
def code_sampled_without_gradient(run, fixed):
    return train_vae(run, VAE(reparameterised=fixed), 0.1)


@bug(
    "both-branches-pull-together",
    wrong="a BYOL-like loss without predictor and without stop-gradient: all samples get the same representation",
    source="Chen and He, SimSiam (CVPR 2021), collapse; DAFormer issue 59 (missing detach of the teacher)",
    places="project, output, norm",
    words="collaps|constant|same for|samples.*same|identical|samples.*(alike|equal)|does not depend",
)
def both_branches_pull_together(run, fixed):
    x, _ = digits()
    model = named(first=nn.Linear(64, 64), act=nn.ReLU(), project=nn.Linear(64, 16))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    run.watch(model, optimizer)
    spreads = []
    for (xb,) in batches(x, size=64, steps=300):
        optimizer.zero_grad()
        first = model(xb + 0.1 * torch.randn_like(xb))
        second = model(xb + 0.1 * torch.randn_like(xb))
        if fixed:
            logits = F.normalize(first, dim=1) @ F.normalize(second, dim=1).T / 0.2
            loss = F.cross_entropy(logits, torch.arange(len(xb)))
        else:
            loss = (first - second).square().sum(1).mean()
        loss.backward()
        optimizer.step()
        spreads.append(float(F.normalize(first, dim=1).std(0).mean()))
    return spreads[-1] > 0.15


@bug(
    "teacher-is-trained-too",
    wrong="the teacher's outputs are not detached and its parameters are in the optimizer, so it forgets what it knew",
    source="Tarvainen and Valpola (mean teacher) threads; lhoyer/DAFormer issue 59",
    places="teacher",
    words="collaps|constant|teacher|same for|samples.*same|identical|samples.*(alike|equal)|does not depend",
)
def teacher_is_trained_too(run, fixed):
    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.teacher = mlp(64, 64, 10)
            self.student = mlp(64, 16, 10)

        def forward(self, x):
            teacher = self.teacher(x)
            return self.student(x), teacher.detach() if fixed else teacher

    x, y = digits()
    model = Pair()
    early = torch.optim.Adam(model.teacher.parameters(), lr=3e-3)
    for xb, yb in batches(x, y, size=64, steps=200):
        early.zero_grad()
        F.cross_entropy(model.teacher(xb), yb).backward()
        early.step()
    early.zero_grad()
    if fixed:
        model.teacher.requires_grad_(False)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=3e-3)
    run.watch(model, optimizer)
    for (xb,) in batches(x, size=64, steps=300):
        optimizer.zero_grad()
        student, teacher = model(xb)
        F.mse_loss(student, teacher).backward()
        optimizer.step()
    return float((model(x)[0].argmax(1) == y).float().mean()) > 0.85


@bug(
    "lora-both-matrices-zero",
    wrong="both matrices of the low-rank update begin at zero, so neither ever gets a gradient",
    source="Hu et al., LoRA (ICLR 2022), why only B is zero; huggingface/peft threads on init_lora_weights",
    places="adapter_a, adapter_b",
    words="initial|zero|never (moved|updated|changes)|not updated",
)
def lora_both_matrices_zero(run, fixed):
    class Adapted(nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base = base.requires_grad_(False)
            self.adapter_a = nn.Linear(base.in_features, 4, bias=False)
            self.adapter_b = nn.Linear(4, base.out_features, bias=False)
            nn.init.zeros_(self.adapter_b.weight)
            if not fixed:
                nn.init.zeros_(self.adapter_a.weight)

        def forward(self, x):
            return self.base(x) + self.adapter_b(self.adapter_a(x))

    x, y = digits()
    model = named(first=Adapted(nn.Linear(64, 64)), act=nn.ReLU(), head=Adapted(nn.Linear(64, 10)))
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=5e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


class Experts(nn.Module):
    def __init__(self, noise):
        super().__init__()
        self.router = nn.Linear(64, 4, bias=False)
        self.experts = nn.ModuleList([mlp(64, 32, 10) for _ in range(4)])
        self.noise = noise

    def forward(self, x):
        scores = self.router(x)
        self.load = torch.softmax(scores, 1).mean(0)
        weight, choice = torch.softmax(scores + self.noise * torch.randn_like(scores), 1).max(1)
        out = torch.zeros(len(x), 10)
        for number, expert in enumerate(self.experts):
            rows = (choice == number).nonzero()[:, 0]
            out = out.index_add(0, rows, weight[rows, None] * expert(x[rows]))
        return out


@bug(
    "router-picks-one-expert",
    wrong="a mixture of experts without balance sends every sample to one expert, and the others are dead",
    source="Shazeer et al. (2017), self-reinforcing imbalance; Switch Transformer and DeepSeek-MoE threads",
    places="router, experts",
    words="expert|router|collaps|empty|unused|never used|no gradient|balance",
)
def router_picks_one_expert(run, fixed):
    x, y = digits()
    model = Experts(0.5 if fixed else 0.0)
    if not fixed:
        with torch.no_grad():
            model.router.weight[2] += 0.25
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    run.watch(model, optimizer)
    losses = []
    for xb, yb in batches(x, y, size=64, steps=250):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        balance = 4 * model.load.square().sum()
        (loss + 0.5 * balance if fixed else loss).backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses)


@bug(
    "rounding-without-straight-through",
    wrong="fake quantisation uses round() without a straight-through estimate, so gradients before it are zero",
    source="Bengio et al. (2013), straight-through; torch.ao and Brevitas threads on QAT from scratch",
    places="first, quantise",
    words="zero gradient|gradient.*zero|no gradient|round|vanish|never (moved|updated|changes)|not updated|straight",
)
def rounding_without_straight_through(run, fixed):
    class Quantise(nn.Module):
        def forward(self, x):
            rounded = (x * 8).round() / 8
            return x + (rounded - x).detach() if fixed else rounded

    x, y = digits()
    model = named(first=nn.Linear(64, 48), act=nn.ReLU(), quantise=Quantise(), head=nn.Linear(48, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


class GraphNet(nn.Module):
    def __init__(self, adjacency, depth, residual=False):
        super().__init__()
        self.adjacency, self.residual = adjacency, residual
        self.first = nn.Linear(8, 32)
        self.convolutions = nn.ModuleList([nn.Linear(32, 32) for _ in range(depth)])
        self.head = nn.Linear(32, 3)

    def forward(self, x):
        x = torch.relu(self.first(x))
        for layer in self.convolutions:
            moved = torch.relu(layer(self.adjacency @ x))
            x = x + moved if self.residual else moved
        return self.head(x)


def train_graph(run, model, lr=5e-3):
    x, _, y = block_graph()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    run.watch(model, optimizer)
    losses = []
    for _ in range(200):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x)[:90], y[:90])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses)


@bug(
    "graph-network-oversmooths",
    wrong="24 graph convolutions average over neighbours so often that all nodes become the same",
    source="Li et al. (AAAI 2018), over-smoothing; PyTorch Geometric discussions",
    places="convolutions, output, head",
    words="smooth|same for|samples.*same|identical|collaps|alike|constant|vanish|does not depend",
)
def graph_network_oversmooths(run, fixed):
    adjacency = normalized(block_graph()[1])
    return train_graph(run, GraphNet(adjacency, 2 if fixed else 24))


@bug(
    "adjacency-not-normalised",
    wrong="neighbours are summed over six layers without dividing by the degree, so features explode",
    source="Kipf and Welling (ICLR 2017), renormalisation trick; PyTorch Geometric discussions",
    places="convolutions",
    words="explod|grow|degree|normali|large",
)
def adjacency_not_normalised(run, fixed):
    adjacency = block_graph()[1]
    return train_graph(run, GraphNet(normalized(adjacency) if fixed else adjacency, 3 if fixed else 6), lr=5e-3)


def train_chain_q(run, done_masked, target_net):
    """Q-learning on a chain of eight states; the right end pays 1 and ends the episode."""
    generator = torch.Generator().manual_seed(0)
    network = mlp(8, 32, 2)
    target = copy.deepcopy(network)
    optimizer = torch.optim.Adam(network.parameters(), lr=5e-3)
    run.watch(network, optimizer)
    for number in range(400):
        state = torch.randint(0, 8, (64,), generator=generator)
        action = torch.randint(0, 2, (64,), generator=generator)
        after = (state + 2 * action - 1).clamp(0, 7)
        done = (state == 7) & (action == 1)
        with torch.no_grad():
            best = (target if target_net else network)(F.one_hot(after, 8).float()).max(1).values
            wanted = done.float() + 0.99 * best * ((~done).float() if done_masked else 1.05)
        optimizer.zero_grad()
        values = network(F.one_hot(state, 8).float()).gather(1, action[:, None])[:, 0]
        loss = F.mse_loss(values, wanted)
        loss.backward()
        optimizer.step()
        run.metric("mean value", values.mean().item())
        if number % 20 == 0:
            target.load_state_dict(network.state_dict())
    return float(network(torch.eye(8)).max()) < 2


@bug(
    "values-without-end",
    wrong="the discount is above 1 and terminal states are not masked, so Q-values grow without end",
    source="DQN re-implementations (missing (1 - done)); Stable-Baselines threads on diverging Q-values",
    places="output, target, mean value, loss",
    words="grow|diverge|explod|without (end|bound)|unbounded|drift|rises",
)
def values_without_end(run, fixed):
    return train_chain_q(run, fixed, fixed)


@bug(
    "reward-with-the-wrong-sign",
    wrong="REINFORCE minimises log-probability times reward, the minus is missing, so the policy avoids reward",
    source="Henderson et al., Deep RL that matters (AAAI 2018); discuss.pytorch.org on REINFORCE",
    places="reward",
    words="reward|sign|falls|worse|declin|decreas",
)
def reward_with_the_wrong_sign(run, fixed):
    torch.manual_seed(1)
    policy = mlp(4, 32, 3, activation=nn.Tanh)
    optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
    run.watch(policy, optimizer)
    rewards = []
    for _ in range(300):
        states = torch.randn(48, 4)
        choice = torch.distributions.Categorical(logits=policy(states))
        actions = choice.sample()
        reward = (actions == states[:, :3].argmax(1)).float()
        gain = (choice.log_prob(actions) * (reward - 0.33)).mean()
        optimizer.zero_grad()
        (-gain if fixed else gain).backward()
        optimizer.step()
        run.metric("reward", reward.mean().item())
        rewards.append(reward.mean().item())
    return rises(rewards, 0.7)
