"""One process of a job of DistributedDataParallel: the same small training, healthy and with one fault each.

torchrun … rank_faults.py FOLDER FAULT …     FOLDER/FAULT is the trial
"""

from __future__ import annotations

import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import endoscope

STEPS = 14
BAD_STEP = 9
FAULTS = ("healthy", "drift", "around", "same_data", "outlier", "straggler")
DELAY_SECS = 0.2


def train(root: str, fault: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
    ddp = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    inputs = torch.randn(32 * STEPS, 6)
    data = TensorDataset(inputs, inputs.sum(1, keepdim=True))
    sampler = None if fault == "same_data" else DistributedSampler(data, seed=1)
    shuffled = torch.Generator().manual_seed(1)
    loader = DataLoader(data, batch_size=16, shuffle=sampler is None, sampler=sampler, generator=shuffled)
    is_odd = dist.get_rank() == 1
    with endoscope.Run(root, trial=fault, when=1) as run:
        run.watch(ddp, optimizer)
        for step, (x, y) in zip(range(STEPS), loader, strict=False):
            if fault == "straggler" and is_odd:
                time.sleep(DELAY_SECS)
            for number in range(2):  # micro-batches
                own, wanted = x[8 * number :][:8], y[8 * number :][:8]
                if fault == "outlier" and is_odd and (step, number) == (BAD_STEP, 1):
                    wanted = wanted * 100
                predicted = model(own) if fault == "around" else ddp(own)
                loss = nn.functional.mse_loss(predicted, wanted) / 2
                loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if fault == "drift" and is_odd:
                with torch.no_grad():
                    model[0].weight.mul_(1.001)


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for fault in sys.argv[2:]:
        train(sys.argv[1], fault)
    dist.destroy_process_group()
