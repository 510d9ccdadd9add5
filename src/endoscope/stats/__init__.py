"""Numbers about tensors: of the whole, per sample, per unit, a histogram, quantiles, singular values."""

from endoscope.stats.answers import Answers, joined
from endoscope.stats.copying import copy_tensors
from endoscope.stats.measuring import measure, measure_part, warm
from endoscope.stats.request import Measured, Request
from endoscope.stats.singular import Spectrum, spectrum

__all__ = [
    "Answers", "Measured", "Request", "Spectrum", "copy_tensors", "joined", "measure",
    "measure_part", "spectrum", "warm",
]  # fmt: skip
