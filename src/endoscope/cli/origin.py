"""`endoscope origin`: where NaN, infinity or something unusual begins in a recorded trial."""

from __future__ import annotations

import argparse

_NOTHING_UNUSUAL = (
    "Nothing that was recorded looks unusual there. What an operation makes and the next module absorbs is seen in "
    "recordings of every operation only (`run.watch(model, what='*')`), or in a trace of the batch"
)

_NOT_EXACT = (
    "Where it says `or what is before it`, or `between`, the step was not seen operation by operation. "
    "`run.watch(model, what='*')` records every operation of each recorded step."
)

_FROM_OUTSIDE = ("input", "target", "constant")
_MADE_BEFORE = (
    "It came in from outside of the model. If your code computes it, put `with run.step():` around the whole step: "
    "then what is computed before the model is called is seen, too."
)

SUMMARY = "say where NaN, infinity or something unusual begins"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Which trial, and what to ask of it."""
    parser.add_argument("path", metavar="DIR", help="a recorded trial, or a folder with one")
    parser.add_argument("--node", metavar="NODE", help="the node from which to look back")
    parser.add_argument("--step", metavar="N", type=int, help="at this step")
    parser.add_argument("--sample", metavar="N", type=int, help="the number of a sample in the batch")
    parser.add_argument("--of", metavar="OF", default="value", help="value (default), or gradient:<loss>")
    parser.add_argument("--json", action="store_true", help="print a list of objects")


def run(options: argparse.Namespace) -> int:
    """One line for each origin, the first in order of computation first."""
    import json

    import endoscope

    found = endoscope.origin(options.path, options.node, step=options.step, sample=options.sample, of=options.of)
    if options.json:
        print(json.dumps([one.to_dict() for one in found], indent=2))
    elif found:
        print("\n".join(map(str, found)))
        if not all(one.exact for one in found):
            print(_NOT_EXACT)
        elif found[0].operation in _FROM_OUTSIDE:
            print(_MADE_BEFORE)
    else:
        asked = options.node is not None or options.step is not None or options.sample is not None
        print(f"{_NOTHING_UNUSUAL if asked else 'Everything that was recorded is finite'}: {options.path}.")
    return 0
