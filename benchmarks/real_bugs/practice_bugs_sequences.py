"""Practice: bugs in networks that read sequences."""

import torch
from torch import nn
from torch.nn import functional as F

from .common import accuracy, batches, falls, rises, text, text_windows
from .practice_common import first_of_sequence, fit, padded_words
from .registry import bug


@bug(
    "practice-attention-mask-inverted",
    wrong="the padding mask is True for words and False for padding, so attention sees the padding only",
    source="discuss.pytorch.org threads on src_key_padding_mask; zai-org/ChatGLM2-6B issue 185",
    places="encoder",
    words="mask|padding|attend|does not depend|same for|constant|chance",
)
def attention_mask_inverted(run, fixed):
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(14, 32)
            self.position = nn.Parameter(torch.randn(17, 32) * 0.1)
            layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(32, 4)

        def forward(self, tokens):
            tokens = F.pad(tokens, (1, 0), value=13)
            words = tokens != 0
            hidden = self.encoder(self.embed(tokens) + self.position, src_key_padding_mask=~words if fixed else words)
            return self.head(hidden[:, 0])

    tokens, _, y = padded_words()
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    losses = fit(run, model, optimizer, lambda x, y: F.cross_entropy(model(x), y), tokens, y, steps=250)
    return falls(losses, 0.5)


@bug(
    "practice-softmax-over-queries",
    wrong="the softmax of the attention runs over the queries (dim=-2) and not over the keys",
    source="UMLAUT (CHI 2021), wrong axis; discuss.pytorch.org questions on the dim of the softmax in attention",
    places="attention",
    words="softmax|\\bdim|sum to|leak|future",
)
def softmax_over_queries(run, fixed):
    class Attention(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x):
            q, k, v = self.qkv(x).chunk(3, dim=-1)
            scores = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5
            future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
            weights = scores.masked_fill(future, -1e9).softmax(dim=-1 if fixed else -2)
            return self.out(weights @ v)

    class Model(nn.Module):
        def __init__(self, letters):
            super().__init__()
            self.embed, self.position = nn.Embedding(letters, 48), nn.Embedding(24, 48)
            self.attention = nn.ModuleList([Attention(48) for _ in range(2)])
            self.norms = nn.ModuleList([nn.LayerNorm(48) for _ in range(2)])
            self.head = nn.Linear(48, letters)

        def forward(self, ids):
            x = self.embed(ids) + self.position(torch.arange(ids.shape[1]))
            for attention, norm in zip(self.attention, self.norms, strict=True):
                x = x + attention(norm(x))
            return self.head(x)

    model = Model(text()[1])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    run.watch(model, optimizer)
    losses = []
    for window in text_windows(24, 16, 150):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():  # what is said of the first letters must not depend on those behind them
        ahead = (model(window[:, :12]) - model(window[:, :24])[:, :12]).abs().max()
    return falls(losses, 0.8) and float(ahead) < 1e-3


@bug(
    "practice-last-step-is-padding",
    wrong="the classifier reads the state after the padding and not after the last word",
    source="Stack Overflow, 'How to get the last output of a padded LSTM'; discuss.pytorch.org on out[:, -1]",
    places="lstm, head",
    words="padding|vanish|too long|chance|same for|forget|plateau",
)
def last_step_is_padding(run, fixed):
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(13, 16, padding_idx=0)
            self.lstm = nn.LSTM(16, 32, batch_first=True)
            self.head = nn.Linear(32, 4)

        def forward(self, tokens, lengths):
            states, _ = self.lstm(self.embed(tokens))
            last = lengths - 1 if fixed else torch.full_like(lengths, tokens.shape[1] - 1)
            return self.head(states[torch.arange(len(tokens)), last])

    tokens, lengths, y = padded_words()
    tokens = F.pad(tokens, (0, 84))
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses = fit(run, model, optimizer, lambda x, n, y: F.cross_entropy(model(x, n), y), tokens, lengths, y, steps=200)
    return falls(losses, 0.5)


