"""Numbers about tensors: of the whole, per sample, per unit, a histogram, quantiles, singular values."""

from endoscope.stats.answers import Answers, joined
from endoscope.stats.checksum import crc32
from endoscope.stats.copying import Copies, copy_tensors
from endoscope.stats.measuring import begin, measure, measure_part, warm
from endoscope.stats.plan import Plan, together
from endoscope.stats.progress import Progress, place_again
from endoscope.stats.request import Measured, Request, chosen
from endoscope.stats.singular import Spectrum, spectrum

__all__ = [
    "Answers", "Copies", "Measured", "Plan", "Progress", "Request", "Spectrum", "begin", "chosen", "copy_tensors",
    "crc32", "joined", "measure", "measure_part", "place_again", "spectrum", "together", "warm",
]  # fmt: skip
