"""Pictures against numbers that are known: what is drawn is read back, pixel by pixel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Locator, Page, expect
from torch import nn

import endoscope
from tests.browser.conftest import Serve, Visit, settle
from tests.browser.helpers import look, number, tensor

ROWS, COLUMNS = 64, 64
BARS = 40

TENSORS: dict[str, torch.Tensor] = {}


def made() -> dict[str, torch.Tensor]:
    """Tensors whose pictures everybody can draw in the head."""
    if not TENSORS:
        chance = torch.Generator().manual_seed(5)
        even = (torch.arange(ROWS * COLUMNS) + 0.5) / (ROWS * COLUMNS)  # without chance, so that counting is exact
        mixed = even[torch.randperm(len(even), generator=chance)].reshape(ROWS, COLUMNS)
        bell = torch.erfinv(2 * mixed - 1) * 2**0.5
        outlier = bell.clone()
        outlier[3, 4] = 1000.0
        nothing = torch.full((ROWS, COLUMNS), float("nan"))
        TENSORS.update(
            bell=bell, uniform=mixed, constant=torch.full((ROWS, COLUMNS), 3.0),
            outlier=outlier, integers=torch.randint(0, 4, (ROWS, COLUMNS), generator=chance), nothing=nothing,
            ramp=torch.linspace(0, 1, COLUMNS).repeat(ROWS, 1), half=bell.relu(),
        )  # fmt: skip
    return TENSORS


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("known") / "runs"
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = endoscope.Run(root, trial="known", when=1, keep=4)
    run.watch(model, optimizer)
    for _ in range(6):
        with run.step() as step:
            for name, values in made().items():
                step.tag(name, values, kind="input")
            loss = model(torch.ones(ROWS, 4)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step.metric("loss", loss)
    run.close()
    return root


@pytest.fixture
def show(known: Path, serve: Serve, visit: Visit, complaints: list[str]) -> Iterator[Any]:
    served = serve(known)

    def go(name: str, **state: object) -> Page:
        return visit(look(served.address, tab="graph", node=name, order="n", **state))

    yield go
    # Reading a canvas back twice is what these tests are for.
    complaints[:] = [one for one in complaints if "willReadFrequently" not in one]


def expected_range(values: np.ndarray[Any, Any]) -> tuple[float, float]:
    """From the 1st to the 99th percentile, 12 % wider, not beyond the extremes."""
    low, high = np.quantile(values, [0.01, 0.99])
    room = 0.06 * (high - low)
    return max(values.min(), low - room), min(values.max(), high + room)


HEIGHTS = """(canvas, bars) => {
  const context = canvas.getContext("2d");
  const { width, height } = canvas;
  const pixels = context.getImageData(0, 0, width, height).data; // all at once
  const probe = document.createElement("span");
  probe.style.color = "var(--side-a)";
  document.body.append(probe);
  const [r, g, b] = getComputedStyle(probe).color.match(/\\d+/g).map(Number);
  probe.remove();
  const at = (x, y) => 4 * (y * width + x);
  const is = (i) => Math.abs(pixels[i] - r) + Math.abs(pixels[i + 1] - g) + Math.abs(pixels[i + 2] - b) < 12;
  return Array.from({ length: bars }, (_, bar) => {
    const x = Math.floor(((bar + 0.4) / bars) * width);
    let count = 0;
    for (let y = 0; y < height; y++) if (is(at(x, y))) count++;
    return count;
  });
}"""


def histogram(page: Page) -> Locator:
    return tensor(page).get_by_role("img", name=re.compile("^Histogram of"))


def drawn(page: Page, bars: int = BARS) -> np.ndarray[Any, Any]:
    """Heights of bars, the highest is one."""
    heights = np.array(histogram(page).evaluate(HEIGHTS, bars), float)
    heights[heights <= 2] = 0  # one element in a million is drawn as a line
    return heights / heights.max()


def bar_below(page: Page, bar: int, bars: int = BARS) -> tuple[float, float, float]:
    """Lower end, upper end and share of a bar, as the page says them when one points at it."""
    box = histogram(page).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + (bar + 0.5) / bars * box["width"], box["y"] + box["height"] / 2)
    region = tensor(page).get_by_role("region", name="histogram", exact=True)
    text = region.get_by_role("status").filter(has_text="…").inner_text()
    ends, share = text.split(":")
    low, high = (number(end) for end in ends.split("…"))
    return low, high, number(share) / 100


@pytest.mark.parametrize("name", ["bell", "uniform", "outlier"])
def test_a_histogram_is_what_counting_says(show: Any, name: str) -> None:
    page = show(name)
    values = made()[name].numpy()
    low, high = map(float, expected_range(values))
    counts, _ = np.histogram(values, BARS, (low, high))
    heights = drawn(page)
    assert np.abs(heights - counts / counts.max()).max() < 0.12
    assert np.abs(heights - counts / counts.max()).mean() < 0.05
    for bar in (3, 20, 36):
        from_, to, share = bar_below(page, bar)
        width = (high - low) / BARS
        assert from_ == pytest.approx(low + bar * width, abs=0.02 * (high - low))
        assert to == pytest.approx(low + (bar + 1) * width, abs=0.02 * (high - low))
        assert share == pytest.approx(counts[bar] / values.size, abs=0.004)


def test_a_bell_has_one_hump(show: Any) -> None:
    heights = drawn(show("bell"))
    smooth = np.convolve(heights, np.ones(5) / 5, "valid")
    peak = int(smooth.argmax())
    assert 14 < peak < 22
    assert (np.diff(smooth[: peak + 1]) > -0.06).all() and (np.diff(smooth[peak:]) < 0.06).all()


def test_an_outlier_is_said_and_does_not_flatten_the_rest(show: Any) -> None:
    page = show("outlier")
    assert (drawn(page) > 0.3).sum() > 12
    expect(tensor(page)).to_contain_text(re.compile("up to 1(,?000|e3)"))


def test_a_constant_is_one_bar(show: Any) -> None:
    page = show("constant")
    heights = drawn(page)
    assert (heights > 0).sum() == 1
    expect(tensor(page)).to_contain_text("all elements are 3")


def test_whole_numbers_have_a_bar_each(show: Any) -> None:
    page = show("integers")
    values = made()["integers"].numpy()
    counts = np.bincount(values.reshape(-1), minlength=4)
    assert drawn(page, 4) == pytest.approx(counts / counts.max(), abs=0.03)
    low, high, share = bar_below(page, 2, 4)
    assert (low, high) == (1.5, 2.5) and share == pytest.approx(counts[2] / values.size, abs=0.001)


def test_exact_zeros_are_said_and_not_drawn(show: Any) -> None:
    page = show("half")
    values = made()["half"].numpy()
    share = (values == 0).mean()
    found = re.search(r"([\d.]+) % are exactly zero and not in the bars", tensor(page).inner_text())
    assert found and float(found[1]) / 100 == pytest.approx(share, abs=0.005)
    positive, _ = np.histogram(values[values > 0], BARS, (0, expected_range(values)[1]))
    assert np.abs(drawn(page) - positive / positive.max()).mean() < 0.12


def test_nothing_but_nan_is_a_sentence(show: Any) -> None:
    page = show("nothing")
    expect(tensor(page)).to_contain_text("No element is finite")
    assert histogram(page).count() == 0


def test_log_heights_on_request(show: Any) -> None:
    page = show("bell")
    straight = drawn(page)
    tensor(page).get_by_role("radio", name="log heights").first.check(force=True)
    settle(page)
    assert drawn(page)[2] > straight[2] + 0.2
    assert "heights=log" in page.url


CELLS = """(canvas, columns) => {
  const context = canvas.getContext("2d");
  const { width, height } = canvas;
  const row = context.getImageData(0, 6, width, 1).data;
  return Array.from({ length: columns }, (_, column) => {
    const at = 4 * Math.floor(((column + 0.5) / columns) * width);
    return [row[at], row[at + 1], row[at + 2]];
  });
}"""


def cells(page: Page) -> np.ndarray[Any, Any]:
    canvas = tensor(page).get_by_role("application", name=re.compile("^Raw values")).first
    element = canvas if canvas.evaluate("(e) => e.tagName") == "CANVAS" else canvas.locator("canvas")
    return np.array(element.evaluate(CELLS, COLUMNS), float)


def test_a_ramp_gets_darker_cell_by_cell(show: Any) -> None:
    colours = cells(show("ramp"))
    lightness = colours @ np.array([0.2126, 0.7152, 0.0722])
    assert (np.diff(lightness) <= 0.5).all() and lightness[0] - lightness[-1] > 150


def test_equal_numbers_have_one_colour(show: Any) -> None:
    colours = cells(show("constant"))
    assert np.abs(colours - colours[0]).max() < 2


def test_nan_has_the_colour_of_nan(show: Any) -> None:
    colours = cells(show("nothing"))
    assert np.abs(colours - np.array([0xD1, 0x00, 0x6C])).max() < 3
