"""Practice: bugs in losses."""

import torch
from torch import nn
from torch.nn import functional as F

from .common import (
    accuracy,
    digits,
    falls,
    mlp,
    moons,
    rises,
    table,
    text,
)
from .practice_common import Segmenter, fit, squares
from .registry import bug


@bug(
    "practice-temperature-multiplied",
    wrong="similarities are multiplied by the temperature of 0.05 and not divided by it, so all logits are near zero",
    source="RElbers/info-nce-pytorch pull request 17; ustcllm/RecStudio issue 21 (temperature not applied)",
    places="loss",
    words="temperature|too small|plateau|chance|not (fall|learn|improve)|guess|uniform",
)
def temperature_multiplied(run, fixed):
    x, _ = digits()
    model = mlp(64, 64, 16)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    def loss_of(x):
        one, two = (F.normalize(model(x + 0.1 * torch.randn_like(x)), dim=1) for _ in range(2))
        logits = one @ two.T
        return F.cross_entropy(logits / 0.05 if fixed else logits * 0.05, torch.arange(len(x)))

    return falls(fit(run, model, optimizer, loss_of, x, size=64, steps=200), 0.5)


@bug(
    "practice-distance-of-equal-samples",
    wrong="the positive is sometimes the anchor itself, and the root of a distance of zero has an infinite slope",
    source="tensorflow/tensorflow issue 30199; huggingface/sentence-transformers pull request 4033",
    words="\\bnan|\\binf|\\broot|sqrt|zero distance|not finite|non-?finite",
)
def distance_of_equal_samples(run, fixed):
    x, y = digits()
    model = mlp(64, 64, 8)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    generator = torch.Generator().manual_seed(3)
    by_class = [x[y == label] for label in range(10)]

    def pick(labels):
        rows = [torch.randint(0, len(by_class[label]), (), generator=generator) for label in labels.tolist()]
        return torch.stack([by_class[label][row] for label, row in zip(labels.tolist(), rows, strict=True)])

    def distance(a, b):
        return ((a - b).square().sum(1) + (1e-8 if fixed else 0)).sqrt()

    def loss_of(anchor, y):
        other = (y + torch.randint(1, 10, y.shape, generator=generator)) % 10
        a, p, n = model(anchor), model(pick(y)), model(pick(other))
        return F.relu(distance(a, p) - distance(a, n) + 1).mean()

    return falls(fit(run, model, optimizer, loss_of, x, y, size=64, steps=150), 0.6)


@bug(
    "practice-triplets-fall-together",
    wrong="mining the hardest triplets with a large rate pulls all embeddings to one point; the loss stays the margin",
    source="omoindrot/tensorflow-triplet-loss issue 6; KevinMusgrave/pytorch-metric-learning issue 20",
    places="embedding",
    words="collapse|constant|same for|\\brank|does not depend|identical|margin|alike|plateau",
)
def triplets_fall_together(run, fixed):
    x, y = digits()
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
    model.add_module("embedding", nn.Linear(64, 8))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3 if fixed else 3e-2)

    def loss_of(x, y):
        out = model(x)
        far = (out[:, None] - out[None]).square().sum(-1)
        far = (far + 1e-8).sqrt()
        same = y[:, None] == y[None]
        if fixed:  # all triplets that break the margin
            all_of = F.relu(far[:, :, None] - far[:, None, :] + 0.5)
            of = same[:, :, None] & ~same[:, None, :]
            return (all_of * of).sum() / ((all_of > 0) & of).sum().clamp(min=1)
        hardest = (far * same).amax(1) - (far + 1e3 * same).amin(1)
        return F.relu(hardest + 0.5).mean()

    fit(run, model, optimizer, loss_of, x, y, size=48, steps=200)
    with torch.no_grad():
        out = model(x[:300])
        near = torch.cdist(out, out) + 1e6 * torch.eye(300)
    return float((y[:300][near.argmin(1)] == y[:300]).float().mean()) > 0.85


