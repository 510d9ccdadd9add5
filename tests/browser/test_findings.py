"""What looks wrong, on the page: listed by cause, marked on graph and scrubber, one click from what shows it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Locator, Page, expect

import endoscope
from tests.browser import faulty
from tests.browser.conftest import Serve, Visit, settle
from tests.browser.faulty import NODE, Faulty
from tests.browser.helpers import go_to_tab, look, press, selected_in_graph, state_of, step_shown, tensor
from tests.browser.test_access import faults

PATIENCE_MS = 60_000  # the checks run in a process with a low priority, and machines that test are busy
WIDE = {"width": 1600, "height": 900}  # the list is beside the graph
ID = f"dead_units@{NODE}"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("faulty") / "runs"
    faulty.record(root)
    return root / "faulty"


@pytest.fixture
def trial(recording: Path) -> Iterator[Path]:
    """Silent about nothing, before and after."""
    yield recording
    (recording / "findings.json").unlink(missing_ok=True)


@pytest.fixture
def home(trial: Path, serve: Serve) -> str:
    return serve(trial.parent).address


def listed(page: Page) -> Locator:
    """All entries, once they are there; on the graph's tab those beside the graph."""
    entries = page.locator("main .layer:not(.away) .findings > section > ol > li")
    expect(entries.first).to_be_visible(timeout=PATIENCE_MS)
    settle(page)
    return entries


def plain(words: str) -> str:
    """As it is read: what stands between backticks is set as code."""
    return words.replace("`", "")


def head(page: Page, words: str) -> Locator:
    return page.get_by_role("heading", level=3).get_by_role("button", name=plain(words)).first


def colored(page: Page, canvas: Locator, role: str) -> int:
    """How many pixels of a canvas have one of the page's colours."""
    script = """(canvas, role) => {
      const probe = document.createElement("span");
      probe.style.color = `var(--${role})`;
      document.body.append(probe);
      const wanted = getComputedStyle(probe).color.match(/\\d+/g).map(Number);
      probe.remove();
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
      copy.drawImage(canvas, 0, 0);
      const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
      let count = 0;
      for (let i = 0; i < data.length; i += 4) count += wanted.every((part, k) => Math.abs(data[i + k] - part) < 4);
      return count;
    }"""
    found = canvas.evaluate(script, role)
    assert isinstance(found, int)
    return found


def graph(page: Page) -> Locator:
    return page.get_by_role("application", name="Dependency graph")


def scrubber(page: Page) -> Locator:
    return page.get_by_role("slider", name="Training step").locator("canvas")


def test_one_entry_for_each_cause_as_the_command_says(home: str, visit: Visit, trial: Path) -> None:
    page = visit(home, viewport=WIDE)
    entries = listed(page)
    expected = endoscope.diagnose(trial)
    causes = [one for one in expected if not one.follows]
    assert 0 < len(causes) < len(expected)  # something follows from something
    expect(entries).to_have_count(len(causes))
    for place, cause in enumerate(causes):
        expect(entries.nth(place)).to_contain_text(plain(cause.detail))
        expect(entries.nth(place).get_by_role("img", name=cause.severity)).to_be_visible()
    expect(entries.first).to_contain_text("since step 6")
    expect(page.get_by_role("tab", name="Findings")).to_have_accessible_name("Findings 1 error, 1 warning")
    expect(page.get_by_role("banner").get_by_role("button", name="Findings 1 error, 1 warning")).to_be_visible()
    expect(page.get_by_role("tabpanel")).to_contain_text("checks over 20 recorded steps")


def test_a_click_leads_to_what_shows_it_and_the_address_reproduces_it(home: str, visit: Visit, trial: Path) -> None:
    page = visit(home, viewport=WIDE)
    listed(page)
    finding = endoscope.diagnose(trial)[0]
    head(page, finding.title).click()
    settle(page)
    assert state_of(page)["finding"] == ID
    assert selected_in_graph(page) == NODE and step_shown(page) == finding.first_step == 6
    expect(tensor(page).get_by_role("heading", level=2)).to_have_text(NODE)
    for seen in (page, visit(page.url, viewport=WIDE)):
        entry = listed(seen).first
        expect(head(seen, finding.title)).to_have_attribute("aria-expanded", "true")
        for words in (*finding.causes, *finding.remedies, f"threshold {finding.threshold}", Path(finding.source).name):
            expect(entry).to_contain_text(plain(words))
        assert selected_in_graph(seen) == NODE and step_shown(seen) == 6
    follower = entry.get_by_role("listitem").filter(has_text="all samples of a batch give nearly the same result")
    expect(follower.first).to_be_visible()
    head(seen, finding.title).click()  # closes it; the view stays
    settle(seen)
    assert "finding" not in state_of(seen) and step_shown(seen) == 6


