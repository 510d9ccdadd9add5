"""A GAN: two models, two optimizers."""

import hashlib

import torch
from torch import nn

torch.manual_seed(4)


def train() -> None:
    generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
    opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3)
    opt_d = torch.optim.Adam(critic.parameters(), lr=1e-3)
    bce = nn.BCEWithLogitsLoss()
    for _ in range(15):
        real = torch.randn(32, 2) * 0.5 + 1
        fake = generator(torch.randn(32, 4))
        opt_d.zero_grad()
        loss_d = bce(critic(real), torch.ones(32, 1)) + bce(critic(fake.detach()), torch.zeros(32, 1))
        loss_d.backward()
        opt_d.step()
        opt_g.zero_grad()
        loss_g = bce(critic(fake), torch.ones(32, 1))
        loss_g.backward()
        opt_g.step()
    print(float(loss_d), float(loss_g))
    both = [*generator.parameters(), *critic.parameters()]
    print(hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in both)).hexdigest())


train()
