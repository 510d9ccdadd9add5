"""Keep the values, and the gradients, of one layer only: the rest costs no memory."""

from collections import OrderedDict

import torch
from torch import nn

import endoscope

torch.manual_seed(0)
model = nn.Sequential(
    OrderedDict(
        encoder=nn.Linear(16, 32),
        relu=nn.ReLU(),
        middle=nn.Linear(32, 32),
        gelu=nn.GELU(),
        head=nn.Linear(32, 4),
    )
)
x, target = torch.randn(8, 16), torch.randint(4, (8,))

# The general form goes around any code: several calls, keyword arguments, the backward pass.
with endoscope.tracing(model, save="middle", gradients=True) as trace:
    loss = nn.functional.cross_entropy(model(x), target)
    loss.backward()

# The structure is complete all the same: every operation is there with its shape, parents and source line.
for op in trace.ops:
    print(f"{op.label:22} {op.type:15} {tuple(op.shape)}")

middle = trace["middle"]
print("mean activation of the middle layer:", middle.value.mean().item())
print("norm of the gradient that reached it:", middle.gradient.norm().item())
assert middle.value.shape == middle.gradient.shape == (8, 32)

# A pattern keeps all operations of one type; a list combines patterns; "none" keeps the structure alone.
linears = endoscope.trace(model, x, save="type:linear")
print("spread of each linear layer:", [linears[f"linear_{n}"].value.std().item() for n in (1, 2, 3)])
print("structure only:", len(endoscope.trace(model, x, save="none")), "operations")
