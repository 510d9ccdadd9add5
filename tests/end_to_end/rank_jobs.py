"""One process of a job: small trainings, divided among processes in several ways, each without and with Endoscope.

torchrun … rank_jobs.py FOLDER KIND …      FOLDER/KIND/rank-0.pt   what an oracle has seen: whole tensors
                                           FOLDER/KIND/runs/trial  the recording
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

import endoscope

STEPS = 4
WIDTH = 6


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 3 * WIDTH)
        self.act = nn.ReLU()
        self.down = nn.Linear(3 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> Any:
        return x + self.down(self.act(self.up(self.norm(x))))


class Net(nn.Module):
    """Sizes that do not divide evenly, and a parameter of which most processes have nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.inp = nn.Linear(5, WIDTH)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, x: torch.Tensor) -> Any:
        x = self.inp(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


# ---- how it is divided: each returns the model, and which of the processes see the same data -----


def replicas(net: Net) -> tuple[nn.Module, int]:
    return net, dist.get_rank()


def ddp(net: Net) -> tuple[nn.Module, int]:
    return DistributedDataParallel(net), dist.get_rank()


def fsdp(net: Net) -> tuple[nn.Module, int]:
    for block in net.blocks:
        fully_shard(block)
    return fully_shard(net), dist.get_rank()


def tp(net: Net) -> tuple[nn.Module, int]:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("tp",))
    parallelize_module(net, mesh, _plan())
    return net, 0


def sequence(net: Net) -> tuple[nn.Module, int]:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("tp",))
    plan: dict[str, Any] = {
        "inp": ColwiseParallel(output_layouts=Shard(0), use_local_output=False),
        "head": PrepareModuleInput(input_layouts=Shard(0), desired_input_layouts=Replicate(), use_local_output=True),
    }
    for n in range(2):
        plan[f"blocks.{n}.norm"] = SequenceParallel(sequence_dim=0)
        plan[f"blocks.{n}.up"] = ColwiseParallel(input_layouts=Shard(0))
        plan[f"blocks.{n}.down"] = RowwiseParallel(output_layouts=Shard(0), use_local_output=False)
    parallelize_module(net, mesh, plan)
    return net, 0


def fsdp_tp(net: Net) -> tuple[nn.Module, int]:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    parallelize_module(net, mesh["tp"], _plan())
    for block in net.blocks:
        fully_shard(block, mesh=mesh["dp"])
    return fully_shard(net, mesh=mesh["dp"]), mesh["dp"].get_local_rank()


def hsdp(net: Net) -> tuple[nn.Module, int]:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    for block in net.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(net, mesh=mesh), dist.get_rank()


def _plan() -> dict[str, Any]:
    styles = {"up": ColwiseParallel, "down": RowwiseParallel}
    return {f"blocks.{n}.{part}": style() for n in range(2) for part, style in styles.items()}


KINDS: dict[str, tuple[Callable[[Net], tuple[nn.Module, int]], int]] = {  # and micro-batches in a step
    "replicas": (replicas, 1),
    "ddp": (ddp, 1),
    "ddp-accumulation": (ddp, 2),
    "fsdp": (fsdp, 1),
    "tp": (tp, 1),
    "sequence": (sequence, 1),
    "sequence-summed": (sequence, 1),  # as docs/reference/ranks.md says
    "fsdp-tp": (fsdp_tp, 1),
    "hsdp": (hsdp, 1),
}


# ---- training ------------------------------------------------------------------------------------


def whole(tensor: Any) -> torch.Tensor:
    found: torch.Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return found.detach().clone()


Results = dict[tuple[str, str], list[torch.Tensor]]  # node, of -> what this process has, one for each step


def look_at(model: nn.Module, found: Results) -> None:
    """Note what modules return, and the last gradients of that; of a DTensor the whole."""

    def note(node: str, output: Any) -> None:
        values, gradients = (found.setdefault((node, of), []) for of in ("value", "gradient:loss"))
        place = len(values)
        values.append(whole(output))

        def heard(gradient: torch.Tensor) -> None:
            gradients[place:] = [whole(gradient)]

        output.register_hook(heard)

    for name, module in model.named_modules():
        if name and not isinstance(module, nn.ModuleList):
            module.register_forward_hook(lambda module, given, output, name=name: note(name, output))


def train(kind: str, folder: Path, *, is_recorded: bool) -> dict[str, Any]:
    """What there was: losses and final parameters, and without Endoscope whole tensors of each step."""
    divide, micro_batches = KINDS[kind]
    torch.manual_seed(0)
    model, data = divide(Net())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    run = None
    if is_recorded:
        run = endoscope.Run(folder / "runs", trial="trial", when=1, strict=True)
        run.watch(model, optimizer)
    generator = torch.Generator().manual_seed(1 + data)
    seen: dict[str, Any] = {"losses": [], "steps": [], "data": data}
    results: Results = {}
    if run is None:
        look_at(model, results)
    for _ in range(STEPS):
        before = {name: whole(p) for name, p in model.named_parameters()} if run is None else {}
        own: dict[str, torch.Tensor] = {}
        for number in range(micro_batches):
            x, y = torch.randn(8, 5, generator=generator), torch.randn(8, 1, generator=generator)
            apart = isinstance(model, DistributedDataParallel) and number < micro_batches - 1
            with model.no_sync() if apart else contextlib.nullcontext():  # type: ignore[operator]
                loss = (model(x) - y).square().mean()
                if run is None and kind.startswith("ddp"):
                    with model.no_sync():  # type: ignore[operator]
                        alone = torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
                    for (name, _), part in zip(model.named_parameters(), alone, strict=True):
                        own[name] = own[name] + part if name in own else part
                loss.backward()
            seen["losses"].append(loss.item())
        if kind == "sequence-summed":
            for p in model.parameters():
                if isinstance(p, DTensor) and isinstance(p.grad, DTensor):
                    p.grad = p.grad.redistribute(placements=p.placements)
        gradients = {name: whole(p.grad) for name, p in model.named_parameters()} if run is None else {}
        optimizer.step()
        after = {name: whole(p) for name, p in model.named_parameters()} if run is None else {}
        update = {name: after[name] - before[name] for name in before}
        seen["steps"].append({"parameter": before, "gradient": gradients, "update": update, "local_gradient": own})
        optimizer.zero_grad()
    seen["results"] = results
    seen["end"] = {name: whole(p) for name, p in model.named_parameters()}
    if run is not None:
        run.close()
    return seen


def oracles(job: Path) -> list[dict[str, Any]]:
    """What each process of a job has seen."""
    return [torch.load(path) for path in sorted(job.glob("rank-*.pt"))]


def is_summed_late(job: Path, name: str) -> bool:
    """Whether the gradient of a parameter is a summand in each process when the optimizer begins."""
    return job.name == "sequence" and ".norm." in name


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for kind in sys.argv[2:]:
        folder = Path(sys.argv[1], kind)
        folder.mkdir(parents=True, exist_ok=True)
        oracle = train(kind, folder, is_recorded=False)
        recorded = train(kind, folder, is_recorded=True)
        oracle["recorded"] = {name: recorded[name] for name in ("losses", "end")}
        torch.save(oracle, folder / f"rank-{dist.get_rank()}.pt")
    dist.destroy_process_group()
