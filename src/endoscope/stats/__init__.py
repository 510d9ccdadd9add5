"""Numbers about tensors: of the whole, per sample, per unit, a histogram, quantiles, singular values."""

from endoscope.stats.answers import Answers, joined
from endoscope.stats.checksum import crc32
from endoscope.stats.copying import Copies, copy_tensors
from endoscope.stats.measuring import measure, measure_part, warm
from endoscope.stats.plan import Plan
from endoscope.stats.request import Measured, Request, chosen
from endoscope.stats.singular import Spectrum, spectrum

__all__ = [
    "Answers", "Copies", "Measured", "Plan", "Request", "Spectrum", "chosen", "copy_tensors", "crc32", "joined",
    "measure", "measure_part", "spectrum", "warm",
]  # fmt: skip
