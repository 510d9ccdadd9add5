"""Healthy trainings on text and sequences of symbols."""

import torch
from torch import nn
from torch.nn import functional as F

from .bugs_losses import named
from .bugs_updates import CharacterRNN
from .common import accuracy, batches, falls, rises, text, text_windows
from .registry import healthy


def train_language(run, model, optimizer, *, steps=200, length=24, size=16, scheduler=None, clip=None):
    """Next letter of the text, with whatever returns logits."""
    run.watch(model, optimizer)
    losses = []
    for window in text_windows(length, size, steps):
        optimizer.zero_grad()
        out = model(window[:, :-1])
        loss = F.cross_entropy(getattr(out, "logits", out).flatten(0, 1), window[:, 1:].flatten())
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        run.metric("loss", loss)
        losses.append(loss.item())
    return falls(losses, 0.8)


@healthy("character-lstm", kind="language")
def character_lstm(run):
    model = CharacterRNN(text()[1], 64)
    return train_language(run, model, torch.optim.Adam(model.parameters(), lr=5e-3), clip=1.0)


@healthy("character-gru-two-layers", kind="language")
def character_gru(run):
    class Reader(nn.Module):
        def __init__(self, letters):
            super().__init__()
            self.embedding = nn.Embedding(letters, 32)
            self.rnn = nn.GRU(32, 48, num_layers=2, dropout=0.1, batch_first=True)
            self.head = nn.Linear(48, letters)

        def forward(self, ids):
            return self.head(self.rnn(self.embedding(ids))[0])

    model = Reader(text()[1])
    return train_language(run, model, torch.optim.RMSprop(model.parameters(), lr=2e-3))


@healthy("gpt2-from-its-configuration", kind="language")
def gpt2(run):
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=text()[1], n_positions=32, n_embd=48, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0
    )
    model = GPT2LMHeadModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.1)
    return train_language(run, model, optimizer, steps=120, clip=1.0)


@healthy("llama-from-its-configuration", kind="language")
def llama(run):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=text()[1], hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.1)
    warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 20))
    return train_language(run, model, optimizer, steps=120, scheduler=warm, clip=1.0)


@healthy("bert-masked-words", kind="language")
def bert(run):
    from transformers import BertConfig, BertForMaskedLM

    letters = text()[1]
    config = BertConfig(
        vocab_size=letters + 1, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
        max_position_embeddings=40, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    model = BertForMaskedLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    run.watch(model, optimizer)
    losses = []
    for window in text_windows(31, 16, 150):
        masked = torch.rand(window.shape) < 0.2
        labels = window.masked_fill(~masked, -100)
        optimizer.zero_grad()
        loss = model(input_ids=window.masked_fill(masked, letters), labels=labels).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.8)


@healthy("t5-copies-backwards", kind="language")
def t5(run):
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=14, d_model=48, d_kv=12, d_ff=96, num_layers=2, num_heads=4, dropout_rate=0.0,
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=1,
    )  # fmt: skip
    model = T5ForConditionalGeneration(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    run.watch(model, optimizer)
    losses = []
    for _ in range(150):
        ids = torch.randint(2, 14, (24, 6))
        optimizer.zero_grad()
        loss = model(input_ids=ids, labels=ids.flip(1)).loss
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.8)


@healthy("sequence-to-sequence-with-attention", kind="language")
def sequence_to_sequence(run):
    class Translator(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(12, 32)
            self.encoder = nn.GRU(32, 48, batch_first=True)
            self.decoder = nn.GRU(32, 48, batch_first=True)
            self.attention = nn.MultiheadAttention(48, 2, batch_first=True)
            self.head = nn.Linear(96, 12)

        def forward(self, source, before):
            memory, state = self.encoder(self.embedding(source))
            hidden, _ = self.decoder(self.embedding(before), state)
            read, _ = self.attention(hidden, memory, memory)
            return self.head(torch.cat([hidden, read], -1))

    model = Translator()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    run.watch(model, optimizer)
    losses = []
    for _ in range(200):
        source = torch.randint(2, 12, (32, 6))
        target = source.flip(1)
        before = torch.cat([torch.ones(32, 1, dtype=torch.long), target[:, :-1]], 1)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(source, before).flatten(0, 1), target.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return falls(losses)


@healthy("transformer-encoder-sorts", kind="language")
def transformer_sorts(run):
    class Sorter(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(10, 48)
            self.position = nn.Parameter(0.1 * torch.randn(8, 48))
            layer = nn.TransformerEncoderLayer(
                48, 4, 96, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
            )
            self.encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(48), enable_nested_tensor=False)
            self.head = nn.Linear(48, 10)

        def forward(self, ids):
            return self.head(self.encoder(self.embedding(ids) + self.position))

    model = Sorter()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    run.watch(model, optimizer)
    losses = []
    for _ in range(200):
        ids = torch.randint(0, 10, (32, 8))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(ids).flatten(0, 1), ids.sort(1).values.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses)


