"""While a training runs, the page keeps up, and never takes the selection away."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PATIENCE_MS, Serve, Visit, settle
from tests.browser.faulty import Faulty
from tests.browser.helpers import go_to_step, go_to_tab, select_node, selectors, state_of, step_shown
from tests.browser.recordings import Training

CHECKED_MS = 3 * PATIENCE_MS  # the checks run in a process with a low priority


@pytest.fixture
def training(tmp_path: Path) -> Training:
    begun = Training(tmp_path / "runs", "fresh", every=2)
    begun.advance(6)
    begun.run.flush(10)
    return begun


def test_new_steps_appear_and_the_selection_stays(
    training: Training, tmp_path: Path, serve: Serve, visit: Visit
) -> None:
    page = visit(serve(tmp_path / "runs").address)
    expect(page.get_by_role("banner").get_by_role("status")).to_contain_text("live")
    select_node(page, "cell")
    go_to_step(page, 0)
    slider = page.get_by_role("slider", name="Training step")
    before = int(slider.get_attribute("aria-valuemax") or 0)
    training.advance(12)
    training.run.flush(10)
    expect(slider).not_to_have_attribute("aria-valuemax", str(before), timeout=PATIENCE_MS)
    settle(page)
    assert step_shown(page) == 0 and state_of(page)["node"] == "cell"
    training.close()
    expect(page.get_by_role("banner").get_by_role("status")).to_contain_text("ended", timeout=PATIENCE_MS)


def test_follow(training: Training, tmp_path: Path, serve: Serve, visit: Visit) -> None:
    page = visit(serve(tmp_path / "runs").address)
    follow = page.get_by_role("button", name="Follow the newest step")
    expect(follow).to_have_attribute("aria-pressed", "true")  # until somebody chooses a step
    before = step_shown(page)
    training.advance(12)
    training.run.flush(10)
    field = selectors(page).get_by_role("textbox", name="step")
    expect(field).not_to_have_value(str(before), timeout=PATIENCE_MS)
    assert step_shown(page) > before
    go_to_step(page, 0)  # who looks elsewhere is left alone
    expect(follow).to_have_attribute("aria-pressed", "false")
    slider = page.get_by_role("slider", name="Training step")
    last = slider.get_attribute("aria-valuemax") or ""
    training.advance(6)
    training.run.flush(10)
    expect(slider).not_to_have_attribute("aria-valuemax", last, timeout=PATIENCE_MS)
    settle(page)
    assert step_shown(page) == 0
    follow.click()  # and comes back to the newest by one click
    settle(page)
    expect(follow).to_have_attribute("aria-pressed", "true")
    assert step_shown(page) > before
    training.close()


def test_the_title_of_the_tab_tells_when_something_was_found(tmp_path: Path, serve: Serve, visit: Visit) -> None:
    """To whoever looks at something else; looking at the page again takes it back."""
    begun = Faulty(tmp_path / "runs")
    begun.advance(8)
    page = visit(serve(tmp_path / "runs").address, view=None)
    expect(page.get_by_text("nothing found in")).to_be_visible(timeout=CHECKED_MS)
    expect(page).to_have_title("Endoscope")
    page.evaluate("""() => {
      Object.defineProperty(document, "hasFocus", { configurable: true, value: () => false });
      window.dispatchEvent(new Event("blur"));
    }""")
    begun.kill()
    begun.advance(14)
    expect(page).to_have_title("(1 new finding) Endoscope", timeout=CHECKED_MS)
    page.evaluate("() => { delete document.hasFocus; window.dispatchEvent(new Event('focus')); }")
    expect(page).to_have_title("Endoscope")
    begun.close()


def test_metrics_and_a_new_trial_appear(training: Training, tmp_path: Path, serve: Serve, visit: Visit) -> None:
    page = visit(serve(tmp_path / "runs").address)
    panel = go_to_tab(page, "Metrics")
    training.run.metric("late", 1.0)
    training.run.flush(10)
    expect(panel.get_by_role("region", name="Metric late")).to_be_visible(timeout=PATIENCE_MS)
    other = Training(tmp_path / "runs", "second", every=2)
    other.advance(4)
    other.close()
    page.get_by_role("button", name="trial fresh").click()
    expect(page.get_by_role("radio", name="Look at second")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_role("radio", name="Look at fresh")).to_be_checked()  # though another one is newer
    training.close()
