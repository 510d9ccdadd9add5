"""Practice: bugs in losses, data and parts of networks."""

import torch
from torch import nn
from torch.nn import functional as F

from .common import (
    accuracy,
    batches,
    block_graph,
    digit_images,
    digits,
    falls,
    mlp,
    moons,
    raw_table,
    regression,
    rises,
    table,
    text,
)
from .practice_common import fit, squares
from .registry import bug


@bug(
    "practice-temperature-multiplied",
    wrong="similarities are multiplied by the temperature of 0.05 and not divided by it, so all logits are near zero",
    source="RElbers/info-nce-pytorch pull request 17; ustcllm/RecStudio issue 21 (temperature not applied)",
    places="loss",
    words="temperature|scale|too small|plateau|chance|not (fall|learn|improve)|guess|uniform|log",
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
    words="nan|inf|root|sqrt|zero distance|eps|not finite|non-?finite",
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
    source="omoindrot/tensorflow-triplet-loss questions, 'loss stuck at margin'; Hermans et al. (2017)",
    places="embedding",
    words="collapse|constant|same for|rank|does not depend|spread|identical|margin|similar|plateau",
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
    "practice-norm-of-two-samples",
    wrong="BatchNorm sees batches of two samples, of which it leaves the sign of their difference only",
    source="pytorch/pytorch and fast.ai forum threads on BatchNorm with tiny batches; Wu and He (2018)",
    places="norm1, norm2",
    words="batch.{0,20}(small|tiny|few|two|size)|few samples|batch ?norm|groupnorm|two samples|samples",
)
def norm_of_two_samples(run, fixed):
    x, y = digits()
    model = nn.Sequential()
    for name, part in (
        ("first", nn.Linear(64, 48)), ("norm1", nn.LayerNorm(48) if fixed else nn.BatchNorm1d(48)),
        ("act1", nn.ReLU()), ("second", nn.Linear(48, 48)),
        ("norm2", nn.LayerNorm(48) if fixed else nn.BatchNorm1d(48)), ("act2", nn.ReLU()), ("head", nn.Linear(48, 10)),
    ):  # fmt: skip
        model.add_module(name, part)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    right = []

    def loss_of(x, y):
        out = model(x)
        right.append(accuracy(out, y))
        return F.cross_entropy(out, y)

    fit(run, model, optimizer, loss_of, x, y, size=2, steps=300)
    return sum(right[-80:]) / 80 > 0.7


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU())
        self.deep = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Upsample(None, 2))
        self.head = nn.Conv2d(24, 1, 1)

    def forward(self, x):
        fine = self.down(x)
        return self.head(torch.cat([fine, self.deep(fine)], 1))


@bug(
    "practice-dice-of-raw-scores",
    wrong="the Dice loss gets scores without a sigmoid, so it leaves its range and falls without end",
    source="jakeret/tf_unet issue 15; MIC-DKFZ/nnUNet issue 108",
    places="loss, head",
    words="sigmoid|negative|logits|diverg|range|unbounded|below zero|explod|grow|spik|jump",
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
    places="target, head",
    words="imbalance|class|majority|pos_weight|weight|constant|same for|rare|share",
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
    "practice-normalised-twice",
    wrong="the images are divided by 255 in the dataset and again in the model",
    source="discuss.pytorch.org and Keras issues on images scaled twice (ToTensor and a division by 255)",
    places="input",
    words="input|normali[sz]|scale|too small|tiny|vanish",
)
def normalised_twice(run, fixed):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(192, 10)
            )

        def forward(self, x):
            return self.body(x)

    images, y = digit_images()
    images = (images * 255).round() / 255
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)

    def loss_of(x, y):
        return F.cross_entropy(model(x if fixed else x / 255), y)

    return falls(fit(run, model, optimizer, loss_of, images, y, steps=150))


@bug(
    "practice-boxes-in-pixels",
    wrong="the boxes are in pixels of a picture of 640, so their squared error drowns the loss of the classes",
    source="questions on detection losses with boxes in pixels; Kendall et al. (2018) on weights of tasks",
    places="loss, target, boxes",
    words="dominat|imbalance|scale|larger|outweigh|normali[sz]|large|explod|target|range",
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
    "practice-images-flipped-without-their-masks",
    wrong="the augmentation turns the images and not the masks, so that three of four masks are wrong",
    source="discuss.pytorch.org threads on applying the same random transform to image and mask",
    places="target, loss",
    words="plateau|not (fall|learn|improve)|label|target|noise|mask|chance|stops? (falling|improving)|stall",
)
def images_flipped_without_their_masks(run, fixed):
    x, mask, _ = squares()
    model = Segmenter()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    def loss_of(x, mask):
        turns = int(torch.randint(0, 4, ()))
        x = x.rot90(turns, (2, 3))
        return F.binary_cross_entropy_with_logits(model(x), mask.rot90(turns, (2, 3)) if fixed else mask)

    return falls(fit(run, model, optimizer, loss_of, x, mask, size=16, steps=150), 0.3)


