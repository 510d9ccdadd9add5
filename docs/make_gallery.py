"""Draw the picture gallery: `docs/gallery.md` and the files in `docs/gallery`.

    python docs/make_gallery.py            all pictures; needs transformers, takes about a minute
    python docs/make_gallery.py gpt2 unet  only these

With `--png` the pictures are drawn as PNG as well, into the folder given, to look at them.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gallery_models as models
import torch

import endoscope

DOCS = Path(__file__).parent
PICTURES = DOCS / "gallery"
LARGEST = 60_000  # bytes

HEAD = """\
# Gallery

Known architectures, as [`trace.draw`](reference/draw.md) draws them. `python docs/make_gallery.py` writes this page.

| what you see | what it is |
|---|---|
| green, red | an input, an output |
| grey | an operation that uses parameters |
| light grey | a buffer |
| box | an operation that is alone in its module |
| oval | any other operation |
| double box | a module whose inside is hidden, because `depth=` limits the levels |
| blue frame | several equal blocks, drawn once |
| dashed outline | a value that depends on no input |
| yellow | a value that decided a branch of an `if` |
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One picture."""

    name: str
    title: str
    text: str
    make: Callable[[], models.Example]
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def call(self) -> str:
        shown = ", ".join(f"{key}={value!r}" for key, value in self.options.items())
        return f'trace.draw("{self.name}.svg"{", " + shown if shown else ""})'


ENTRIES = [
    Entry("demo", "A bit of everything", "The first example of the poster on TorchLens.", models.demo),
    Entry("recurrent", "A loop, unrolled", "The second example of the poster. Each pass is drawn.", models.recurrent),
    Entry("recurrent_rolled", "A loop, rolled", "The same: each layer drawn once.", models.recurrent, {"rolled": True}),
    Entry("organization", "Modules and an `if`", "The third example of the poster.", models.organization),
    Entry("siamese", "Siamese network", "One encoder for both inputs.", models.siamese, {"direction": "right"}),
    Entry("siamese_rolled", "Siamese network, rolled", "Pass 1 reads `left`, pass 2 reads `right`.", models.siamese,
          {"rolled": True}),
    Entry("lstm", "LSTM, written by hand", "20 time steps. Equal ones are drawn once.", models.lstm),
    Entry("resnet18", "ResNet-18", "Skip connections, three of them with a convolution.", models.resnet18),
    Entry("unet", "U-Net", "Skip connections lead from the encoder to the decoder.", models.unet),
    Entry("gpt2", "GPT-2", "Twelve blocks, drawn once.", models.gpt2),
    Entry("bert", "BERT", "The encoder with its pooler.", models.bert),
    Entry("vit", "Vision transformer", "From patches to classes.", models.vit),
    Entry("t5", "T5", "Encoder and decoder, three levels deep.", models.t5, {"depth": 3}),
    Entry("whisper", "Whisper", "Encoder and decoder for speech.", models.whisper, {"depth": 4}),
    Entry("mamba", "Mamba", "One block of a state space model.", models.mamba, {"module": "backbone.layers.0"}),
    Entry("mixtral", "Mixtral", "The experts of one layer.", models.mixtral, {"module": "model.layers.0.mlp"}),
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the picture gallery.")
    parser.add_argument("names", nargs="*", metavar="name", help="only these pictures")
    parser.add_argument("--png", type=Path, help="a folder for PNG files")
    chosen = parser.parse_args()
    unknown = set(chosen.names) - {entry.name for entry in ENTRIES}
    if unknown:
        parser.error(f"no picture is called {', '.join(unknown)}")
    torch.manual_seed(0)
    PICTURES.mkdir(exist_ok=True)
    for entry in ENTRIES:
        if not chosen.names or entry.name in chosen.names:
            size = draw_entry(entry, chosen.png)
            sys.stdout.write(f"{entry.name}: {size:,} bytes\n")
    (DOCS / "gallery.md").write_text(page(), encoding="utf-8")


def draw_entry(entry: Entry, png: Path | None) -> int:
    model, inputs = entry.make()
    trace = endoscope.trace(model, inputs, save="none")
    path = PICTURES / f"{entry.name}.svg"
    trace.draw(path, **entry.options)
    path.write_text(smaller(path.read_text(encoding="utf-8")), encoding="utf-8")
    if png:
        trace.draw(png / f"{entry.name}.png", **entry.options)
    size = path.stat().st_size
    if size > LARGEST:
        sys.stdout.write(f"{entry.name} is larger than {LARGEST:,} bytes; draw less of it\n")
    return size


def smaller(svg: str) -> str:
    """The same picture without tooltips and with whole coordinates."""
    svg = re.sub(r"<title>.*?</title>\n?", "", svg, flags=re.DOTALL)
    return re.sub(r"(\d)\.\d(?=[ \"LC])", r"\1", svg)


def page() -> str:
    parts = [HEAD]
    for entry in ENTRIES:
        parts.append(
            f"\n## {entry.title}\n\n{entry.text} `{entry.call}`\n\n![{entry.title}](gallery/{entry.name}.svg)\n"
        )
    return "".join(parts)


if __name__ == "__main__":
    main()