@healthy("bag-of-words", kind="language")
def bag_of_words(run):
    model = named(bag=nn.EmbeddingBag(50, 16), act=nn.ReLU(), head=nn.Linear(16, 3))
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    run.watch(model, optimizer)
    scores = []
    for _ in range(250):
        topic = torch.randint(0, 3, (32,))
        words = torch.where(torch.rand(32, 12) < 0.5, torch.randint(0, 15, (32, 12)) + 15 * topic[:, None], 49)
        optimizer.zero_grad()
        logits = model(words)
        loss = F.cross_entropy(logits, topic)
        loss.backward()
        optimizer.step()
        scores.append(accuracy(logits, topic))
    return rises(scores, 0.9)


@healthy("skip-gram-sparse-gradients", kind="language")
def skip_gram(run):
    class SkipGram(nn.Module):
        def __init__(self, letters):
            super().__init__()
            self.center = nn.Embedding(letters, 16, sparse=True)
            self.context = nn.Embedding(letters, 16, sparse=True)

        def forward(self, center, context):
            return (self.center(center) * self.context(context)).sum(-1)

    ids, letters = text()
    model = SkipGram(letters)
    optimizer = torch.optim.SparseAdam(model.parameters(), lr=0.02)
    run.watch(model, optimizer)
    losses = []
    for center, after in batches(ids[:-1], ids[1:], size=64, steps=300):
        wrong = ids[torch.randint(0, len(ids), (64,))]
        optimizer.zero_grad()
        loss = F.softplus(-model(center, after)).mean() + F.softplus(model(center, wrong)).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.6)


@healthy("text-convolutions", kind="language")
def text_convolutions(run):
    class Dilated(nn.Module):
        def __init__(self, letters):
            super().__init__()
            self.embedding = nn.Embedding(letters, 32)
            self.layers = nn.ModuleList([nn.Conv1d(32, 32, 2, dilation=2**n) for n in range(4)])
            self.head = nn.Linear(32, letters)

        def forward(self, ids):
            x = self.embedding(ids).transpose(1, 2)
            for number, layer in enumerate(self.layers):
                x = x + F.gelu(layer(F.pad(x, (2**number, 0))))
            return self.head(x.transpose(1, 2))

    model = Dilated(text()[1])
    return train_language(run, model, torch.optim.Adam(model.parameters(), lr=3e-3))


@healthy("tied-weights-and-label-smoothing", kind="language")
def tied_weights(run):
    class Tied(nn.Module):
        def __init__(self, letters):
            super().__init__()
            self.embedding = nn.Embedding(letters, 48)
            nn.init.normal_(self.embedding.weight, std=0.1)
            self.rnn = nn.LSTM(48, 48, batch_first=True)
            self.head = nn.Linear(48, letters)
            self.head.weight = self.embedding.weight

        def forward(self, ids):
            return self.head(self.rnn(self.embedding(ids))[0])

    model = Tied(text()[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    run.watch(model, optimizer)
    losses = []
    for window in text_windows(24, 16, 200):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten(), label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return falls(losses, 0.85)


@healthy("padded-batches-with-masks", kind="language")
def padded_batches(run):
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(6, 32, padding_idx=0)
            layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
            self.head = nn.Linear(32, 5)

        def forward(self, ids):
            padding = ids == 0
            hidden = self.encoder(self.embedding(ids), src_key_padding_mask=padding)
            seen = (~padding).unsqueeze(-1).float()
            return self.head((hidden * seen).sum(1) / seen.sum(1))

    model = Counter()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    run.watch(model, optimizer)
    scores = []
    for _ in range(250):
        ids = torch.randint(1, 6, (32, 12))
        lengths = torch.randint(3, 13, (32,))
        ids = ids.masked_fill(torch.arange(12)[None, :] >= lengths[:, None], 0)
        label = F.one_hot(ids, 6).sum(1)[:, 1:].argmax(1)
        optimizer.zero_grad()
        logits = model(ids)
        loss = F.cross_entropy(logits, label)
        loss.backward()
        optimizer.step()
        scores.append(accuracy(logits, label))
    return rises(scores, 0.7)
