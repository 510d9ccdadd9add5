"""Capture every operation of one forward pass, look around in it, and prove that it is right."""

import torch
from torch import nn

import endoscope


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 8, 3), nn.ReLU())
        self.head = nn.Linear(8, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        pooled = self.features(images).mean(dim=(2, 3))
        return self.head(pooled)


torch.manual_seed(0)
model, images = Classifier(), torch.randn(2, 1, 12, 12)

trace = endoscope.trace(model, images)
print(trace)

# One operation has several names: its short label, the address of its module, its position.
second_convolution = trace["conv2d_2"]
assert trace["features.2"] is second_convolution
print(second_convolution)

# The graph: what an operation reads, and who reads it. `mean` is called by no module of its own.
mean = trace["mean_1"]
print("mean reads", [parent.label for parent in mean.parents])
print("mean is read by", [child.label for child in mean.children])
print("mean was called at line", mean.source.line)

# Kept values are ordinary tensors.
dead = (trace["relu_2"].value == 0).float().mean()
print(f"{dead:.0%} of the second ReLU's outputs are zero")

# Is all of that true? Every operation is run again on the kept values of its parents, and more.
report = endoscope.validate(model, images)
print(report)
assert report.ok
