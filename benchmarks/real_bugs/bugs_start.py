"""Bugs of the first step: initial values, the scale of inputs, and activations that do not fit them."""

import torch
from torch import nn
from torch.nn import functional as F

from .bugs_losses import named, train
from .common import digit_images, digits, falls, mlp, raw_table, regression, table, text, text_windows
from .registry import bug


@bug(
    "all-weights-zero",
    wrong="an initialisation loop sets every weight and bias to zero",
    source="UMLAUT (CHI 2021); DeepFD (ICSE 2022), wrong initialisation",
    words="initial|all zero|symmetr|weights? (is|are|of) zero|identical",
)
def all_weights_zero(run, fixed):
    x, y = digits()
    model = mlp(64, 64, 64, 10)
    for parameter in model.parameters():
        if not fixed:
            nn.init.zeros_(parameter)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


@bug(
    "all-weights-equal",
    wrong="weights begin as the constant 0.05, so all units of a layer stay copies of each other",
    source="TheDeepChecker (TOSEM 2022), untrained symmetric weights; Karpathy, CS231n notes",
    words="initial|symmetr|identical|same (value|for all units)|copies|constant|equal",
)
def all_weights_equal(run, fixed):
    x, y = digit_images()
    model = named(
        conv=nn.Conv2d(1, 8, 3), act=nn.Tanh(), flat=nn.Flatten(), hidden=nn.Linear(288, 32), act2=nn.Tanh(),
        head=nn.Linear(32, 10),
    )  # fmt: skip
    if not fixed:
        for layer in (model.conv, model.hidden, model.head):
            nn.init.constant_(layer.weight, 0.05)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


@bug(
    "weights-of-deviation-one",
    wrong="weights of a deep ReLU network begin with a standard deviation of 1, so activations explode with depth",
    source="AUTOTRAINER (ICSE 2021), exploding gradients; DeepFD (ICSE 2022), wrong initialisation",
    words="initial|began too|explod|grow",
)
def weights_of_deviation_one(run, fixed):
    x, y = digits()
    model = mlp(64, 48, 48, 48, 48, 48, 10)
    for layer in model:
        if isinstance(layer, nn.Linear) and not fixed:
            nn.init.normal_(layer.weight)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


@bug(
    "weights-far-too-small",
    wrong="weights of a deep tanh network begin with a standard deviation of 0.001, so signals vanish with depth",
    source="AUTOTRAINER (ICSE 2021), vanishing gradients; TheDeepChecker (TOSEM 2022)",
    words="initial|began too|vanish|shrink",
)
def weights_far_too_small(run, fixed):
    x, y = digits()
    model = mlp(64, 48, 48, 48, 48, 10, activation=nn.Tanh)
    for layer in model:
        if isinstance(layer, nn.Linear) and not fixed:
            nn.init.normal_(layer.weight, std=0.001)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


@bug(
    "sigmoids-all-the-way",
    wrong="ten layers are all followed by sigmoids, so the gradient vanishes before it reaches the first ones",
    source="AUTOTRAINER (ICSE 2021), vanishing gradients; DeepDiagnosis (ICSE 2022)",
    words="vanish|sigmoid|gradient.*(shrink|small|factor)",
)
def sigmoids_all_the_way(run, fixed):
    x, y = digits()
    model = mlp(64, *[32] * 10, 10, activation=nn.ReLU if fixed else nn.Sigmoid)
    for layer in model:
        if isinstance(layer, nn.Linear) and fixed:
            nn.init.kaiming_normal_(layer.weight)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


