"""What if? Switch off one hidden unit after the other and see which output it carries."""

import torch
from torch import nn

import endoscope
from endoscope import edits

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
x = torch.rand(16, 3)

# Train it a little, with one unit switched off all the time: it learns without that unit.
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
with endoscope.editing(model, {"1": edits.zero(units=[4])}):
    for _ in range(200):
        optimizer.zero_grad()
        wanted = torch.stack([x[:, 0] + x[:, 1], x[:, 2]], dim=1)
        (model(x) - wanted).pow(2).mean().backward()
        optimizer.step()

# One trace, then one rerun for each unit: the model does not run again.
trace = endoscope.trace(model, x)
for unit in range(5):
    ablated = trace.rerun(edit={"relu_1": edits.zero(units=unit)})
    change = (ablated.result - trace.result).abs().mean(dim=0)
    print(f"without unit {unit} the outputs move by {change[0]:.2f} and {change[1]:.2f}")

print(endoscope.compare(trace, trace.rerun(edit={"relu_1": edits.mean()})))