def test_what_follows_is_inside_and_leads_elsewhere(home: str, visit: Visit, trial: Path) -> None:
    page = visit(look(home, finding=ID), viewport=WIDE)
    listed(page)
    follower = next(one for one in endoscope.diagnose(trial) if one.check == "collapsed_batch")
    head(page, follower.title).click()
    settle(page)
    assert state_of(page)["finding"] == f"collapsed_batch@{follower.node}"
    assert state_of(page)["node"] == follower.node and step_shown(page) == follower.first_step == 9
    expect(page.get_by_role("tabpanel")).to_contain_text(plain(follower.remedies[0]))
    expect(listed(page)).to_have_count(len([one for one in endoscope.diagnose(trial) if not one.follows]))


def test_marks_on_the_graph_and_on_the_scrubber(home: str, visit: Visit, trial: Path) -> None:
    page = visit(home, viewport=WIDE)
    listed(page)
    boxes = page.get_by_role("tree", name="Boxes of the dependency graph")
    wrong = boxes.get_by_role("treeitem", name=re.compile("error: "))
    expect(wrong).to_have_count(1)
    on_graph, on_scrubber = colored(page, graph(page), "error"), colored(page, scrubber(page), "error")
    assert on_graph > 20 and on_scrubber > 20
    press(page, "n")  # the chosen one is shown for as long as it lasts
    assert colored(page, scrubber(page), "error") > on_scrubber
    listed(page).first.get_by_role("button", name="silence here").first.click()
    expect(wrong).to_have_count(0)
    settle(page)
    assert colored(page, graph(page), "error") < on_graph and colored(page, scrubber(page), "error") == 0


def test_silence_and_undo(home: str, visit: Visit, trial: Path) -> None:
    page = visit(look(home, tab="findings", finding=ID))
    entries = listed(page)
    before = entries.count()
    entries.first.get_by_role("button", name="silence here").first.click()
    undo = page.get_by_role("button", name=f"Undo: hear of dead_units at {NODE} again")
    expect(undo).to_be_focused()  # one key takes it back
    assert json.loads((trial / "findings.json").read_text()) == {"silenced": [{"check": "dead_units", "node": NODE}]}
    expect(page.get_by_role("heading", level=3).filter(has_text="1 ").filter(has_text="dead")).to_have_count(0)
    again = visit(look(home, tab="findings"))
    listed(again)
    again.get_by_text("1 silenced").click()
    expect(again.get_by_role("button", name=f"Undo: hear of dead_units at {NODE} again")).to_be_visible()
    press(page, "Enter")
    expect(entries).to_have_count(before)
    expect(undo).to_have_count(0)
    assert json.loads((trial / "findings.json").read_text()) == {"silenced": []}
    expect(again.get_by_text("1 silenced")).to_have_count(0, timeout=PATIENCE_MS)  # the other window is told


def test_by_keyboard(home: str, visit: Visit) -> None:
    page = visit(home, viewport=WIDE)
    listed(page)
    press(page, "n")
    assert state_of(page)["finding"] == ID and selected_in_graph(page) == NODE
    press(page, "n")
    following = state_of(page)["finding"]
    assert following != ID
    press(page, "N")
    assert state_of(page)["finding"] == ID
    press(page, "0")
    assert state_of(page)["tab"] == "findings"
    expect(page.get_by_role("region", name="Findings", exact=True).first).to_be_visible()
    head(page, "units").focus()
    press(page, "ArrowDown", "Enter")
    assert state_of(page)["finding"] == following and state_of(page)["tab"] == "findings"  # opened, to be read
    press(page, "3")
    page.get_by_role("tab", name="Findings").focus()
    press(page, "ArrowRight")
    expect(page.get_by_role("tree", name="Outline")).to_be_visible()
    assert state_of(page)["side"] == "outline"


