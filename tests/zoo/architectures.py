"""The registry: every architecture of the zoo, by name."""

from __future__ import annotations

from .audio import AUDIO
from .building import Architecture
from .detection import DETECTION
from .multimodal import MULTIMODAL
from .series import SERIES
from .text import TEXT
from .vision import VISION

ALL = TEXT + VISION + DETECTION + AUDIO + MULTIMODAL + SERIES

ARCHITECTURES: dict[str, Architecture] = {architecture.name: architecture for architecture in ALL}

# Name -> why `endoscope.validate` cannot hold for it. The tests expect these to fail, and the table of the
# documentation shows the reason; a row that starts to hold must be taken out.
KNOWN_LIMITS: dict[str, str] = {}