@bug(
    "practice-batch-first-forgotten",
    wrong="the GRU was made without batch_first, so its recurrence runs over the samples of the batch",
    source="Stack Overflow and discuss.pytorch.org questions on batch_first of nn.LSTM and nn.GRU",
    places="gru",
    words="batch_first|over the batch|batch dimension|other samples|between samples|leak",
)
def batch_first_forgotten(run, fixed):
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.gru = nn.GRU(4, 24, batch_first=fixed)
            self.head = nn.Linear(24, 4)

        def forward(self, x):
            return self.head(self.gru(x)[0][:, -1])

    x, y = first_of_sequence()
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    return falls(fit(run, model, optimizer, lambda x, y: F.cross_entropy(model(x), y), x, y), 0.5)


@bug(
    "practice-padding-counts-in-the-loss",
    wrong="the loss counts the padding of the targets, which is nearly all of them, so the tagger says 'padding'",
    source="saahiluppal/catr issue 12; EleutherAI/gpt-neo pull request 45; 01-ai/Yi issue 110",
    places="target, loss",
    words="padding|imbalance|one class|same (class|label|value)|ignore|constant",
)
def padding_counts(run, fixed):
    generator = torch.Generator().manual_seed(4)
    x = torch.randint(1, 9, (400, 80), generator=generator)
    x[torch.arange(80) >= torch.randint(3, 6, (400, 1), generator=generator)] = 0
    y = torch.where(x > 0, (x * 3) % 8 + 1, 0)
    model = nn.Sequential(nn.Embedding(9, 8), nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 9))

    def loss_of(x, y):
        return F.cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=0 if fixed else -100)

    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    fit(run, model, optimizer, loss_of, x, y, steps=100)
    words = y > 0
    with torch.no_grad():
        return accuracy(model(x)[words], y[words]) > 0.8


@bug(
    "practice-same-head-three-times",
    wrong="ModuleList([head] * 3) holds one head three times, so three different tasks get the same answer",
    source="linkedin/Liger-Kernel pull request 269; IDEA-Research/DAB-DETR pull request 17; espnet/espnet issue 1278",
    places="heads",
    words="shared?|same (layer|module|weight|parameter)|several times|times in|more than once|repeated|reus|"
    "conflict|plateau|identical",
)
def same_head_three_times(run, fixed):
    class Answers(nn.Module):
        """Reads the mark at the beginning, and says what stands one, two and three places behind it in a circle."""

        def __init__(self):
            super().__init__()
            self.body = nn.GRU(4, 32, batch_first=True)
            heads = [nn.Linear(32, 4) for _ in range(3)]
            self.heads = nn.ModuleList(heads if fixed else heads[:1] * 3)

        def forward(self, x):
            state = self.body(x)[1][0]
            return [head(state) for head in self.heads]

    x, y = first_of_sequence()
    model = Answers()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

    def loss_of(x, y):
        return sum(F.cross_entropy(out, (y + ahead) % 4) for ahead, out in enumerate(model(x), 1))

    return falls(fit(run, model, optimizer, loss_of, x, y, steps=200), 0.3)


@bug(
    "practice-state-made-anew-at-each-time-step",
    wrong="the state of the GRU is made zero inside the loop over time, so only the last time step counts",
    source="fastai/fastbook pull request 469 and discuss.pytorch.org questions on where to initialise the hidden state",
    places="cell",
    words="recurren|zero gradient|gradient.{0,20}zero|no gradient|without (a )?gradient|unused|hidden state",
)
def state_made_anew(run, fixed):
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.head = nn.GRUCell(4, 24), nn.Linear(24, 4)

        def forward(self, x):
            state = torch.zeros(len(x), 24)
            for moment in x.unbind(1):
                if not fixed:
                    state = torch.zeros(len(x), 24)
                state = self.cell(moment, state)
            return self.head(state)

    x, y = first_of_sequence()
    model = Reader()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-3)
    return falls(fit(run, model, optimizer, lambda x, y: F.cross_entropy(model(x), y), x, y), 0.5)