def test_show_leads_from_the_tab_to_the_layer_and_its_first_step(home: str, visit: Visit) -> None:
    page = visit(look(home, tab="findings", finding=ID))
    listed(page).first.get_by_role("button", name="show", exact=True).first.click()
    settle(page)
    state = state_of(page)
    assert (state["tab"], state["node"], state["step"], state["finding"]) == ("layers", NODE, "6", ID)
    expect(page.get_by_role("complementary", name="Selected layer")).to_contain_text(faulty.DEAD, ignore_case=True)


def test_the_list_stays_open_where_it_was_when_one_goes_to_the_graph(home: str, visit: Visit, trial: Path) -> None:
    page = visit(look(home, tab="findings"), viewport=WIDE)
    listed(page)
    finding = endoscope.diagnose(trial)[0]
    head(page, finding.title).click()
    settle(page)
    count = listed(page).count()
    go_to_tab(page, "Graph")
    assert listed(page).count() == count
    inside = page.get_by_role("tabpanel")
    expect(inside.get_by_role("button", name=plain(finding.title)).first).to_have_attribute("aria-expanded", "true")
    if "`" in "".join((finding.title, finding.detail, *finding.causes, *finding.remedies)):
        expect(inside.locator("code").first).to_be_visible()
        expect(inside).not_to_contain_text("`")


def test_a_finding_about_a_metric(serve: Serve, visit: Visit, tmp_path: Path) -> None:
    with endoscope.Run(tmp_path / "runs", trial="flat", when=endoscope.policies.every(1)) as run:
        for _ in range(40):
            with run.step() as step:
                step.tag("numbers", torch.randn(4, 3), kind="input")
                step.metric("loss", 2.3)
    trial = tmp_path / "runs" / "flat"
    finding = next(one for one in endoscope.diagnose(trial) if one.check == "plateau")
    page = visit(look(serve(trial.parent).address, tab="findings"))
    listed(page)
    head(page, finding.title).click()
    page.get_by_role("listitem").filter(has_text=finding.detail).get_by_role("button", name="show").last.click()
    settle(page)
    assert state_of(page)["tab"] == "metrics"
    strip = page.get_by_role("complementary", name="Chosen finding")
    expect(strip).to_contain_text(finding.detail)
    strip.get_by_role("button", name="all findings").click()
    settle(page)
    assert state_of(page)["tab"] == "findings"


def test_live(tmp_path: Path, serve: Serve, visit: Visit) -> None:
    training = Faulty(tmp_path / "runs")
    training.advance(8)
    page = visit(serve(tmp_path / "runs").address, viewport=WIDE)
    side = page.get_by_role("tabpanel")
    expect(side).to_contain_text("nothing found in 8 recorded steps", timeout=PATIENCE_MS)
    training.kill()
    training.advance(14)
    expect(head(page, "units")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_role("tab", name="Findings 1 error")).to_be_visible()
    expect(side).to_contain_text("over 22 recorded steps", timeout=PATIENCE_MS)
    training.close()


def test_nothing_found_is_a_sentence(page: Page) -> None:
    expect(page.get_by_role("tabpanel")).to_contain_text("checks", timeout=PATIENCE_MS)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(home: str, visit: Visit, scheme: str) -> None:
    page = visit(look(home, finding=ID), viewport=WIDE, color_scheme=scheme)
    listed(page)
    assert faults(page) == []
    panel = go_to_tab(page, "Findings")
    assert faults(page) == []
    panel.get_by_role("button", name="silence everywhere").first.click()
    expect(page.get_by_role("button", name="Undo: hear of dead_units everywhere again")).to_be_visible()
    settle(page)
    assert faults(page) == []


@pytest.mark.parametrize("size", [{"width": 1280, "height": 800}, {"width": 1920, "height": 1080}], ids=str)
def test_nothing_is_cut_off(home: str, visit: Visit, size: dict[str, int]) -> None:
    for state in ({}, {"tab": "findings"}):
        page = visit(look(home, finding=ID, **state), viewport=size)
        expect(page.get_by_role("banner")).to_contain_text("Findings2", timeout=PATIENCE_MS)
        width, height = page.evaluate("() => [document.documentElement.scrollWidth, document.body.scrollHeight]")
        assert width <= size["width"] and height <= size["height"]
