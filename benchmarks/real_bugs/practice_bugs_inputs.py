"""Practice: bugs in the data, and in parts of networks."""

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
    table,
)
from .practice_common import Segmenter, fit, squares
from .registry import bug


@bug(
    "practice-norm-of-two-samples",
    wrong="BatchNorm sees batches of two samples, of which it leaves the sign of their difference only",
    source="pytorch/pytorch and fast.ai forum threads on BatchNorm with tiny batches; Wu and He (2018)",
    places="norm1, norm2",
    words="batch.{0,20}(small|tiny|few|two)|(small|tiny) batch|few samples|batch ?norm|groupnorm|two samples",
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


@bug(
    "practice-normalised-twice",
    wrong="the images are divided by 255 in the dataset and again in the model",
    source="discuss.pytorch.org and Keras issues on images scaled twice (ToTensor and a division by 255)",
    places="input",
    words="input.{0,40}(small|scale|tiny)|normali[sz]|tiny|vanish",
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
    "practice-images-flipped-without-their-masks",
    wrong="the augmentation turns the images and not the masks, so that three of four masks are wrong",
    source="talmolab/sleap-nn pull request 649; divamgupta/image-segmentation-keras issue 115",
    places="target, loss",
    words="plateau|not (fall|learn|improve)|wrong label|labels|noise|chance|stops? (falling|improving)|stall",
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
    words="register|moduledict|modulelist|plain (dict|list)|not (held|updated|trained)|unknown parameter",
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
    source="MrLeeeee/GCN-GAT-and-Graphsage issue 3; pyg-team/pytorch_geometric issue 1129",
    words="\\bnan|division|divid|not finite|non-?finite|isolated|\\binf",
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
    "practice-euler-steps-too-large",
    wrong="the neural differential equation is solved with a step so large that the state explodes",
    source="rtqichen/torchdiffeq issues 27 and 58 (states that blow up)",
    places="field, output",
    words="explod|\\bnan|\\binf|overflow|grow|diverg|unstable|spik",
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
    words="outlier|normali[sz]|scale|unusual|missing|input.{0,40}large",
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
    words="router|zero gradient|gradient.{0,20}zero|no gradient|without (a )?gradient|one (expert|unit)|unchanged",
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
    "practice-raw-columns-into-tanh",
    wrong="columns of up to 1,680 go unscaled into tanh units, which are all saturated",
    source="Stack Overflow questions on the wine data with an accuracy that stays at 40 %",
    places="input, act",
    words="saturat|normali[sz]|input.{0,40}(large|scale)",
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
