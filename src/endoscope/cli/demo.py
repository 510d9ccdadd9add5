"""`endoscope demo`: trace a small model, show what was seen, and prove it.

The environment variable DEMO_SERVE=0 asks the demo to end instead of serving a page. It already ends by
itself, so the variable changes nothing yet; scripts that set it keep working.
"""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

SUMMARY = "trace a small model, print it and prove it"


def add_options(parser: argparse.ArgumentParser) -> None:
    """The demo has no options."""


def run(options: argparse.Namespace) -> int:
    """Trace, print, prove; the exit code says whether the proof holds."""
    import endoscope

    trace_function = endoscope.trace  # before torch itself, so that a missing torch gets our message
    import torch

    torch.manual_seed(0)
    model, x = _tiny_recurrent_network(), torch.randn(2, 4)

    _title("Every operation of one forward pass: trace = endoscope.trace(model, x)")
    trace = trace_function(model, x)
    print(trace)

    _title('One operation: trace["linear_1"]')
    print(trace["linear_1"])

    _title('The second use of a layer that is used three times: trace["linear_2:2"]')
    print(trace["linear_2:2"])

    _title("The proof: endoscope.validate(model, x)")
    report = endoscope.validate(model, x)
    print(report)
    return 0 if report else 1


def _tiny_recurrent_network() -> "nn.Module":
    """One layer used three times, one in-place operation, one residual: small, but not a plain chain."""
    import torch
    from torch import nn

    class TinyRecurrentNetwork(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.Linear(4, 8)
            self.step = nn.Linear(8, 8)
            self.readout = nn.Linear(8, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            state: torch.Tensor = torch.relu(self.encoder(x))
            for _ in range(3):
                state = state + torch.tanh(self.step(state))
            state.mul_(0.5)
            return torch.softmax(self.readout(state), dim=-1)

    return TinyRecurrentNetwork()


def _title(text: str) -> None:
    print(f"\n── {text}\n")
