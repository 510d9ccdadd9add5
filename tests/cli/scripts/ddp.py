"""Two ranks, as torchrun starts them."""

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
torch.manual_seed(5)
net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))
ddp = nn.parallel.DistributedDataParallel(net)
opt = torch.optim.SGD(ddp.parameters(), lr=0.1)
torch.manual_seed(dist.get_rank())
for _ in range(12):
    opt.zero_grad()
    nn.functional.cross_entropy(ddp(torch.randn(16, 6)), torch.randint(0, 2, (16,))).backward()
    opt.step()
print(f"rank {dist.get_rank()}: {float(sum(p.detach().sum() for p in net.parameters())):.9f}", flush=True)
dist.destroy_process_group()