def speech(samples=200, letters=5, frames=60, marks=10):
    """Frames of noise with a bump for each letter, and the letters."""
    generator = torch.Generator().manual_seed(6)
    y = torch.randint(1, letters + 1, (samples, marks), generator=generator)
    x = F.one_hot(y.repeat_interleave(frames // marks, dim=1), letters + 1).float()
    silent = torch.arange(frames) % (frames // marks) >= 3
    x[:, silent] = 0
    return x + 0.2 * torch.randn(x.shape, generator=generator), y


class Listener(nn.Module):
    def __init__(self, stride):
        super().__init__()
        self.front = nn.Conv1d(6, 24, 5, stride=stride, padding=2)
        self.memory = nn.GRU(24, 24, batch_first=True, bidirectional=True)
        self.head = nn.Linear(48, 6)

    def forward(self, x):
        hidden, _ = self.memory(F.relu(self.front(x.transpose(1, 2))).transpose(1, 2))
        return self.head(hidden)


def ctc(logits, y, normalise=True, **options):
    frames = torch.full((len(y),), logits.shape[1])
    scores = logits.log_softmax(-1) if normalise else logits
    return F.ctc_loss(scores.transpose(0, 1), y, frames, torch.full((len(y),), y.shape[1]), **options)


@bug(
    "practice-alignment-too-short",
    wrong="the strides leave fewer frames than letters; zero_infinity turns the infinite loss into zero",
    source="SeanNaren/warp-ctc issue 29; wenet-e2e/wenet pull request 2299",
    places="loss, head",
    words="zero loss|zero gradient|gradient.{0,20}zero|no gradient|unchanged|never change|ctc|infinit|too short",
)
def alignment_too_short(run, fixed):
    x, y = speech()
    model = Listener(2 if fixed else 8)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses = fit(run, model, optimizer, lambda x, y: ctc(model(x), y, zero_infinity=True), x, y, size=16, steps=120)
    return losses[0] > 0 and falls(losses)


@bug(
    "practice-ctc-of-raw-scores",
    wrong="ctc_loss gets scores without log_softmax, so the loss falls below zero without end",
    source="SeanNaren/deepspeech.pytorch issue 488; gwx314/STARS issue 9",
    places="loss",
    words="log_?softmax|negative|without (end|bound|limit)|unbounded|grow|diverge|below zero",
)
def ctc_of_raw_scores(run, fixed):
    x, y = speech()
    model = Listener(2)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses = fit(run, model, optimizer, lambda x, y: ctc(model(x), y, fixed), x, y, size=16, steps=120)
    return losses[-1] > 0 and falls(losses)


@bug(
    "practice-position-always-zero",
    wrong="the position numbers are torch.zeros and not torch.arange, so the model does not know the order",
    source="transformers issues on position_ids; NeuraLint (TOSEM 2021), missing positional information",
    places="position",
    words="position|\\brows?\\b|no gradient|unused|zero gradient|plateau",
)
def position_always_zero(run, fixed):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.position = nn.Embedding(10, 32), nn.Embedding(12, 32)
            layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True, norm_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(32, 10)

        def forward(self, ids):
            number = torch.arange(12) if fixed else torch.zeros(12, dtype=torch.long)
            return self.head(self.encoder(self.embed(ids) + self.position(number)))

    ids = torch.randint(0, 10, (600, 12), generator=torch.Generator().manual_seed(9))
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

    def backwards(ids):
        return F.cross_entropy(model(ids).flatten(0, 1), ids.flip(1).flatten())

    return falls(fit(run, model, optimizer, backwards, ids, steps=200), 0.6)


@bug(
    "practice-pretrained-words-stay-frozen",
    wrong="Embedding.from_pretrained freezes by default, here vectors that were random and should be trained",
    source="Stack Overflow and discuss.pytorch.org questions on freeze=True of Embedding.from_pretrained",
    places="0",
    words="frozen|requires_grad|not trained|not updated|no gradient|unchanged|never change",
)
def words_stay_frozen(run, fixed):
    generator = torch.Generator().manual_seed(5)
    words = torch.randint(0, 400, (1200, 6), generator=generator)
    mood = torch.randn(400, generator=generator)
    y = (mood[words].mean(1) > 0).float()
    vectors = torch.randn(400, 4, generator=generator) * 0.05
    model = nn.Sequential(
        nn.Embedding.from_pretrained(vectors, freeze=not fixed), nn.AvgPool2d((6, 1)), nn.Flatten(), nn.Linear(4, 1)
    )
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=2e-2)
    run.watch(model, optimizer)
    right = []
    for xb, yb in batches(words, y, size=64, steps=200):
        logits = model(xb)[:, 0]
        loss = F.binary_cross_entropy_with_logits(logits, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right.append(float(((logits > 0) == (yb > 0)).float().mean()))
    return rises(right, 0.75)
