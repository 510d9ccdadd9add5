"""Bugs in the data: labels, order, augmentation, and batches that are not what they seem."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from .bugs_losses import named, train
from .common import batches, digit_images, digits, falls, mlp, regression, table, tones
from .registry import bug


@bug(
    "labels-shuffled-alone",
    wrong="inputs and labels are shuffled separately, so labels carry no information about inputs",
    source="Karpathy, 'A recipe for training neural networks'; Islam et al. (FSE 2019), data bugs",
    places="target, loss",
    words="label|target|chance|no information|does not (learn|fall|improve)|not falling|stays",
)
def labels_shuffled_alone(run, fixed):
    x, y = digits()
    if not fixed:
        y = y[torch.randperm(len(y), generator=torch.Generator().manual_seed(2))]
    model = mlp(64, 64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


@bug(
    "every-label-the-same",
    wrong="the folder of the labels is read wrongly, and every sample gets class 0",
    source="UMLAUT (CHI 2021), accuracy of 100 % at once; Humbatova et al. (ICSE 2020), wrong labels",
    places="target",
    words="constant|same (label|class|target|for)|one class|all (labels|targets)|target.*(same|constant|one value)",
)
def every_label_the_same(run, fixed):
    x, y = digit_images()
    if not fixed:
        y = torch.zeros_like(y)
    model = named(conv=nn.Conv2d(1, 8, 3), act=nn.ReLU(), flat=nn.Flatten(), head=nn.Linear(288, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


@bug(
    "constant-regression-target",
    wrong="the target column is read with the wrong index and is the constant 1, the bias column",
    source="Islam et al. (FSE 2019), data bugs; Defects4ML (EMSE 2023)",
    places="target",
    words="constant|same (value|target|for)|target.*(same|constant|one value)",
)
def constant_regression_target(run, fixed):
    x, y = regression()
    if not fixed:
        y = torch.ones_like(y)
    model = mlp(10, 64, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    return falls(train(run, model, optimizer, F.mse_loss, x, y))


@bug(
    "sorted-and-not-shuffled",
    wrong="samples are sorted by label and shuffle=True is missing, so each batch has one class",
    source="Stack Overflow, 'loss oscillates, data sorted by class'; Humbatova et al. (ICSE 2020)",
    places="target",
    words="shuffl|order|sorted|same (label|class)|one class",
)
def sorted_and_not_shuffled(run, fixed):
    x, y = digits()
    order = torch.argsort(y, stable=True)
    data = torch.utils.data.TensorDataset(x[order], y[order])
    generator = torch.Generator().manual_seed(0)
    loader = torch.utils.data.DataLoader(data, batch_size=32, shuffle=fixed, generator=generator)
    model = mlp(64, 64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run.watch(model, optimizer)
    losses = []
    for _ in range(5):
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return falls(losses)


@bug(
    "always-the-first-batch",
    wrong="next(iter(loader)) in the loop begins a new epoch each time without shuffling, so there is one batch only",
    source="discuss.pytorch.org, 'next(iter(dataloader)) returns the same batch'",
    places="input",
    words="same batch|same (input|samples)|identical|repeat|one batch|never changes|constant",
)
def always_the_first_batch(run, fixed):
    x, y = digits()
    data = torch.utils.data.TensorDataset(x, y)
    loader = torch.utils.data.DataLoader(data, batch_size=32, shuffle=fixed)
    model = mlp(64, 64, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run.watch(model, optimizer)
    losses = []
    for _ in range(250):
        xb, yb = next(iter(loader))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses)


@bug(
    "noise-seeded-in-the-loop",
    wrong="the random generator is seeded inside of the loop, so dropout and augmentation always draw the same numbers",
    source="PyTorch and NumPy seeds in workers ('Using PyTorch + NumPy? You're making a mistake', Lohr 2021)",
    places="noise, dropout",
    words="same (random|noise|numbers|mask|units)|identical|seed|repeat|never changes|constant",
)
def noise_seeded_in_the_loop(run, fixed):
    class Noise(nn.Module):
        def forward(self, x):
            return x + 0.3 * torch.tensor(rng.standard_normal(x.shape), dtype=torch.float32)

    class Difference(nn.Module):
        def __init__(self):
            super().__init__()
            self.noise = Noise()
            self.body = mlp(64, 64, 10)
            self.dropout = nn.Dropout(0.3)

        def forward(self, x):
            return self.body(self.dropout(self.noise(x)))

    x, y = digits()
    model = Difference()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    run.watch(model, optimizer)
    losses = []
    rng = np.random.default_rng(0)
    for xb, yb in batches(x, y, size=32, steps=250):
        if not fixed:
            rng = np.random.default_rng(0)
            torch.manual_seed(0)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses)


@bug(
    "dataset-divided-in-place",
    wrong="the collate function divides the images by 255 in place, in each epoch again, so the data vanish",
    source="discuss.pytorch.org, 'in-place transform changes my dataset'; Defects4ML (EMSE 2023)",
    places="input",
    words="input.*(shrink|vanish|fall|drift|zero|chang|small)|vanish|shrink|drift|in place",
)
def dataset_divided_in_place(run, fixed):
    x, y = digits()
    images = 255 * x
    model = named(first=nn.Linear(64, 64), act=nn.ReLU(), head=nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    run.watch(model, optimizer)
    losses = []
    for epoch in range(4):
        scaled = images / 255 if fixed or epoch == 0 else images
        if not fixed:
            images = scaled.div_(1 if epoch == 0 else 255)
        for xb, yb in batches(scaled, y, size=32, steps=60):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return falls(losses)


@bug(
    "augmentation-accumulates",
    wrong="x *= 1 + noise changes the stored images, so contrast grows from epoch to epoch",
    source="albumentations and torchvision threads on in-place augmentation",
    places="input",
    words="input.*(grow|drift|chang|large)|grow|drift|in place",
)
def augmentation_accumulates(run, fixed):
    x, y = tones()
    model = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run.watch(model, optimizer)
    generator = torch.Generator().manual_seed(0)
    losses = []
    for _ in range(15):
        for start in range(0, 600, 40):
            xb, yb = x[start : start + 40], y[start : start + 40]
            factor = 1 + 0.8 * torch.rand(40, 1, generator=generator)
            if fixed:
                xb = xb * factor
            else:
                xb *= factor
            optimizer.zero_grad()
            loss = F.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return falls(losses)


@bug(
    "corrupt-sample-of-huge-value",
    wrong="one sample has a missing value coded as 99999, and each batch with it destroys what was learned",
    source="Kaggle threads on sentinel values; Defects4ML (EMSE 2023)",
    places="input",
    words="outlier|sample|input.*(large|spike|extreme)|spike|extreme",
)
def corrupt_sample(run, fixed):
    x, y = table("breast_cancer")
    x = x.clone()
    if not fixed:
        x[[40, 250], 3] = 99999.0
    model = mlp(30, 32, 32, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y, steps=300))


@bug(
    "some-batches-mislabelled",
    wrong="one in twelve files has its labels in reverse order, so the loss jumps at those batches",
    source="Karpathy, 'A recipe for training neural networks' (look at the worst batches); confident learning",
    places="target, loss",
    words="spike|outlier|label|target|jump",
)
def some_batches_mislabelled(run, fixed):
    x, y = digits()
    model = mlp(64, 64, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    run.watch(model, optimizer)
    losses = []
    for number, (xb, yb) in enumerate(batches(x, y, size=32, steps=300)):
        if number % 12 == 11 and not fixed:
            yb = 9 - yb
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses)
