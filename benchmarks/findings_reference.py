"""What do healthy trainings show? Writes the table that findings compare with: src/endoscope/findings/reference.json.

Reads recordings that `findings_suite.py --half learning --folder FOLDER` has kept: the healthy trainings and the fixed
bugs of the learning half, and nothing of the other.

    python benchmarks/findings_reference.py FOLDER
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import real_bugs
from table import print_table

import endoscope
from endoscope.findings.facts import Facts
from endoscope.findings.reference import FILE, depth_of, kind_of, quantities


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    real_bugs.load()
    runs = [folder / id / "healthy" for id in real_bugs.HEALTHY if real_bugs.half_of(id) == "learning"]
    runs += [folder / id / "fixed" for id in real_bugs.BUGS if real_bugs.half_of(id) == "learning"]
    numbers: dict[str, list[float]] = defaultdict(list)
    with np.errstate(all="ignore"):
        for path in (run for run in runs if run.is_dir()):
            facts = Facts(endoscope.open(path))
            for name, tensor, value in quantities(facts):
                kind = kind_of(facts, tensor)
                for row in (f"{name}/{kind}", f"{name}/{kind}/{depth_of(facts, tensor)}"):
                    numbers[row].append(value)
    table = {
        name: [*(float(f"{end:.4g}") for end in np.quantile(found, (0.01, 0.99))), len(found)]
        for name, found in sorted(numbers.items())
    }
    FILE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    print_table([["quantity", "1 %", "99 %", "tensors"], *([name, *map(str, row)] for name, row in table.items())])


if __name__ == "__main__":
    main()
