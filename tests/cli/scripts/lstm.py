"""An LSTM that learns the next character, with arguments, a warm-up call, clipping, and a status of its own."""

import argparse
import hashlib
import sys

import torch
from torch import nn


class CharacterModel(nn.Module):
    def __init__(self, characters: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(width, characters)

    def forward(self, indices, state=None):
        out, state = self.lstm(self.embedding(indices), state)
        return self.head(self.dropout(out)), state


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--width", type=int, default=16)
    options = parser.parse_args()
    torch.manual_seed(1)
    text = "the quick brown fox jumps over the lazy dog. " * 40
    characters = sorted(set(text))
    data = torch.tensor([characters.index(one) for one in text])
    lm = CharacterModel(len(characters), options.width)
    lm(data[:8].unsqueeze(0))  # before there is an optimizer
    optim = torch.optim.SGD(lm.parameters(), lr=0.5, momentum=0.9)
    for _ in range(options.steps):
        starts = torch.randint(0, len(data) - 33, (8,))
        batch = torch.stack([data[start : start + 33] for start in starts])
        logits, _ = lm(batch[:, :-1])
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), batch[:, 1:])
        optim.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(lm.parameters(), 1.0)
        optim.step()
    print("loss", float(loss.detach()))
    print(hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in lm.parameters())).hexdigest())
    print("that was all", file=sys.stderr)
    return 7


if __name__ == "__main__":
    sys.exit(main())