@bug(
    "practice-dice-of-raw-scores",
    wrong="the Dice loss gets scores without a sigmoid, so it leaves its range and falls without end",
    source="jakeret/tf_unet issue 15; MIC-DKFZ/nnUNet issue 108",
    places="loss, head",
    words="sigmoid|negative|diverg|unbounded|below zero|explod|spik|jump",
)
def dice_of_raw_scores(run, fixed):
    x, mask, _ = squares()
    model = Segmenter()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def loss_of(x, mask):
        out = model(x).sigmoid() if fixed else model(x)
        return 1 - (2 * (out * mask).sum() + 1) / (out.sum() + mask.sum() + 1)

    losses = fit(run, model, optimizer, loss_of, x, mask, size=16, steps=150)
    return falls(losses, 0.2) and losses[-1] > 0


@bug(
    "practice-a-few-pixels-among-many",
    wrong="one pixel of 256 is the object and the loss weighs all alike, so the net says 'background' everywhere",
    source="discuss.pytorch.org and Stack Overflow questions on segmentation that predicts background only",
    places="target, 2",
    words="imbalance|majority|pos_weight|constant|same for|rare",
)
def a_few_pixels_among_many(run, fixed):
    generator = torch.Generator().manual_seed(2)
    mask = torch.zeros(400, 1, 16, 16)
    spot = torch.randint(2, 14, (400, 2), generator=generator)
    mask[torch.arange(400), 0, spot[:, 0], spot[:, 1]] = 1
    x = mask * 1.5 + 0.5 * torch.randn(mask.shape, generator=generator)
    model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1))
    weight = torch.tensor(200.0 if fixed else 1.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    def loss_of(x, mask):
        return F.binary_cross_entropy_with_logits(model(x), mask, pos_weight=weight)

    fit(run, model, optimizer, loss_of, x, mask, size=16, steps=200)
    with torch.no_grad():
        return float((model(x).sigmoid() > 0.5)[mask > 0].float().mean()) > 0.5


@bug(
    "practice-boxes-in-pixels",
    wrong="the boxes are in pixels of a picture of 640, so their squared error drowns the loss of the classes",
    source="questions on detection losses with boxes in pixels; Kendall et al. (2018) on weights of tasks",
    places="loss, target, boxes",
    words="dominat|imbalance|scale|larger|outweigh|normali[sz]|explod",
)
def boxes_in_pixels(run, fixed):
    x, _, corner = squares()
    generator = torch.Generator().manual_seed(1)
    kind = torch.randint(0, 2, (len(x),), generator=generator)
    x = x * torch.where(kind > 0, 1.0, -1.0)[:, None, None, None]
    boxes = corner / 16 if fixed else corner / 16 * 640

    class Detector(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 48), nn.Tanh())
            self.classes, self.boxes = nn.Linear(48, 2), nn.Linear(48, 2)

        def forward(self, x):
            hidden = self.body(x)
            return self.classes(hidden), self.boxes(hidden)

    model = Detector()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    right = []

    def loss_of(x, kind, box):
        scores, place = model(x)
        right.append(accuracy(scores, kind))
        of_class, of_box = F.cross_entropy(scores, kind), F.mse_loss(place, box)
        run.metric("class loss", of_class)
        run.metric("box loss", of_box)
        return of_class + of_box

    fit(run, model, optimizer, loss_of, x, kind, boxes, steps=150)
    return rises(right, 0.9)


