"""Writes steps as fast as it can, until it is killed; says on its output which steps it has finished.

Usage: endless_writer.py <root> [<max_bytes>|0] [resume]
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from endoscope.store.writer import TrialWriter  # noqa: E402
from tests.store.made_up import step_record  # noqa: E402

if __name__ == "__main__":
    max_bytes = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    writer = TrialWriter.create(sys.argv[1], "trial", max_bytes=max_bytes or None, resume=sys.argv[3:] == ["resume"])
    print(writer.name, flush=True)
    for number in range(writer.next_step, 1_000_000):
        writer.write_step(step_record(writer, number))
        print(number, flush=True)
