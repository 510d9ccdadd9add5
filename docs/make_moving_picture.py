"""Take the moving picture of README: `docs/first_look.webp`, four scenes of the real page.

    endoscope demo                                        records what the picture shows, if that is not done yet
    python docs/make_moving_picture.py [runs/demo] [FILE]  needs playwright and Chromium

finding ─► node ─► sample ─► line: each scene is an address of the page and a caption.
"""

from __future__ import annotations

import argparse
import io
import shutil
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from make_tutorial import STEP, wait_for_findings, when_still, without_guide
from PIL import Image
from playwright.sync_api import Page, sync_playwright

import endoscope

FILE = Path(__file__).parent / "first_look.webp"
LARGEST = 2_000_000  # bytes
SIZE = (1440, 810)
SCENE_MS, STEP_MS, STEPS = 3200, 80, 3  # how long a scene stays, and how one turns into the next
NODE = "answer.leaky_relu_2"
FOUND = {"trials": "suspect", "trial": "suspect", "type": "long sequences", "step": STEP, "node": NODE, "pass": 9}
FINDING = {"finding": f"asymmetric_range@{NODE}"}
CAPTION = """text => {
    const box = document.createElement("div");
    box.textContent = text;
    box.style.cssText = "position: fixed; left: 50%; bottom: 28px; transform: translateX(-50%); z-index: 999;" +
        "padding: 10px 22px; border-radius: 8px; background: #111d; color: white; font: 600 20px system-ui, sans-serif";
    document.body.append(box);
}"""
BELOW = FOUND | FINDING | {"heat.statistic": "q01", "series.statistic": "q01"}
SCENES: list[tuple[str, dict[str, Any]]] = [
    ("1  What looks wrong, what it may come from, what to try", FOUND | FINDING | {"tab": "findings"}),
    ("2  Where it begins: this node, and its statistics over training", BELOW),
    ("3  One sample, against the batch", FOUND | {"sample": 3}),
    ("4  The cause, in your code: network.py:32", BELOW),
]
#: In the last scene, what is written in the code is framed.
FRAME = """() => [...document.querySelectorAll("*")]
    .filter(one => !one.children.length && one.textContent === "network.py:32")
    .forEach(one => { one.style.outline = "3px solid #c40"; one.style.outlineOffset = "4px"; })"""


def scene(page: Page, server: str, caption: str, address: dict[str, Any]) -> Image.Image:
    """The page at this address, with a caption on it."""
    page.goto("about:blank")  # a new address after the # alone would not load the page again
    page.goto(f"{server}#{urlencode({'v': 1, 'tab': 'graph'} | address)}")
    page.wait_for_function("window.__endoscope !== undefined")
    page.evaluate("window.__endoscope.settled()")
    page.wait_for_function("!document.body.innerText.includes('Loading')")
    page.evaluate(CAPTION, caption)
    if caption.endswith("network.py:32"):
        page.evaluate(FRAME)
    return Image.open(io.BytesIO(when_still(page))).convert("RGB")


def main() -> None:
    parser = argparse.ArgumentParser(description="Take the moving picture of README.")
    parser.add_argument("path", nargs="?", default="runs/demo", help="what `endoscope demo` has recorded")
    parser.add_argument("file", nargs="?", default=FILE, type=Path, help="where the picture is written")
    options = parser.parse_args()
    viewer = endoscope.show(options.path, port=0)
    wait_for_findings(viewer.address)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        size = {"width": SIZE[0], "height": SIZE[1]}
        page = without_guide(browser.new_page(viewport=size, device_scale_factor=1))
        shown = [scene(page, viewer.address, *one) for one in SCENES]
        browser.close()
    viewer.close()
    pictures, lasting = [], []
    for now, following in zip(shown, [*shown[1:], shown[0]], strict=True):
        fading = [Image.blend(now, following, number / STEPS) for number in range(1, STEPS)]
        pictures += [now, *fading]
        lasting += [SCENE_MS, *[STEP_MS] * len(fading)]
    first, *others = pictures
    first.save(options.file, save_all=True, append_images=others, duration=lasting, loop=0, quality=75, kmax=1)
    size = options.file.stat().st_size
    sys.stdout.write(f"{options.file}  {size / 1000:.0f} kB\n")
    if size > LARGEST:
        sys.exit(f"larger than {LARGEST} bytes")


if __name__ == "__main__":
    main()