@bug(
    "biases-far-below-zero",
    wrong="biases of the hidden layer begin at -20, so nearly all of its ReLUs are dead from the start",
    source="AUTOTRAINER (ICSE 2021), dying ReLU; DeepDiagnosis (ICSE 2022), dead node",
    places="hidden, act2",
    words="dead|dying|relu|bias|zero for (all|every)",
)
def biases_far_below_zero(run, fixed):
    x, y = digits()
    model = named(
        first=nn.Linear(64, 64), act1=nn.ReLU(), hidden=nn.Linear(64, 64), act2=nn.ReLU(), head=nn.Linear(64, 10)
    )
    if not fixed:
        nn.init.constant_(model.hidden.bias, -20.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


@bug(
    "relus-die-at-the-first-steps",
    wrong="a first step with a huge loss (targets around 300) pushes all ReLUs below zero, where they stay",
    source="AUTOTRAINER (ICSE 2021), dying ReLU; Stack Overflow, 'network predicts the mean only'",
    places="act1, act2, target",
    words="dead|dying|relu|learning rate|steps are too large|target.*(scale|large|normali)|scale of the target",
)
def relus_die_at_the_first_steps(run, fixed):
    x, y = table("diabetes")
    y = y[:, None]
    if fixed:
        y = (y - y.mean()) / y.std()
    model = named(
        first=nn.Linear(10, 32), act1=nn.ReLU(), hidden=nn.Linear(32, 32), act2=nn.ReLU(), head=nn.Linear(32, 1)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
    return falls(train(run, model, optimizer, F.mse_loss, x, y))


@bug(
    "pixels-of-0-to-255",
    wrong="images are not divided by 255, so the tanh units behind the first layer are saturated",
    source="UMLAUT (CHI 2021), input not normalised; DeepDiagnosis (ICSE 2022), saturated activation",
    places="input, act",
    words="saturat|input.*(scale|large|normali|range)|normali[sz]|scale of the input",
)
def pixels_of_0_to_255(run, fixed):
    x, y = digits()
    x = x * (1 if fixed else 255)
    model = named(first=nn.Linear(64, 64), act=nn.Tanh(), head=nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


@bug(
    "columns-of-different-size",
    wrong="columns of the table are not standardised: one is around 750, others around 0.3",
    source="UMLAUT (CHI 2021), input not normalised; Stack Overflow, 'loss stuck, data not scaled'",
    places="input",
    words="input.*(scale|large|normali|range)|normali[sz]|standardi|scale of the input|columns|features of",
)
def columns_of_different_size(run, fixed):
    x, y = table("wine") if fixed else raw_table("wine")
    model = mlp(13, 64, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


@bug(
    "division-in-integers",
    wrong="uint8 images are divided by 255 in integers, so nearly every pixel is zero",
    source="UMLAUT (CHI 2021); Humbatova et al. (ICSE 2020), wrong preprocessing",
    places="input",
    words="input.*(zero|constant)|zero.*input|all zero|constant|does not depend|same for|samples.*same",
)
def division_in_integers(run, fixed):
    x, y = digits()
    pixels = (250 * x).round().to(torch.uint8)
    x = pixels / 255 if fixed else (pixels // 255).float()
    model = mlp(64, 64, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


@bug(
    "every-word-unknown",
    wrong="the vocabulary is in capitals and the text is not, so every token is the one for unknown words",
    source="Humbatova et al. (ICSE 2020), wrong preprocessing; Hugging Face tokenizer threads",
    places="input, embedding",
    words="input.*(constant|same)|constant|same for|samples.*same|does not depend|identical|one (token|value)",
)
def every_word_unknown(run, fixed):
    _, letters = text()
    model = named(embedding=nn.Embedding(letters + 1, 32), act=nn.Tanh(), head=nn.Linear(32, letters))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    run.watch(model, optimizer)
    losses = []
    for window in text_windows(16, 16, 250):
        tokens = window[:, :-1]
        if not fixed:
            tokens = torch.full_like(tokens, letters)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tokens).flatten(0, 1), window[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.72)


@bug(
    "siren-without-its-scale",
    wrong="coordinates go through a deep stack of tanh with weights of deviation 3, so units sit at -1 and 1",
    source="DeepDiagnosis (ICSE 2022), saturated activation; Glorot and Bengio (AISTATS 2010)",
    words="saturat|initial|began too|-1 (and|or) 1",
)
def siren_without_its_scale(run, fixed):
    x, y = regression()
    model = mlp(10, 48, 48, 48, 1, activation=nn.Tanh)
    for layer in model:
        if isinstance(layer, nn.Linear) and not fixed:
            nn.init.normal_(layer.weight, std=3.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return falls(train(run, model, optimizer, F.mse_loss, x, y))
