"""How much memory a second run of a step would take, and how much there is."""

from __future__ import annotations

import os

import torch

from endoscope.recording.tracer import StepRecorder

_SHARE = 0.5  # of what is free may be used
_COPIES = 2  # values, and as much for their gradients


def shortage(recorder: StepRecorder) -> str:
    """Why a second run is not attempted; "" if there is room for it."""
    needed: dict[torch.device, int] = {}
    device = torch.device("cpu")
    for raw in recorder.nodes:
        device = raw[17] if len(raw) > 17 and raw[17] is not None else device  # most lie where the one before lay
        if len(raw) > 16 and raw[15] is not None:
            needed[device] = needed.get(device, 0) + _COPIES * raw[15].numel() * raw[16].itemsize
    for where, count in needed.items():
        free = _free_bytes(where)
        if free is not None and count > _SHARE * free:
            return f"a second run would take about {count / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free on {where}"
    return ""


def _free_bytes(device: torch.device) -> int | None:
    """None if it cannot be told."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type != "cpu":
        return None
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
