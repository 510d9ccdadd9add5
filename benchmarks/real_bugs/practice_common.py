"""What several practice cases share: the usual loop, and small tasks on sequences, images and tables."""

import torch
from torch import nn
from torch.nn import functional as F

from .common import batches


def fit(run, model, optimizer, loss_of, *tensors, size=32, steps=200):
    """Train with random mini-batches; `loss_of` gets them and returns the loss."""
    run.watch(model, optimizer)
    losses = []
    for batch in batches(*tensors, size=size, steps=steps):
        loss = loss_of(*batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def padded_words(samples=800, length=16, words=12, classes=4):
    """Sequences of 4 to `length`-4 words and then zeros; the class is written in the first word that is above 8."""
    generator = torch.Generator().manual_seed(21)
    lengths = torch.randint(4, length - 4, (samples,), generator=generator)
    tokens = torch.randint(1, words - classes + 1, (samples, length), generator=generator)
    y = torch.randint(0, classes, (samples,), generator=generator)
    place = (torch.rand(samples, generator=generator) * lengths).long()
    tokens[torch.arange(samples), place] = words - classes + 1 + y
    tokens[torch.arange(length) >= lengths[:, None]] = 0
    return tokens, lengths, y


def first_of_sequence(samples=600, length=12, classes=4):
    """Noise whose first time step says the class."""
    generator = torch.Generator().manual_seed(22)
    y = torch.randint(0, classes, (samples,), generator=generator)
    x = 0.3 * torch.randn(samples, length, classes, generator=generator)
    x[:, 0] += 2 * F.one_hot(y, classes)
    return x, y


def squares(samples=300, size=16, side=5):
    """Noisy images of one bright square, the mask of the square, and its corner."""
    generator = torch.Generator().manual_seed(23)
    corner = torch.randint(0, size - side, (samples, 2), generator=generator)
    rows, columns = torch.arange(size)[None, :, None], torch.arange(size)[None, None, :]
    top, left = corner[:, 0, None, None], corner[:, 1, None, None]
    mask = (rows >= top) & (rows < top + side) & (columns >= left) & (columns < left + side)
    mask = mask[:, None].float()
    return mask + 0.3 * torch.randn(mask.shape, generator=generator), mask, corner


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU())
        self.deep = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Upsample(None, 2))
        self.head = nn.Conv2d(24, 1, 1)

    def forward(self, x):
        fine = self.down(x)
        return self.head(torch.cat([fine, self.deep(fine)], 1))