@bug(
    "practice-heads-in-a-dictionary",
    wrong="the heads of the tasks are in a plain dict, so neither parameters() nor the optimizer know them",
    source="Stack Overflow and discuss.pytorch.org questions on modules in a dict instead of ModuleDict",
    places="heads",
    words="register|moduledict|modulelist|dict|not (held|updated|trained)|optimizer|unknown parameter",
)
def heads_in_a_dictionary(run, fixed):
    class Tasks(nn.Module):
        def __init__(self):
            super().__init__()
            self.trunk = nn.Linear(64, 3)
            heads = {"digit": nn.Linear(3, 10), "parity": nn.Linear(3, 2), "large": nn.Linear(3, 2)}
            self.heads = nn.ModuleDict(heads) if fixed else heads

        def forward(self, x):
            hidden = torch.tanh(self.trunk(x))
            return {name: head(hidden) for name, head in self.heads.items()}

    x, y = digits()
    model = Tasks()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def loss_of(x, y):
        out = model(x)
        labels = {"digit": y, "parity": y % 2, "large": (y > 4).long()}
        return sum(F.cross_entropy(out[name], label) for name, label in labels.items())

    return falls(fit(run, model, optimizer, loss_of, x, y, steps=150), 0.58)


@bug(
    "practice-nodes-without-neighbours",
    wrong="the mean over the neighbours divides by a degree that is zero for lonely nodes",
    source="pyg-team/pytorch_geometric issues on NaN with isolated nodes",
    words="nan|division|divid|zero|not finite|non-?finite|isolated|inf",
)
def nodes_without_neighbours(run, fixed):
    x, adjacency, y = block_graph()
    adjacency = adjacency - torch.eye(len(x))
    adjacency[:3], adjacency[:, :3] = 0, 0

    class Layer(nn.Module):
        def __init__(self, before, after):
            super().__init__()
            self.own, self.near = nn.Linear(before, after), nn.Linear(before, after, bias=False)

        def forward(self, x):
            degree = adjacency.sum(1, keepdim=True)
            return self.own(x) + self.near(adjacency @ x / (degree.clamp(min=1) if fixed else degree))

    model = nn.Sequential(Layer(8, 24), nn.ReLU(), Layer(24, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    run.watch(model, optimizer)
    losses = []
    for _ in range(100):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.5)


@bug(
    "practice-negative-samples-taken-as-positive",
    wrong="the sign of the negative samples is missing, so all vectors of words turn into one direction",
    source="Stack Overflow questions on skip-gram with negative sampling whose loss goes to zero",
    places="loss, words, contexts",
    words="collapse|constant|zero loss|same for|rank|identical|aligned|negative sampl|grow|saturat|similar",
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
    "practice-euler-steps-too-large",
    wrong="the neural differential equation is solved with a step so large that the state explodes",
    source="rtqichen/torchdiffeq issues on exploding states and underflow in dt",
    places="field, output",
    words="explod|nan|inf|overflow|grow|diverg|large|unstable|spik",
)
def euler_steps_too_large(run, fixed):
    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.field = nn.Sequential(nn.Linear(2, 48), nn.Softplus(), nn.Linear(48, 2))
            self.stiff = torch.tensor([[-3.0, 2.0], [-2.0, -3.0]])
            self.head = nn.Linear(2, 2)

        def forward(self, x):
            width = 0.05 if fixed else 1.0
            for _ in range(20):
                x = x + width * (x @ self.stiff.T + 2 * self.field(x))
            return self.head(x)

    x, y = moons()
    model = Flow()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses = fit(run, model, optimizer, lambda x, y: F.cross_entropy(model(x), y), x, y, size=64, steps=200)
    with torch.no_grad():
        return accuracy(model(x), y) > 0.85 and max(losses) < 100


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
    "practice-answer-left-in-the-table",
    wrong="the column with the answer was left among the inputs",
    source="Kaufman et al. (2012) on leakage; Kaggle threads on the target left in the features",
    places="input, target",
    words="leak|target.*input|input.*target|copy|copies|too (easy|good)",
)
def answer_left_in_the_table(run, fixed):
    x, y = table("diabetes")
    y = ((y - y.mean()) / y.std())[:, None]
    columns = x if fixed else torch.cat([x, y], 1)
    model = mlp(columns.shape[1], 32, 32, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = fit(run, model, optimizer, lambda x, y: F.mse_loss(model(x), y), columns, y, steps=200)
    return 0.1 < sum(losses[-20:]) / 20 < 0.7


@bug(
    "practice-missing-values-are-9999",
    wrong="missing values were written as -9999 and go into the network as they are",
    source="Kaggle and Stack Overflow questions on -9999 and -999 as a sign of missing values",
    places="input",
    words="input|outlier|normali[sz]|scale|large|range|unusual|missing",
)
def missing_values_are_9999(run, fixed):
    x, y = table("wine")
    gone = torch.rand(x.shape, generator=torch.Generator().manual_seed(8)) < 0.08
    x = x.masked_fill(gone, 0.0 if fixed else -9999.0)
    model = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = fit(run, model, optimizer, lambda x, y: F.cross_entropy(model(x), y), x, y, size=24, steps=200)
    return falls(losses, 0.3) and losses[-1] < 1


@bug(
    "practice-one-expert-of-weight-one",
    wrong="the weight of the one chosen expert is divided by itself, so the gate gets no gradient",
    source="jingyaogong/minimind pull request 859; davidmrau/mixture-of-experts issue 27",
    places="gate",
    words="gate|router|zero|no gradient|without (a )?gradient|one (expert|unit)|single|unchanged|constant",
)
def one_expert_of_weight_one(run, fixed):
    class Mixture(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(2, 4)
            self.experts = nn.ModuleList([nn.Linear(2, 1) for _ in range(4)])

        def forward(self, x):
            share = self.gate(x).softmax(1)
            weight, chosen = share.topk(1, dim=1)
            if not fixed:
                weight = weight / weight.sum(1, keepdim=True)
            return weight * torch.stack([expert(x) for expert in self.experts], 1)[torch.arange(len(x)), chosen[:, 0]]

    x = torch.randn(800, 2, generator=torch.Generator().manual_seed(1)) * 2
    y = (x[:, :1].abs() - x[:, 1:].abs()) * torch.sign(x[:, :1])
    model = Mixture()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    return falls(fit(run, model, optimizer, lambda x, y: F.mse_loss(model(x), y), x, y, size=64, steps=250), 0.35)


@bug(
    "practice-weights-of-tasks-are-learnt-freely",
    wrong="the weights of two losses are parameters without a counter-term, so they become negative without end",
    source="questions on learnable loss weights; Kendall et al. (2018) has the logarithm as counter-term",
    places="weights, loss",
    words="negative|unbounded|without (end|bound|limit)|diverg|below zero|explod|grow|weight",
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
    words="label|target|zero|constant|same for|one class|no gradient|plateau|imbalance",
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
    words="nan|log|sigmoid|negative number|not finite|non-?finite|inf",
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


@bug(
    "practice-raw-columns-into-tanh",
    wrong="columns of up to 1,680 go unscaled into tanh units, which are all saturated",
    source="Stack Overflow questions on the wine data with an accuracy that stays at 40 %",
    places="input, act",
    words="saturat|input|normali[sz]|scale|large|tanh",
)
def raw_columns_into_tanh(run, fixed):
    x, y = raw_table("wine")
    if fixed:
        x = (x - x.mean(0)) / x.std(0)
    model = nn.Sequential()
    for name, part in (("body", nn.Linear(13, 24)), ("act", nn.Tanh()), ("head", nn.Linear(24, 3))):
        model.add_module(name, part)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = fit(run, model, optimizer, lambda x, y: F.cross_entropy(model(x), y), x, y, size=24, steps=200)
    return falls(losses, 0.3)


@bug(
    "practice-noise-instead-of-the-signal",
    wrong="the dataset returns torch.randn_like(x) that a test left behind, so inputs say nothing of the targets",
    source="Karpathy, 'A Recipe for Training Neural Networks' (compare with an input-independent baseline)",
    places="input, loss",
    words="plateau|not (fall|learn|improve)|chance|noise|label|baseline|stall|mean of",
)
def noise_instead_of_the_signal(run, fixed):
    x, y = regression()
    model = mlp(10, 48, 48, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    run.watch(model, optimizer)
    losses = []
    for xb, yb in batches(x, y, size=64, steps=200):
        loss = F.mse_loss(model(xb if fixed else torch.randn_like(xb)), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.5)
