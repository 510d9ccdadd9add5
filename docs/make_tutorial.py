"""Take the pictures of `docs/tutorial.md`: `docs/tutorial/*.png`.

    endoscope demo                                    records what the pictures show, if that is not done yet
    python docs/make_tutorial.py [runs/demo] [NAME…]  all pictures, or those named; needs playwright and Chromium

The page keeps everything it shows in its address, so a picture is an address and a size.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

from playwright.sync_api import Page, sync_playwright

import endoscope
import endoscope.demo

DOCS = Path(__file__).parent
PICTURES = DOCS / "tutorial"
LARGEST = 150_000  # bytes
COLORS = 255  # of a picture whose file would be larger otherwise
STILL_MS = 1500
STEP = 207  # a recorded one, with long sequences


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: what the address says, and how large the window is."""

    name: str
    address: dict[str, Any]
    size: tuple[int, int] = (1280, 800)


BOTH = {"trials": "suspect,repaired", "trial": "suspect"}
SMOOTH = {"tab": "metrics", "metrics.smoothing": 0.9}
SUSPECT = {"trials": "suspect", "trial": "suspect", "type": "long sequences", "step": STEP}
VIEW = SUSPECT | {"tab": "views"}
FOUND = {"trials": "suspect", "trial": "suspect", "step": 0, "node": "answer.leaky_relu_2", "heat.statistic": "q01",
         "series.statistic": "q01", "finding": "asymmetric_range@answer.leaky_relu_2"}  # fmt: skip

ALL = [
    Picture("metrics", SMOOTH | {"trials": "suspect", "trial": "suspect"}, (1280, 440)),
    Picture("graph", SUSPECT | {"node": "probability", "pass": 9}),
    Picture("said", VIEW | {"view": "what_was_said", "node": "probability", "sample": 3}, (1280, 560)),
    Picture("answer", SUSPECT | {"node": "answer", "pass": 9}),
    Picture("linear", SUSPECT | {"node": "answer.linear_2", "pass": 9, "series.statistic": "q01"}, (1280, 1000)),
    Picture("gradients", SUSPECT | {"node": "answer.linear_2", "pass": 9, "of": "gradient:final loss",
                                    "heat.statistic": "abs_mean"}),
    Picture("by_sum", VIEW | {"view": "answer_by_sum", "node": "answer"}, (1280, 700)),
    Picture("repaired", SMOOTH | BOTH, (1280, 440)),
    Picture("findings", FOUND, (1440, 800)),
    Picture("compare", SUSPECT | BOTH | {"tab": "compare", "node": "answer", "pass": 9, "b.trial": "repaired"}),
]  # fmt: skip


def wait_for_findings(server: str) -> None:
    """Until all trials have been checked: the page then knows at once what looks wrong. `server` has the token."""
    home, _, token = server.partition("?token=")

    def asked(path: str) -> Request:
        return Request(f"{home}api/{path}", headers={"Authorization": f"Bearer {token}"})

    with urlopen(asked("catalog")) as answer:
        trials = [trial["name"] for trial in json.load(answer)["trials"]]
    while trials:
        with urlopen(asked(f"trials/{quote(trials[0])}/findings")) as answer:
            trials = trials[1:] if not json.load(answer)["checking"] else trials
        time.sleep(0.2)


def without_guide(page: Page) -> Page:
    """As for somebody who has been here before: a first visit begins with a guide over the page."""
    page.add_init_script("localStorage.setItem('endoscope-guide', 'seen')")
    return page


def take(page: Page, server: str, picture: Picture) -> Path:
    """Go to the address, wait until everything is drawn, write the file."""
    page.set_viewport_size({"width": picture.size[0], "height": picture.size[1]})
    page.goto("about:blank")  # a new address after the # alone would not load the page again
    page.goto(f"{server}#{urlencode({'v': 1, 'tab': 'graph'} | picture.address)}")
    page.wait_for_function("window.__endoscope !== undefined")
    page.evaluate("window.__endoscope.settled()")
    page.wait_for_function("!document.body.innerText.includes('Loading')")
    file = PICTURES / f"{picture.name}.png"
    file.write_bytes(when_still(page))
    shrink(file)
    return file


def when_still(page: Page) -> bytes:
    """The picture once it has stopped changing: a view of the user's is a page in the page, and comes later."""
    before, now = b"", page.screenshot()
    while now != before:
        page.wait_for_timeout(STILL_MS)
        before, now = now, page.screenshot()
    return now


def shrink(file: Path) -> None:
    """Fewer colours, if the file is still large: a page has few, and nobody sees the difference."""
    from PIL import Image

    picture = Image.open(file).convert("RGB")
    picture.save(file, optimize=True)
    if file.stat().st_size > LARGEST:
        few = picture.quantize(COLORS, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
        few.save(file, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Take the pictures of the tutorial.")
    parser.add_argument("path", nargs="?", default="runs/demo", help="what `endoscope demo` has recorded")
    parser.add_argument("names", nargs="*", help="only these pictures")
    options = parser.parse_args()
    wanted = [picture for picture in ALL if not options.names or picture.name in options.names]
    PICTURES.mkdir(exist_ok=True)
    viewer = endoscope.show(options.path, port=0, views=Path(endoscope.demo.__file__).with_name("views.py"))
    wait_for_findings(viewer.address)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = without_guide(browser.new_page(device_scale_factor=1))
        for picture in wanted:
            file = take(page, viewer.address, picture)
            sys.stdout.write(f"{file.name}  {file.stat().st_size / 1000:.0f} kB\n")
        browser.close()
    viewer.close()
    too_large = [file.name for file in PICTURES.glob("*.png") if file.stat().st_size > LARGEST]
    if too_large:
        sys.exit(f"larger than {LARGEST} bytes: {', '.join(too_large)}")


if __name__ == "__main__":
    main()