@bug(
    "practice-negative-samples-taken-as-positive",
    wrong="the sign of the negative samples is missing, so all vectors of words turn into one direction",
    source="Stack Overflow questions on skip-gram with negative sampling whose loss goes to zero",
    places="loss, words, contexts",
    words="collapse|constant|zero loss|same for|\\brank|identical|aligned|negative sampl|alike",
)
def negative_samples_taken_as_positive(run, fixed):
    ids, letters = text()

    class Vectors(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.contexts = nn.Embedding(letters, 12), nn.Embedding(letters, 12)

        def forward(self, word, context):
            return (self.words(word) * self.contexts(context)).sum(-1)

    model = Vectors()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    gaps = []

    def loss_of(word, context):
        wrong = ids[torch.randint(0, len(ids), (len(word), 4))]
        right, others = model(word, context), model(word[:, None], wrong)
        gaps.append(float(right.detach().mean() - others.detach().mean()))
        return F.softplus(-right).mean() + F.softplus(others if fixed else -others).mean()

    fit(run, model, optimizer, loss_of, ids[:-1], ids[1:], size=256, steps=200)
    return rises(gaps, 0.6)


@bug(
    "practice-derivative-without-its-graph",
    wrong="autograd.grad is called without create_graph, so the residual of the equation trains nothing",
    source="Stack Overflow questions on create_graph in physics-informed networks; ooples/AiDotNet issue 1844",
    places="loss",
    words="create_graph|no gradient|without (a )?gradient|detach|not connected|does not depend|plateau|"
    "not (fall|learn)|constant",
)
def derivative_without_its_graph(run, fixed):
    net = mlp(1, 32, 32, 1, activation=nn.Tanh)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    run.watch(net, optimizer)
    residuals = []
    for _ in range(250):
        t = torch.linspace(0, 2, 40)[:, None].requires_grad_()
        (slope,) = torch.autograd.grad(net(t).sum(), t, create_graph=fixed)
        residual = (slope - (2 * t.detach()).cos()).square().mean()
        start = (net(torch.zeros(1, 1)) - 1).square().mean()
        run.metric("residual", residual)
        optimizer.zero_grad()
        (start + residual).backward()
        optimizer.step()
        residuals.append(residual.item())
    return residuals[-1] < 0.05


@bug(
    "practice-weights-of-tasks-are-learnt-freely",
    wrong="the weights of two losses are parameters without a counter-term, so they become negative without end",
    source="questions on learnable loss weights; Kendall et al. (2018) has the logarithm as counter-term",
    places="weights, loss",
    words="negative|unbounded|without (end|bound|limit)|diverg|below zero|explod",
)
def weights_of_tasks_learnt_freely(run, fixed):
    class Tasks(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = mlp(64, 48, 32)
            self.digit, self.ink = nn.Linear(32, 10), nn.Linear(32, 1)
            self.weights = nn.Parameter(torch.zeros(2) if fixed else torch.ones(2))

        def forward(self, x):
            hidden = F.relu(self.body(x))
            return self.digit(hidden), self.ink(hidden)[:, 0], self.weights * 1

    x, y = digits()
    model = Tasks()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    right = []

    def loss_of(x, y):
        scores, ink, weights = model(x)
        right.append(accuracy(scores, y))
        both = torch.stack([F.cross_entropy(scores, y), F.mse_loss(ink, x.mean(1) * 5)])
        return ((-weights).exp() * both + weights).sum() if fixed else (weights * both).sum()

    fit(run, model, optimizer, loss_of, x, y, steps=250)
    return rises(right, 0.85)


@bug(
    "practice-hinge-with-labels-zero-and-one",
    wrong="a hinge loss gets labels 0 and 1 where it wants -1 and 1, so one class has a constant loss and no gradient",
    source="Stack Overflow questions on hinge loss with 0/1 labels",
    places="loss, target",
    words="labels|constant|same for|one class|no gradient|plateau|imbalance",
)
def hinge_with_labels_zero_and_one(run, fixed):
    x, y = table("breast_cancer")
    signs = y.float() * 2 - 1 if fixed else y.float()
    model = mlp(30, 16, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    fit(run, model, optimizer, lambda x, s: F.relu(1 - s * model(x)[:, 0]).mean(), x, signs, steps=150)
    with torch.no_grad():
        return float(((model(x)[:, 0] > 0) == (y > 0)).float().mean()) > 0.9


@bug(
    "practice-binary-loss-by-hand-of-scores",
    wrong="a cross-entropy by hand takes the logarithm of scores that no sigmoid has made probabilities",
    source="Stack Overflow questions on NaN from a hand-written binary cross-entropy",
    places="loss",
    words="\\bnan|\\blog\\b|sigmoid|negative number|not finite|non-?finite|\\binf",
)
def binary_loss_by_hand_of_scores(run, fixed):
    x, y = moons()
    y = y.float()
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def loss_of(x, y):
        p = model(x)[:, 0]
        if fixed:
            p = torch.sigmoid(p).clamp(1e-6, 1 - 1e-6)
        return -(y * p.log() + (1 - y) * (1 - p).log()).mean()

    return falls(fit(run, model, optimizer, loss_of, x, y, size=64, steps=150), 0.6)
