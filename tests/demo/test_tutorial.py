"""The tutorial speaks of what the demo records, and its pictures are there and small."""

import re
from pathlib import Path

import pytest

import endoscope
from endoscope.demo import task
from endoscope.demo.training import RECORDED, TRIALS, Settings, begin_run, train
from tests.house.pages import prose
from tests.house.tree import ROOT

TUTORIAL = ROOT / "docs" / "tutorial.md"
PICTURES = ROOT / "docs" / "tutorial"
SCRIPT = ROOT / "docs" / "make_tutorial.py"
LARGEST = 150_000  # bytes


def shown() -> set[str]:
    return set(re.findall(r"!\[[^\]]+\]\(tutorial/(\w+)\.png\)", prose(TUTORIAL)))


def test_the_pictures_are_those_that_the_script_takes() -> None:
    taken = set(re.findall(r'Picture\("(\w+)"', SCRIPT.read_text(encoding="utf-8")))
    assert taken == shown() == {path.stem for path in PICTURES.iterdir()}


@pytest.mark.parametrize("name", sorted(shown()))
def test_a_picture_is_a_small_picture(name: str) -> None:
    content = (PICTURES / f"{name}.png").read_bytes()
    assert content.startswith(b"\x89PNG") and len(content) <= LARGEST


def test_the_steps_that_it_names_are_recorded() -> None:
    types = list(task.LENGTHS)
    recorded = endoscope.policies.preview(RECORDED, Settings().steps, type_of=lambda step: types[step % len(types)])
    named = re.findall(r"\bstep\s+(\d+)", prose(TUTORIAL))
    assert named
    assert {int(number) for number in named} <= {step for step in recorded if types[step % 2] == "long sequences"}


def test_what_it_names_is_there(tmp_path: Path) -> None:
    settings = Settings(steps=2)
    with begin_run(tmp_path, "suspect", settings) as run:
        train(run, settings, activate_last=True, say=lambda text: None)
    recording = endoscope.open(run.path)
    named = {word for word in re.findall(r"`([\w. ]+)`", prose(TUTORIAL)) if len(word) > 1}
    assert named
    assert named <= {*recording.nodes, *TRIALS}
