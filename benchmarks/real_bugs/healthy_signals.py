"""Healthy trainings on sounds, time series and graphs."""

import torch
from torch import nn
from torch.nn import functional as F

from .bugs_families import GraphNet, train_graph
from .bugs_losses import named, train
from .common import batches, block_graph, falls, mlp, normalized, tones
from .registry import healthy


@healthy("convolutions-on-waves", kind="speech-like")
def convolutions_on_waves(run):
    x, y = tones()
    model = nn.Sequential(
        nn.Conv1d(1, 16, 9, 4), nn.BatchNorm1d(16), nn.ReLU(), nn.Conv1d(16, 32, 5, 2), nn.ReLU(),
        nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 4),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x[:, None], y))


@healthy("recurrent-on-spectra", kind="speech-like")
def recurrent_on_spectra(run):
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.GRU(9, 32, batch_first=True, bidirectional=True)
            self.head = nn.Linear(64, 4)

        def forward(self, wave):
            spectrum = torch.stft(wave, 16, 8, window=torch.hann_window(16), return_complex=True).abs()
            return self.head(self.rnn(torch.log1p(spectrum).transpose(1, 2))[0].mean(1))

    x, y = tones()
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


@healthy("alignment-with-ctc", kind="speech-like")
def alignment_with_ctc(run):
    class Recogniser(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv1d(8, 32, 3, padding=1)
            self.rnn = nn.LSTM(32, 32, batch_first=True, bidirectional=True)
            self.head = nn.Linear(64, 6)

        def forward(self, frames):
            hidden = torch.relu(self.conv(frames.transpose(1, 2))).transpose(1, 2)
            return self.head(self.rnn(hidden)[0]).log_softmax(-1)

    sounds = torch.randn(6, 8, generator=torch.Generator().manual_seed(6))
    model = Recogniser()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    run.watch(model, optimizer)
    losses = []
    for _ in range(200):
        labels = torch.randint(1, 6, (16, 5))
        frames = sounds[labels.repeat_interleave(4, 1)] + 0.3 * torch.randn(16, 20, 8)
        optimizer.zero_grad()
        spoken, written = torch.full((16,), 20), torch.full((16,), 5)
        loss = F.ctc_loss(model(frames).transpose(0, 1), labels, spoken, written)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        losses.append(loss.item())
    return falls(losses)


@healthy("waves-enhanced", kind="speech-like")
def waves_enhanced(run):
    class Enhancer(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Conv1d(1, 24, 8, 4, padding=2)
            self.mask = nn.Sequential(nn.Conv1d(24, 24, 3, padding=1), nn.PReLU(), nn.Conv1d(24, 24, 1), nn.Sigmoid())
            self.decoder = nn.ConvTranspose1d(24, 1, 8, 4, padding=2)

        def forward(self, wave):
            hidden = self.encoder(wave)
            return self.decoder(hidden * self.mask(hidden))

    x, _ = tones()
    x = x[:, None]
    model = Enhancer()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    run.watch(model, optimizer)
    losses = []
    for (xb,) in batches(x, size=16, steps=250):
        optimizer.zero_grad()
        out = model(xb + 0.3 * torch.randn_like(xb))
        noise = (out - xb).square().sum((1, 2))
        loss = -10 * torch.log10(xb.square().sum((1, 2)) / noise).mean()  # the signal-to-noise ratio, maximised
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[-1] < losses[0] - 2


@healthy("forecast-with-lstm", kind="time series")
def forecast(run):
    class Forecast(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.LSTM(1, 32, num_layers=2, batch_first=True)
            self.head = nn.Linear(32, 1)

        def forward(self, x):
            return self.head(self.rnn(x)[0][:, -1])

    time = torch.arange(2000) / 10
    series = (
        time.sin() + 0.5 * (2.3 * time).sin() + 0.05 * torch.randn(2000, generator=torch.Generator().manual_seed(0))
    )
    windows = series.unfold(0, 25, 1)
    model = Forecast()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    return falls(train(run, model, optimizer, F.mse_loss, windows[:, :24, None], windows[:, 24:]), 0.3)


@healthy("plain-recurrence-remembers", kind="time series")
def plain_recurrence(run):
    class Memory(nn.Module):
        def __init__(self):
            super().__init__()
            self.read = nn.Linear(4, 48)
            self.step = nn.Linear(48, 48)
            nn.init.orthogonal_(self.step.weight)
            self.head = nn.Linear(48, 4)

        def forward(self, x):
            state = torch.zeros(len(x), 48)
            for time in range(x.shape[1]):
                state = torch.tanh(self.read(x[:, time]) + self.step(state))
            return self.head(state)

    model = Memory()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    run.watch(model, optimizer)
    losses = []
    for _ in range(250):
        symbols = torch.randint(0, 4, (32, 6))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(F.one_hot(symbols, 4).float()), symbols[:, 0])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses)


@healthy("graph-convolutions", kind="graph")
def graph_convolutions(run):
    return train_graph(run, GraphNet(normalized(block_graph()[1]), 2))


@healthy("graph-attention", kind="graph")
def graph_attention(run):
    class GraphAttention(nn.Module):
        def __init__(self, before, after, adjacency):
            super().__init__()
            self.linear = nn.Linear(before, after, bias=False)
            self.source, self.target = nn.Linear(after, 1), nn.Linear(after, 1)
            self.register_buffer("closed", adjacency == 0)

        def forward(self, x):
            x = self.linear(x)
            scores = F.leaky_relu(self.source(x) + self.target(x).T, 0.2).masked_fill(self.closed, float("-inf"))
            return torch.softmax(scores, 1) @ x

    adjacency = block_graph()[1]
    model = named(
        first=GraphAttention(8, 24, adjacency), act=nn.ELU(), second=GraphAttention(24, 24, adjacency), act2=nn.ELU(),
        head=nn.Linear(24, 3),
    )  # fmt: skip
    return train_graph(run, model)


@healthy("whole-graphs-classified", kind="graph")
def whole_graphs(run):
    class Isomorphism(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = mlp(1, 24, 24), mlp(24, 24, 24)
            self.head = nn.Linear(24, 2)

        def forward(self, adjacency):
            x = torch.ones(*adjacency.shape[:2], 1)
            x = torch.relu(self.first(x + adjacency @ x / 4))
            x = torch.relu(self.second(x + adjacency @ x / 4))
            return self.head(x.mean(1))

    model = Isomorphism()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    run.watch(model, optimizer)
    losses = []
    for _ in range(200):
        label = torch.randint(0, 2, (24,))
        chance = 0.2 + 0.15 * label[:, None, None]
        upper = (torch.rand(24, 12, 12) < chance).float().triu(1)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(upper + upper.transpose(1, 2)), label)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses)
