"""Bugs inside of models: modules that are not registered, gradients that are cut, dimensions that are mixed up."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from .bugs_losses import named, train
from .common import accuracy, batches, digit_images, digits, falls, mlp, rises, text, text_windows
from .registry import bug

CUT = (
    "no gradient|without (a )?gradient|detach|not connected|disconnected|never (moved|updated|changes)|not updated|"
    "no_grad|not trained"
)


@bug(
    "layers-in-a-plain-list",
    wrong="hidden layers stand in a Python list and not in a ModuleList, so no optimizer moves them",
    source="pytorch/pytorch issues 715, 38639, 59925",
    places="hidden",
    words="ModuleList|not registered|no module|list|not in (the|any) optimizer|" + CUT,
)
def layers_in_a_plain_list(run, fixed):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(64, 32)
            layers = [nn.Linear(32, 32) for _ in range(3)]
            self.hidden = nn.ModuleList(layers) if fixed else layers
            self.head = nn.Linear(32, 10)

        def forward(self, x):
            x = torch.tanh(self.first(x))
            for layer in self.hidden:
                x = torch.tanh(layer(x))
            return self.head(x)

    x, y = digits()
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


@bug(
    "position-never-added",
    wrong="the position embedding is made and never added, so the order of tokens is unknown",
    source="transformer re-implementations on GitHub; chemprop issue 853 (parameters that were not used)",
    places="position",
    words="unused|not used|never used|no gradient|not reached|no backward",
)
def position_never_added(run, fixed):
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.pixels = nn.Linear(8, 32)
            self.position = nn.Parameter(0.1 * torch.randn(8, 32))
            layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 1)
            self.head = nn.Linear(32, 10)

        def forward(self, x):
            rows = self.pixels(x.view(-1, 8, 8))
            if fixed:
                rows = rows + self.position
            return self.head(self.encoder(rows).mean(1))

    x, y = digits()
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y, steps=200))


@bug(
    "layer-result-overwritten",
    wrong="the second convolution is given the input of the first one, whose result is thrown away",
    source="Stack Overflow studies (Islam et al., FSE 2019): wrong variable in forward",
    places="conv1",
    words="unused|not used|never used|no gradient|not reached|no backward",
)
def layer_result_overwritten(run, fixed):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 1, 3, padding=1)
            self.conv2 = nn.Conv2d(1, 16, 3, padding=1)
            self.head = nn.Linear(256, 10)

        def forward(self, x):
            out = torch.relu(self.conv1(x)) + x
            out = torch.relu(self.conv2(out if fixed else x))
            return self.head(F.max_pool2d(out, 2).flatten(1))

    x, y = digit_images()
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


@bug(
    "encoder-under-no-grad",
    wrong="a torch.no_grad() from feature extraction is left around the encoder that should be fine-tuned",
    source="discuss.pytorch.org, 'fine-tuning does nothing, no_grad in forward'; NeuraLint (TOSEM 2021)",
    places="encoder",
    words=CUT,
)
def encoder_under_no_grad(run, fixed):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = mlp(64, 48, 32)
            self.head = nn.Linear(32, 10)

        def forward(self, x):
            with torch.set_grad_enabled(fixed):
                hidden = self.encoder(x)
            return self.head(torch.relu(hidden))

    x, y = digits()
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


@bug(
    "round-trip-through-numpy",
    wrong="the features go through numpy for a median filter, which cuts the gradient to the convolution",
    source="Stack Overflow, 'backprop through numpy / scipy operation'; Zhang et al. (ISSTA 2018)",
    places="conv",
    words=CUT + "|numpy",
)
def round_trip_through_numpy(run, fixed):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(1, 12, 3, padding=1)
            self.head = nn.Linear(12 * 64, 10)

        def forward(self, x):
            hidden = torch.tanh(self.conv(x))
            if fixed:
                hidden = hidden.clamp(-0.8, 0.8)
            else:
                hidden = torch.from_numpy(hidden.detach().numpy().clip(-0.8, 0.8))
            return self.head(hidden.flatten(1))

    x, y = digit_images()
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


@bug(
    "checkpoint-of-frozen-input",
    wrong="the reentrant checkpoint gets an input without requires_grad, so the whole encoder has no gradient",
    source="PyTorch, torch.utils.checkpoint: 'None of the inputs have requires_grad=True. Gradients will be None'",
    places="encoder",
    words=CUT + "|checkpoint",
)
def checkpoint_of_frozen_input(run, fixed):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = mlp(64, 64, 48)
            self.head = nn.Linear(48, 10)

        def forward(self, x):
            return self.head(torch.relu(checkpoint(self.encoder, x, use_reentrant=not fixed)))

    x, y = digits()
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


@bug(
    "state-detached-at-each-step",
    wrong="a hand-written recurrence detaches its state at each step, so nothing is learned across time",
    source="discuss.pytorch.org, 'hidden state detach in loop'; PyTorch word_language_model misuse",
    places="cell",
    words="detach|no gradient|across time|earlier (steps|passes)|does not learn|chance|not falling|cut",
)
def state_detached_at_each_step(run, fixed):
    class Memory(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.GRUCell(4, 32)
            self.head = nn.Linear(32, 4)

        def forward(self, x):
            state = torch.zeros(len(x), 32)
            for time in range(x.shape[1]):
                state = self.cell(x[:, time], state if fixed else state.detach())
            return self.head(state)

    generator = torch.Generator().manual_seed(3)
    model = Memory()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    run.watch(model, optimizer)
    losses = []
    for _ in range(250):
        symbols = torch.randint(0, 4, (32, 7), generator=generator)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(F.one_hot(symbols, 4).float()), symbols[:, 0])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses)


class Attention(nn.Module):
    """One head of attention, written by hand."""

    def __init__(self, width, scale=None, dim=-1, causal=False):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.softmax = nn.Softmax(dim)
        self.scale = width**-0.5 if scale is None else scale
        self.causal = causal

    def forward(self, x):
        scores = self.scale * self.query(x) @ self.key(x).transpose(1, 2)
        if self.causal:
            scores = scores.masked_fill(torch.ones(scores.shape[1:]).triu(1).bool(), float("-inf"))
        return self.softmax(scores) @ self.value(x)


class Classifier(nn.Module):
    def __init__(self, attention, width):
        super().__init__()
        self.pixels = nn.Linear(8, width)
        self.position = nn.Parameter(0.1 * torch.randn(8, width))
        self.attention = attention
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        rows = self.pixels(x.view(-1, 8, 8)) + self.position
        return self.head((rows + self.attention(rows)).mean(1))


@bug(
    "attention-over-the-batch",
    wrong="the softmax of the attention runs over the batch (dim=0), so each sample depends on the others",
    source="UMLAUT (CHI 2021), wrong axis; nn.Softmax() with an implicit dimension (pytorch UserWarning)",
    places="attention.softmax, attention",
    words="over the batch|batch dimension|dimension 0|dim=0|other samples|between samples|leak|sum to (one|1)",
)
def attention_over_the_batch(run, fixed):
    x, y = digits()
    model = Classifier(Attention(32, dim=-1 if fixed else 0), 32)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


@bug(
    "attention-not-scaled",
    wrong="scores are multiplied by the square root of the width instead of divided by it, so attention is one-hot",
    source="Vaswani et al. (2017), why scores are scaled; GitHub threads on a missing 1/sqrt(d)",
    places="attention.softmax, attention.query, attention.key, attention",
    words="one-?hot|saturat|entropy|attention|softmax",
)
def attention_not_scaled(run, fixed):
    x, y = digits()
    model = Classifier(Attention(64, scale=64**-0.5 if fixed else 64**0.5), 64)
    nn.init.normal_(model.pixels.weight, std=0.5)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


@bug(
    "future-not-masked",
    wrong="a language model's attention has no causal mask, so each token reads the one it should predict",
    source="minGPT re-implementations; Karpathy's tweet on common mistakes (2018) and 'A recipe'",
    places="attention, target",
    words="mask|future|leak|causal|cop(y|ies)|too (easy|fast)",
)
def future_not_masked(run, fixed):
    _, letters = text()

    class Language(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(letters, 48)
            self.position = nn.Parameter(0.3 * torch.randn(24, 48))
            self.attention = Attention(48, causal=fixed)
            self.mix = mlp(48, 96, 48)
            self.head = nn.Linear(48, letters)

        def forward(self, ids):
            x = self.embedding(ids) + self.position
            x = x + self.attention(x)
            return self.head(x + self.mix(x))

    model = Language()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    run.watch(model, optimizer)
    losses = []
    for window in text_windows(24, 16, 250):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses)


@bug(
    "view-instead-of-transpose",
    wrong="(batch, time, features) is turned into (time, batch, features) by view, which mixes up samples",
    source="HHTseng/video-classification issue 42; timbmg/Sentence-VAE issue 15",
    places="rnn, output",
    words="other samples|between samples|across samples|batch dimension|leak|mix|view|transpose|chance|does not learn",
)
def view_instead_of_transpose(run, fixed):
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.GRU(8, 48)
            self.head = nn.Linear(48, 10)

        def forward(self, x):
            rows = x.view(-1, 8, 8)
            rows = rows.transpose(0, 1) if fixed else rows.reshape(8, -1, 8)
            return self.head(self.rnn(rows)[0][-1])

    x, y = digits()
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y))


@bug(
    "evaluation-mode-stays",
    wrong="model.eval() is called for the first validation and model.train() never again",
    source="Stack Overflow, 'forgot model.train() after validation'; TrainCheck (OSDI 2025)",
    words="eval|train\\(\\)|training mode",
)
def evaluation_mode_stays(run, fixed):
    x, y = digits()
    model = named(
        first=nn.Linear(64, 64), norm=nn.BatchNorm1d(64), act=nn.ReLU(), drop=nn.Dropout(0.2), head=nn.Linear(64, 10)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    run.watch(model, optimizer)
    losses = []
    for number, (xb, yb) in enumerate(batches(x, y, size=32, steps=250)):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if number % 25 == 24:
            model.eval()
            with torch.no_grad():
                run.metric("validation accuracy", accuracy(model(x[:300]), y[:300]))
            if fixed:
                model.train()
    return falls(losses)


@bug(
    "functional-dropout-in-evaluation",
    wrong="F.dropout without training=self.training drops units in evaluation, too, so validation is bad",
    source="NeuraLint (TOSEM 2021); Stack Overflow, 'F.dropout vs nn.Dropout'",
    places="validation accuracy",
    words="dropout|evaluation|validation",
)
def functional_dropout(run, fixed):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(64, 128)
            self.head = nn.Linear(128, 10)

        def forward(self, x):
            hidden = F.dropout(torch.relu(self.first(x)), 0.85, training=self.training if fixed else True)
            return self.head(hidden)

    x, y = digits()
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    run.watch(model, optimizer)
    scores = []
    for number, (xb, yb) in enumerate(batches(x, y, size=64, steps=300)):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        run.metric("train loss", loss)
        if number % 10 == 9:
            model.eval()
            with torch.no_grad():
                scores.append(accuracy(model(x[:400]), y[:400]))
            run.metric("validation accuracy", scores[-1])
            model.train()
    return rises(scores, 0.9)


@bug(
    "residual-stream-grows",
    wrong="a deep residual network without norms adds branches of full size, so activations double in each block",
    source="Zhang et al., Fixup (ICLR 2019); TheDeepChecker (TOSEM 2022), unstable activations",
    places="blocks",
    words="grow|explod|residual|depth|initial",
)
def residual_stream_grows(run, fixed):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(48) if fixed else nn.Identity()
            self.body = mlp(48, 96, 48)
            nn.init.kaiming_normal_(self.body[0].weight)
            nn.init.kaiming_normal_(self.body[2].weight)
            if fixed:
                nn.init.zeros_(self.body[2].weight)

        def forward(self, x):
            return x + self.body(self.norm(x))

    x, y = digits()
    model = named(first=nn.Linear(64, 48), blocks=nn.Sequential(*[Block() for _ in range(14)]), head=nn.Linear(48, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return falls(train(run, model, optimizer, F.cross_entropy, x, y, steps=200))
