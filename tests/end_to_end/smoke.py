"""Whether an installed Endoscope works: run for each wheel, with nothing but the wheel installed.

python tests/end_to_end/smoke.py FOLDER    with torch: record, trace, validate; then, with or without torch: read,
                                           check, report, serve the page. FOLDER/runs must be there without torch.
"""

import importlib.util
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import endoscope


def main(folder: Path) -> None:
    package = Path(endoscope.__file__).parent
    print(f"endoscope {endoscope.__version__} in {package}, Python {sys.version.split()[0]}")
    needed = ["py.typed", "server/static/index.html", "stats/kernels.c"]
    missing = [name for name in needed if not (package / name).is_file()]
    assert not missing, f"the package lacks {missing}"
    runs = folder / "runs"
    if importlib.util.find_spec("torch"):
        record(runs)
        print(f"recorded, traced, validated; statistics by {statistics_by()}")
    look(runs)
    command(runs)
    print("read, checked, served: all is well")


def record(runs: Path) -> None:
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.Run(runs, trial="smoke", strict=True) as run:
        run.watch(model, optimizer)
        for _ in range(20):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(torch.randn(16, 6)), torch.randint(0, 3, (16,))).backward()
            optimizer.step()
            run.log({"train": {"seen": 16}})
    assert endoscope.validate(model, torch.randn(4, 6))


def statistics_by() -> str:
    from endoscope.stats import kernels

    loaded = kernels.load()
    return f"kernels for {loaded.variant}" if loaded else "torch"


def look(runs: Path) -> None:
    name = next(iter(endoscope.open(runs)))
    recording = endoscope.open(runs / name)
    assert len(recording.steps) > 3 and recording.graph(0)["nodes"]
    assert len(recording.series("0", "std").values) == len(recording.steps)
    endoscope.diagnose(runs)
    viewer = endoscope.show(runs, port=0)
    page, catalog = (fetch(f"http://127.0.0.1:{viewer.port}/{path}", viewer.token) for path in ("", "api/catalog"))
    assert b"<script" in page and name.encode() in catalog
    viewer.close()


def fetch(address: str, token: str) -> bytes:
    asked = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return bytes(answer.read())


def command(runs: Path) -> None:
    program = Path(sys.executable).with_name("endoscope.exe" if os.name == "nt" else "endoscope")
    for words in (["--version"], ["ls", str(runs)], ["report", str(runs), "-o", str(runs.parent / "report.html")]):
        subprocess.run([str(program), *words], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
