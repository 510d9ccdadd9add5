"""How the page begins."""

from __future__ import annotations

from tests.browser.conftest import Visit

ASKED = """async () => {
  await window.__endoscope.settled();
  return performance.getEntriesByType("resource").map((entry) => entry.name).filter((name) => name.includes("/api/"));
}"""


def test_one_answer_has_all_that_the_first_picture_needs(visit: Visit, address: str) -> None:
    page = visit(address)
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_function("window.__endoscope", polling=5)
    asked = [name.split("/api/")[1].split("?")[0] for name in page.evaluate(ASKED)]
    assert asked.count("start") == 1
    assert set(asked) <= {"start", "events", "trials/leaky/heat"}  # of all steps: the strips in the boxes
