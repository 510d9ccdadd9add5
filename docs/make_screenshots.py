"""Take a picture of every tab, at two sizes, light and dark, to be looked at critically.

    python docs/make_screenshots.py FOLDER RECORDING [RECORDING…]      needs playwright and Chromium

    python docs/make_screenshots.py FOLDER --traces resnet18 gpt2      of traces of these networks of the gallery

A picture is called `recording-tab-width-scheme.png`. `--tabs`, `--widths` and `--schemes` take fewer of them.

`docs/page/trace.png` is that of `lstm` with `--address "trace.rolled=1&heat.statistic=std&node=mul_3_14&pass=3"`.
`docs/page/graph.png` and `compare.png` are of what `endoscope demo` records, with `--address` set to
`trials=suspect,repaired&trial=suspect&type=long+sequences&step=207&pass=9` and, for the graph,
`&node=answer.linear_2&of=gradient:final+loss`, for Compare `&node=answer&b.trial=repaired`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from itertools import product
from pathlib import Path
from urllib.parse import urlencode

import gallery_models
from make_tutorial import shrink, wait_for_findings, without_guide
from playwright.sync_api import Page, sync_playwright

import endoscope

TABS = ("overview", "layers", "graph", "metrics", "compare", "network", "notes", "views", "run", "findings")
HEIGHTS = {1280: 800, 1920: 1080}
SCHEMES = ("light", "dark")
STILL_MS = 400  # for a view of the user's, which is a page in the page


def main() -> None:
    parser = argparse.ArgumentParser(description="Take a picture of every tab.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("recordings", nargs="*", type=Path)
    parser.add_argument("--traces", nargs="+", default=[], help="names of functions in gallery_models.py")
    parser.add_argument("--tabs", nargs="+", default=TABS, choices=TABS)
    parser.add_argument("--widths", nargs="+", type=int, default=tuple(HEIGHTS), choices=HEIGHTS)
    parser.add_argument("--schemes", nargs="+", default=SCHEMES, choices=SCHEMES)
    parser.add_argument("--views", type=Path, help="as for `endoscope show`")
    parser.add_argument("--address", default="", help="more of the page's address, such as heat.statistic=std")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for recording in options.recordings:
            viewer = endoscope.show(recording, port=0, views=options.views)
            wait_for_findings(viewer.address)
            for width, scheme in product(options.widths, options.schemes):
                size = {"width": width, "height": HEIGHTS[width]}
                page = without_guide(browser.new_page(viewport=size, color_scheme=scheme))
                for tab in options.tabs:
                    file = options.folder / f"{recording.name}-{tab}-{width}-{scheme}.png"
                    _take(page, f"{viewer.address}#{urlencode({'v': 1, 'tab': tab})}&{options.address}", file)
                page.close()
            viewer.close()
        for name in options.traces:
            model, inputs = getattr(gallery_models, name)()
            viewer = endoscope.trace(model, inputs).show(port=0)
            for width, scheme in product(options.widths, options.schemes):
                page = browser.new_page(viewport={"width": width, "height": HEIGHTS[width]}, color_scheme=scheme)
                file = options.folder / f"trace-{name}-{width}-{scheme}.png"
                _take(page, f"{viewer.address}#v=1&{options.address}", file)
                page.close()
            viewer.close()
        browser.close()


def _take(page: Page, address: str, file: Path) -> None:
    """Go to the address, wait until everything is drawn, write the file."""
    page.goto("about:blank")  # a new address after the # alone would not load the page again
    page.goto(address)
    page.wait_for_function("window.__endoscope !== undefined")
    page.evaluate("window.__endoscope.settled()")
    page.wait_for_function("!document.body.innerText.includes('Loading')")
    page.wait_for_timeout(STILL_MS)
    page.screenshot(path=file)
    shrink(file)
    sys.stdout.write(f"{file.name}\n")


if __name__ == "__main__":
    main()
