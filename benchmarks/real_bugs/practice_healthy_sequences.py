"""Practice: healthy trainings on sequences and graphs."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from .common import accuracy, batches, block_graph, digits, falls, mlp, rises, text, text_windows, tones
from .practice_common import first_of_sequence, fit, padded_words
from .registry import healthy


@healthy("practice-packed-sequences", kind="recurrent network")
def packed_sequences(run):
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(13, 16, padding_idx=0)
            self.gru = nn.GRU(16, 24, batch_first=True)
            self.head = nn.Linear(24, 4)

        def forward(self, tokens, lengths):
            packed = nn.utils.rnn.pack_padded_sequence(
                self.embed(tokens), lengths, batch_first=True, enforce_sorted=False
            )
            return self.head(self.gru(packed)[1][-1])

    tokens, lengths, y = padded_words()
    model = Reader()
    optimizer = torch.optim.NAdam(model.parameters(), lr=5e-3)
    losses = fit(run, model, optimizer, lambda x, n, y: F.cross_entropy(model(x, n), y), tokens, lengths, y, steps=250)
    return falls(losses, 0.5)


@healthy("practice-gates-that-hold-open", kind="recurrent network")
def gates_that_hold_open(run):
    """The forget gates begin at sigmoid(5), so that a mark at the beginning survives thirty steps of noise."""
    x, y = first_of_sequence(length=30)
    lstm, head = nn.LSTM(4, 24, batch_first=True), nn.Linear(24, 4)
    with torch.no_grad():
        lstm.bias_ih_l0[24:48] = 5.0
        lstm.bias_ih_l0[:24] = -1.0

    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.head = lstm, head

        def forward(self, x):
            return self.head(self.lstm(x)[1][0][0])

    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    run.watch(model, optimizer)
    losses = []
    for xb, yb in batches(x, y, size=48, steps=200):
        loss = F.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.3)


@healthy("practice-slopes-instead-of-positions", kind="transformer decoder")
def slopes_instead_of_positions(run):
    """Attention by hand with ALiBi: a mask of -inf for the future, and a penalty for distance."""

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
            self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

        def forward(self, x, bias):
            many, length, width = x.shape
            parts = self.qkv(self.norm1(x)).view(many, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            scores = parts[0] @ parts[1].transpose(-1, -2) / math.sqrt(width / self.heads) + bias
            mixed = (scores.softmax(-1) @ parts[2]).transpose(1, 2).reshape(many, length, width)
            x = x + self.out(mixed)
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class Decoder(nn.Module):
        def __init__(self, letters, width=48, heads=4):
            super().__init__()
            self.embed = nn.Embedding(letters, width)
            self.blocks = nn.ModuleList(Block(width, heads) for _ in range(2))
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, letters, bias=False)
            self.head.weight = self.embed.weight
            nn.init.normal_(self.embed.weight, std=0.1)
            distance = torch.arange(24)[None] - torch.arange(24)[:, None]
            slopes = torch.tensor([2.0 ** -(n + 1) for n in range(heads)])[:, None, None]
            bias = (slopes * distance).masked_fill(distance > 0, float("-inf"))
            self.register_buffer("bias", bias)

        def forward(self, ids):
            x = self.embed(ids)
            for block in self.blocks:
                x = block(x, self.bias)
            return self.head(self.norm(x))

    model = Decoder(text()[1])
    decay = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": decay}, {"params": plain, "weight_decay": 0.0}], lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=150)
    run.watch(model, optimizer)
    bits = []
    for window in text_windows(24, 16, 150):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        bits.append(loss.item() / math.log(2))
        run.metric("bits per letter", bits[-1])
    return falls(bits, 0.75)


@healthy("practice-one-block-used-four-times", kind="transformer with shared layers")
def one_block_used_four_times(run):
    class Universal(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.position = nn.Embedding(10, 32), nn.Embedding(12, 32)
            self.block = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
            self.head = nn.Linear(32, 10)

        def forward(self, ids):
            x = self.embed(ids) + self.position(torch.arange(ids.shape[1]))
            for _ in range(4):
                x = self.block(x)
            return self.head(x)

    ids = torch.randint(0, 10, (600, 12), generator=torch.Generator().manual_seed(9))
    model = Universal()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

    def loss_of(ids):
        return F.cross_entropy(model(ids).flatten(0, 1), ids.flip(1).flatten())

    return falls(fit(run, model, optimizer, loss_of, ids, steps=150), 0.6)


@healthy("practice-albert-from-its-configuration", kind="Hugging Face, shared layers, masked padding")
def albert(run):
    from transformers import AlbertConfig, AlbertForSequenceClassification

    tokens, _, y = padded_words()
    config = AlbertConfig(
        vocab_size=13, embedding_size=16, hidden_size=32, intermediate_size=64, num_hidden_layers=3,
        num_attention_heads=4, max_position_embeddings=16, num_labels=4, classifier_dropout_prob=0.0,
    )  # fmt: skip
    model = AlbertForSequenceClassification(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    run.watch(model, optimizer)
    losses = []
    for xb, yb in batches(tokens, y, size=32, steps=250):
        optimizer.zero_grad()
        loss = model(input_ids=xb, attention_mask=(xb > 0).long(), labels=yb).loss
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.6)


@healthy("practice-bart-from-its-configuration", kind="Hugging Face, encoder and decoder")
def bart(run):
    from transformers import BartConfig, BartForConditionalGeneration

    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(4, 16, (500, 8), generator=generator)
    config = BartConfig(
        vocab_size=16, max_position_embeddings=16, encoder_layers=1, decoder_layers=1, d_model=48,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=96, decoder_ffn_dim=96, dropout=0.0,
        pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=2,
    )  # fmt: skip
    model = BartForConditionalGeneration(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    run.watch(model, optimizer)
    losses = []
    for (source,) in batches(ids, size=32, steps=200):
        optimizer.zero_grad()
        loss = model(input_ids=source, labels=(source - 3) % 12 + 4).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.6)


@healthy("practice-sentences-get-longer", kind="curriculum, teacher forcing")
def sentences_get_longer(run):
    """Sequence to sequence with GRUs; every 60 steps the sentences grow, and the loss jumps."""

    class Translator(nn.Module):
        def __init__(self):
            super().__init__()
            self.source, self.target = nn.Embedding(12, 24), nn.Embedding(12, 24)
            self.encoder, self.decoder = nn.GRU(24, 64, batch_first=True), nn.GRU(24, 64, batch_first=True)
            self.head = nn.Linear(64, 12)

        def forward(self, source, shifted):
            _, state = self.encoder(self.source(source))
            return self.head(self.decoder(self.target(shifted), state)[0])

    generator = torch.Generator().manual_seed(12)
    model = Translator()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    run.watch(model, optimizer)
    right = []
    for number in range(240):
        length = 2 + number // 60
        source = torch.randint(2, 12, (48, length), generator=generator)
        wished = source.sort(dim=1).values
        out = model(source, F.pad(wished[:, :-1], (1, 0), value=1))
        loss = F.cross_entropy(out.transpose(1, 2), wished)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right.append(accuracy(out, wished))
    return rises(right, 0.6)


@healthy("practice-frozen-reservoir", kind="echo state network")
def frozen_reservoir(run):
    """The recurrent part is random and frozen on purpose; only the readout is trained."""

    class Reservoir(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("inner", torch.randn(100, 100) / 10 * 0.9)
            self.register_buffer("outer", torch.randn(1, 100))
            self.readout = nn.Linear(100, 1)

        def forward(self, wave):
            state, states = torch.zeros(len(wave), 100), []
            with torch.no_grad():
                for moment in wave.split(1, dim=1):
                    state = torch.tanh(state @ self.inner + moment @ self.outer)
                    states.append(state)
            return self.readout(torch.stack(states, 1))[..., 0]

    wave = tones(300, 41)[0]
    model = Reservoir()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

    def loss_of(wave):
        return F.mse_loss(model(wave[:, :-1])[:, 5:], wave[:, 6:])

    return falls(fit(run, model, optimizer, loss_of, wave, steps=150), 0.7)


@healthy("practice-learned-prompt-of-a-frozen-model", kind="prompt tuning")
def learned_prompt(run):
    tokens, _, y = padded_words()

    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(13, 32)
            layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(32, 8)
            self.prompt = nn.Parameter(torch.randn(4, 32) * 0.02)

        def forward(self, ids):
            x = torch.cat([self.prompt.expand(len(ids), -1, -1), self.embed(ids)], 1)
            unseen = torch.cat([torch.zeros(len(ids), 4, dtype=torch.bool), ids == 0], 1)
            return self.head(self.encoder(x, src_key_padding_mask=unseen)[:, 0])

    model = Reader()
    early = torch.optim.Adam(model.parameters(), lr=2e-3)
    for xb, yb in batches(tokens, y, size=32, steps=200):  # learns the classes 0 to 3
        early.zero_grad()
        F.cross_entropy(model(xb), yb).backward()
        early.step()
    early.zero_grad()
    for name, weight in model.named_parameters():
        weight.requires_grad = name.startswith(("prompt", "head"))
    model.encoder.eval()
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    return falls(fit(run, model, optimizer, lambda x, y: F.cross_entropy(model(x), y + 4), tokens, y, steps=150), 0.5)


@healthy("practice-sums-over-neighbours", kind="graph isomorphism network")
def sums_over_neighbours(run):
    x, adjacency, y = block_graph()

    class Gin(nn.Module):
        def __init__(self, before, after):
            super().__init__()
            self.eps, self.mlp = nn.Parameter(torch.zeros(())), mlp(before, 32, after)
            self.norm = nn.BatchNorm1d(after)

        def forward(self, x):
            return F.relu(self.norm(self.mlp(adjacency @ x + self.eps * x)))

    model = nn.Sequential(Gin(8, 32), Gin(32, 32), nn.Dropout(0.3), nn.Linear(32, 3))
    known = torch.arange(len(y)) % 4 == 0
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=5e-4)
    run.watch(model, optimizer)
    for epoch in range(100):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(x)[known], y[known]).backward()
        optimizer.step()
        if epoch % 10 == 9:
            model.eval()
            with torch.no_grad():
                hits = accuracy(model(x)[~known], y[~known])
            run.metric("hits among the unlabelled", hits)
    return hits > 0.7


@healthy("practice-molecules-with-messages", kind="message passing by hand, regression")
def molecules_with_messages(run):
    """Small random graphs; the target is a weighted count of edges. Most pairs have no edge and send nothing."""
    generator = torch.Generator().manual_seed(31)
    kind = torch.randint(0, 4, (400, 9), generator=generator)
    bond = (torch.rand(400, 9, 9, generator=generator) < 0.2).triu(1)
    bond = (bond | bond.transpose(1, 2)).float()
    worth = torch.tensor([0.0, 0.5, -1.0, 1.5])[kind]
    y = ((worth[:, :, None] * worth[:, None]) * bond).sum((1, 2)) / 2

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.message = nn.Embedding(4, 24), mlp(48, 32, 24)
            self.update, self.out = nn.GRUCell(24, 24), mlp(24, 32, 1)

        def forward(self, kind, bond):
            h = self.embed(kind)
            for _ in range(2):
                pairs = torch.cat([h[:, :, None].expand(-1, -1, 9, -1), h[:, None].expand(-1, 9, -1, -1)], -1)
                sent = (self.message(pairs) * bond[..., None]).sum(2)
                h = self.update(sent.flatten(0, 1), h.flatten(0, 1)).view_as(h)
            return self.out(h).sum((1, 2))

    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses = fit(run, model, optimizer, lambda k, b, y: F.smooth_l1_loss(model(k, b), y), kind, bond, y, steps=200)
    return falls(losses, 0.5)


@healthy("practice-masked-pixels-in-order", kind="autoregressive model of pixels")
def masked_pixels_in_order(run):
    """MADE: masks on the weights let each pixel see only those before it; the first sees nothing but its bias."""

    class Masked(nn.Linear):
        def __init__(self, mask):
            super().__init__(mask.shape[1], mask.shape[0])
            self.register_buffer("mask", mask.float())

        def forward(self, x):
            return F.linear(x, self.weight * self.mask, self.bias)

    x = (digits()[0] > 0.5).float()
    order, hidden = torch.arange(64), torch.arange(160) % 63
    model = nn.Sequential(Masked(hidden[:, None] >= order), nn.ReLU(), Masked(order[:, None] > hidden))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

    def nats(x):
        return F.binary_cross_entropy_with_logits(model(x), x, reduction="sum") / len(x)

    return falls(fit(run, model, optimizer, nats, x, size=64, steps=200), 0.6)


@healthy("practice-copying-by-pointer", kind="pointer network")
def copying_by_pointer(run):
    """The output is an attention itself: it points at the largest number of the input."""

    class Pointer(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.LSTM(1, 32, batch_first=True, bidirectional=True)
            self.query, self.key, self.score = nn.Linear(64, 32), nn.Linear(64, 32), nn.Linear(32, 1)

        def forward(self, x):
            states, _ = self.encoder(x)
            return self.score(torch.tanh(self.query(states.mean(1, keepdim=True)) + self.key(states)))[..., 0]

    x = torch.rand(800, 8, 1, generator=torch.Generator().manual_seed(3))
    model = Pointer()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    return falls(
        fit(run, model, optimizer, lambda x: F.cross_entropy(model(x), x[..., 0].argmax(1)), x, steps=200), 0.5
    )
