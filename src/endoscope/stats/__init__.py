"""Numbers about tensors: of the whole, per sample, per unit, a histogram, quantiles, singular values."""

from endoscope.stats.measuring import measure, warm
from endoscope.stats.request import Measured, Request, chosen, joined
from endoscope.stats.singular import Spectrum, spectrum

__all__ = ["Measured", "Request", "Spectrum", "chosen", "joined", "measure", "spectrum", "warm"]
