"""One process of a job of two pipeline stages: small trainings, each without and with Endoscope.

torchrun … pipeline_jobs.py FOLDER SCHEDULE …   FOLDER/SCHEDULE/rank-0.pt   what plain hooks have seen
                                                FOLDER/SCHEDULE/runs/trial  the recording
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

import endoscope
from tests.end_to_end.rank_jobs import Results, look_at, whole

STEPS = 3
MICRO_BATCHES = 2
SCHEDULES: dict[str, Any] = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}


class First(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(5, 6)
        self.act = nn.Tanh()

    def forward(self, x: torch.Tensor) -> Any:
        return self.act(self.embed(x))


class Last(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(6)
        self.head = nn.Linear(6, 2)

    def forward(self, x: torch.Tensor) -> Any:
        return self.head(self.norm(x))


def train(schedule: str, folder: Path, *, is_recorded: bool) -> dict[str, Any]:
    rank = dist.get_rank()
    torch.manual_seed(rank)
    model = First() if rank == 0 else Last()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    run = None
    if is_recorded:
        run = endoscope.Run(folder / "runs", trial="trial", when=1, strict=True)
        run.watch(model, optimizer)
    stage = PipelineStage(model, rank, 2, torch.device("cpu"))
    pipeline = SCHEDULES[schedule](stage, MICRO_BATCHES, loss_fn=nn.functional.mse_loss)
    generator = torch.Generator().manual_seed(1)
    results: Results = {}
    if run is None:
        look_at(model, results)
    seen: dict[str, Any] = {"results": results, "gradients": [], "losses": []}
    for _ in range(STEPS):
        x, y = torch.randn(8, 5, generator=generator), torch.randn(8, 2, generator=generator)
        if rank == 0:
            pipeline.step(x)
        else:
            losses: list[torch.Tensor] = []
            pipeline.step(target=y, losses=losses)
            seen["losses"] += [loss.item() for loss in losses]
        seen["gradients"].append({name: whole(p.grad) for name, p in model.named_parameters()})
        optimizer.step()
        optimizer.zero_grad()
    seen["end"] = {name: whole(p) for name, p in model.named_parameters()}
    if run is not None:
        run.close()
    return seen


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for schedule in sys.argv[2:]:
        folder = Path(sys.argv[1], schedule)
        folder.mkdir(parents=True, exist_ok=True)
        oracle = train(schedule, folder, is_recorded=False)
        oracle["recorded"] = train(schedule, folder, is_recorded=True)
        torch.save(oracle, folder / f"rank-{dist.get_rank()}.pt")
    dist.destroy_process_group()
