"""Bugs in the training loop: gradients that are not cleared, updates that do not happen or are undone."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

from .common import accuracy, batches, digit_images, digits, falls, mlp, regression, text, text_windows
from .registry import bug


@bug(
    "zero-grad-missing-adam",
    wrong="optimizer.zero_grad() is never called, and the optimizer is Adam",
    source="Stack Overflow 48001598, why zero_grad is needed; TrainCheck (OSDI 2025)",
    words="zero_grad|not cleared|not zeroed|accumulat",
)
def zero_grad_missing_adam(run, fixed):
    x, y = digits()
    model = mlp(64, 64, 64, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    run.watch(model, optimizer)
    losses = []
    for xb, yb in batches(x, y, size=32, steps=250):
        if fixed:
            optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses)


class CharacterRNN(nn.Module):
    def __init__(self, letters, hidden=48):
        super().__init__()
        self.embedding = nn.Embedding(letters, 24)
        self.rnn = nn.LSTM(24, hidden, batch_first=True)
        self.head = nn.Linear(hidden, letters)

    def forward(self, ids):
        return self.head(self.rnn(self.embedding(ids))[0])


@bug(
    "zero-grad-missing-momentum-lstm",
    wrong="zero_grad stands outside of the loop, so gradients of all batches add up, with SGD and momentum",
    source="discuss.pytorch.org, 'zero_grad once per epoch'; Humbatova et al., Taxonomy of Real Faults (ICSE 2020)",
    words="zero_grad|not cleared|not zeroed|accumulat",
)
def zero_grad_missing_momentum(run, fixed):
    _, letters = text()
    model = CharacterRNN(letters)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    run.watch(model, optimizer)
    losses = []
    optimizer.zero_grad()
    for window in text_windows(24, 16, 200):
        if fixed:
            optimizer.zero_grad()
        logits = model(window[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.85)


@bug(
    "zero-grad-of-one-optimizer-only",
    wrong="there is one optimizer for the body and one for the head, and only that of the head clears its gradients",
    source="discuss.pytorch.org, 'two optimizers, one zero_grad'; denchmark (MSR 2021), wrong API order",
    places="body",
    words="zero_grad|not cleared|not zeroed|accumulat",
)
def zero_grad_of_one_optimizer(run, fixed):
    x, y = digits()
    model = nn.Sequential()
    model.add_module("body", mlp(64, 64, 32))
    model.add_module("act", nn.ReLU())
    model.add_module("head", nn.Linear(32, 10))
    of_body = torch.optim.AdamW(model.body.parameters(), lr=1e-3)
    of_head = torch.optim.AdamW(model.head.parameters(), lr=1e-3)
    run.watch(model, [of_body, of_head])
    losses = []
    for xb, yb in batches(x, y, size=32, steps=250):
        of_head.zero_grad()
        if fixed:
            of_body.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        of_body.step()
        of_head.step()
        losses.append(loss.item())
    return falls(losses)


@bug(
    "zero-grad-inside-accumulation",
    wrong="with gradient accumulation, zero_grad is called for each micro-batch, so all but the last one are lost",
    source="karpathy/nanoGPT issues on gradient accumulation; discuss.pytorch.org, 'accumulating gradients'",
    words="zero_grad|cleared|thrown away|lost|discarded|not used|unused",
)
def zero_grad_inside_accumulation(run, fixed):
    x, y = digits()
    model = mlp(64, 64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    run.watch(model, optimizer)
    losses = []
    optimizer.zero_grad()
    for number, (xb, yb) in enumerate(batches(x, y, size=8, steps=400)):
        if not fixed:
            optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb) / 4
        loss.backward()
        if number % 4 == 3:
            optimizer.step()
            if fixed:
                optimizer.zero_grad()
        losses.append(4 * loss.item())
    return falls(losses)


@bug(
    "accumulated-loss-not-divided",
    wrong="16 micro-batches are accumulated and the loss is not divided by 16, so steps are 16 times too large",
    source="karpathy/nanoGPT issue 168",
    places="lr",
    words="learning rate|steps are too large|step size|accumulat",
)
def accumulated_loss_not_divided(run, fixed):
    x, y = digit_images()
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 64), nn.ReLU(),
        nn.Linear(64, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.15, momentum=0.9)
    run.watch(model, optimizer)
    losses = []
    for number, (xb, yb) in enumerate(batches(x, y, size=8, steps=960)):
        loss = F.cross_entropy(model(xb), yb)
        (loss / 16 if fixed else loss).backward()
        if number % 16 == 15:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
    return falls(losses)


@bug(
    "optimizer-of-the-old-head",
    wrong="the head is replaced after the optimizer was made, so the optimizer never moves the new head",
    source="Stack Overflow, 'fine-tuning: new fc layer is not updated'; NeuraLint (TOSEM 2021)",
    places="head",
    words="not in (the|any) optimizer|other (tensors|parameters)|no optimizer|never (moved|updated|changes)|"
    "not updated",
)
def optimizer_of_the_old_head(run, fixed):
    x, y = digits()
    model = nn.Sequential()
    model.add_module("body", mlp(64, 64, 32))
    model.add_module("act", nn.ReLU())
    model.add_module("head", nn.Linear(32, 1000))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.head = nn.Linear(32, 10)
    if fixed:
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run.watch(model, optimizer)
    losses = []
    for xb, yb in batches(x, y, size=64, steps=250):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses)


@bug(
    "optimizer-of-a-copy",
    wrong="the model is copied after the optimizer was made, so the optimizer moves the copy that nobody trains",
    source="huggingface/accelerate issue 2665 (flat loss, TrainCheck's third story)",
    words="optimizer|never (moved|updated|changes)|not updated|no update|do(es)? not change|zero update",
)
def optimizer_of_a_copy(run, fixed):
    x, y = regression()
    model = mlp(10, 64, 64, 1, activation=nn.Tanh)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    if not fixed:
        model = copy.deepcopy(model)
    run.watch(model, optimizer)
    losses = []
    for xb, yb in batches(x, y, size=64, steps=200):
        model.zero_grad()
        loss = F.mse_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
        run.metric("train loss", loss)
        losses.append(loss.item())
    return falls(losses)


@bug(
    "scheduler-instead-of-optimizer",
    wrong="scheduler.step() is called and optimizer.step() is not, in the belief that one does the other",
    source="pytorch/pytorch issue 3814",
    words="optimizer|never (moved|updated|changes)|not updated|no update|do(es)? not change|skipped|thrown away",
)
def scheduler_instead_of_optimizer(run, fixed):
    x, y = digits()
    model = mlp(64, 64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 100, 0.5)
    run.watch(model, optimizer)
    losses = []
    for xb, yb in batches(x, y, size=64, steps=200):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        if fixed:
            optimizer.step()
        scheduler.step()
        run.metric("loss", loss)
        losses.append(loss.item())
    return falls(losses)


@bug(
    "averaged-weights-left-in-place",
    wrong="for each validation the averaged weights are copied into the model, and the trained ones are not put back",
    source="TrainCheck (OSDI 2025), weights changed outside of the optimizer; timm threads on EMA",
    words="overwritten|written|outside of|by hand|put back|reset|undone|jump|not .* by the optimizer",
)
def averaged_weights_left_in_place(run, fixed):
    x, y = digits()
    model = mlp(64, 64, 64, 10)
    average = copy.deepcopy(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run.watch(model, optimizer)
    losses = []
    for number, (xb, yb) in enumerate(batches(x, y, size=64, steps=300)):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        with torch.no_grad():
            for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
                slow.lerp_(fast, 0.002)
        if number % 10 == 9:
            trained = copy.deepcopy(model.state_dict())
            model.load_state_dict(average.state_dict())
            model.eval()
            run.metric("validation accuracy", accuracy(model(x[:300]), y[:300]))
            model.train()
            if fixed:
                model.load_state_dict(trained)
    return falls(losses)


@bug(
    "weights-reset-each-epoch",
    wrong="the loop loads the initial checkpoint at the start of every epoch, so training begins anew each time",
    source="Islam et al. (FSE 2019): model built or loaded inside the loop",
    words="overwritten|written|outside of|by hand|reset|undone|jump|loaded|begins again|not .* by the optimizer",
)
def weights_reset_each_epoch(run, fixed):
    x, y = digits()
    model = mlp(64, 64, 10)
    start = copy.deepcopy(model.state_dict())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    run.watch(model, optimizer)
    losses = []
    for number, (xb, yb) in enumerate(batches(x, y, size=64, steps=280)):
        if number % 28 == 0 and not fixed:
            model.load_state_dict(start)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses)


@bug(
    "parameter-made-anew-in-forward",
    wrong="forward makes a new nn.Parameter each time, so the optimizer holds one that is no longer used",
    source="discuss.pytorch.org, 'nn.Parameter in forward is not learned'; NeuraLint (TOSEM 2021)",
    places="gate",
    words="not in (the|any) optimizer|other (tensors|parameters)|never (moved|updated|changes)|not updated|"
    "new parameter|no update",
)
def parameter_made_anew(run, fixed):
    class Gate(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.scale = nn.Parameter(torch.full((width,), 0.01))

        def forward(self, x):
            if not fixed:
                self.scale = nn.Parameter(torch.full((x.shape[1],), 0.01))
            return x * self.scale

    x, y = digits()
    model = nn.Sequential()
    model.add_module("body", nn.Linear(64, 64))
    model.add_module("act", nn.Tanh())
    model.add_module("gate", Gate(64))
    model.add_module("head", nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    run.watch(model, optimizer)
    losses = []
    for xb, yb in batches(x, y, size=64, steps=250):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses)


@bug(
    "clipped-before-unscaled",
    wrong="gradients are clipped to 1 while they are still multiplied by the scale of GradScaler, so updates vanish",
    source="PyTorch, 'Automatic mixed precision examples', unscale_ before clipping; TrainCheck (OSDI 2025)",
    words="clip|unscale|scaler|(updates?|steps?) (is|are|became) (far |much )?too small|learning rate",
)
def clipped_before_unscaled(run, fixed):
    x, y = digits()
    model = mlp(64, 64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
    run.watch(model, optimizer)
    losses = []
    for xb, yb in batches(x, y, size=64, steps=250):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        scaler.scale(loss).backward()
        if fixed:
            scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return falls(losses)


@bug(
    "clip-limit-tiny",
    wrong="the gradient's norm is clipped to 1e-4 instead of 1, so every step is clipped and nothing moves",
    source="Lightning and transformers threads on max_grad_norm; TrainCheck, wrong gradient clipping",
    places="clipping",
    words="clip|max_norm|(updates?|steps?) (is|are|became) (far |much )?too small",
)
def clip_limit_tiny(run, fixed):
    _, letters = text()
    model = CharacterRNN(letters)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    run.watch(model, optimizer)
    losses = []
    for window in text_windows(24, 16, 200):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0 if fixed else 1e-4)
        optimizer.step()
        run.metric("loss", loss)
        losses.append(loss.item())
    return falls(losses, 0.85)


@bug(
    "clipped-before-backward",
    wrong="clip_grad_norm_ is called before backward, where there is nothing to clip, so nothing is clipped",
    source="Stack Overflow, 'where to put clip_grad_norm_'; denchmark (MSR 2021), wrong API order",
    words="clip|explod|large gradient|gradient.*(large|spike|grow)|learning rate|steps are too large",
)
def clipped_before_backward(run, fixed):
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.RNN(4, 32, nonlinearity="relu", batch_first=True)
            nn.init.normal_(self.rnn.weight_hh_l0, std=0.26)
            self.head = nn.Linear(32, 1)

        def forward(self, x):
            return self.head(self.rnn(x)[0][:, -1])

    generator = torch.Generator().manual_seed(2)
    reader = Reader()
    optimizer = torch.optim.SGD(reader.parameters(), lr=0.03)
    run.watch(reader, optimizer)
    losses = []
    for _ in range(200):
        x = torch.randn(16, 25, 4, generator=generator)
        y = x[:, -3:, 0].sum(1, keepdim=True)
        optimizer.zero_grad()
        if not fixed:
            nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
        loss = F.mse_loss(reader(x), y)
        loss.backward()
        if fixed:
            nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return falls(losses)
