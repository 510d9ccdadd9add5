"""`endoscope show`: the page."""

import argparse
import gc
import os

SUMMARY = "show recordings, or a trace, as a page in the browser"


def add_options(parser: argparse.ArgumentParser) -> None:
    """What to show, and where."""
    parser.add_argument(
        "path",
        metavar="PATH",
        nargs="?",
        default="runs",
        help="a trial, a folder, or a saved trace (default: runs)",
    )
    parser.add_argument("--step", type=int, metavar="N", help="open the graph of the recorded step nearest to N")
    parser.add_argument("--port", type=int, help="0: any that is free (default: the first free one from 6280 on)")
    parser.add_argument("--host", default="127.0.0.1", help="another address makes it reachable from other machines")
    parser.add_argument("--open", action="store_true", help="open the browser, too")
    parser.add_argument("--views", metavar="FILE", help="Python file with views of your own")


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl+C."""
    from endoscope.errors import BadArgument
    from endoscope.query import places
    from endoscope.server import launch
    from endoscope.server.access import Access

    if not options.views:
        # Nothing of ours computes with large matrices: numpy would start a thread per core in vain, and take its time.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

    if options.step is not None and places.is_trace(options.path):
        raise BadArgument(f"{options.path} is a trace of one forward pass, which has no step. Leave --step out.")
    at = "" if options.step is None else f"#v=1&tab=graph&step={options.step}"

    def announce(address: str) -> None:
        print(f"Endoscope shows {options.path} at  {address}{at}", flush=True)
        if places.is_to_come(options.path):
            print(f"{places.why_nothing(options.path)}", flush=True)
            print("The page waits, and shows the first trial as soon as it begins.", flush=True)
        print("Press Ctrl+C to stop.", flush=True)

    access = Access.of_host(options.host)
    asked = {"port": options.port, "access": access, "views": options.views, "browser": options.open and not at}
    gc.disable()  # while modules are imported and a recording is opened, nothing becomes garbage
    try:
        viewer = launch.start(options.path, **asked, announce=announce)
    except KeyboardInterrupt:  # the address stands there already, and somebody has thought better of it
        return 0
    finally:
        gc.enable()
    if options.open and at:
        import webbrowser

        webbrowser.open(viewer.address + at)
    gc.freeze()  # what is there now stays: no collection looks through it again
    viewer.wait()
    return 0
