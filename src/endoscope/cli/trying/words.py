"""The sentences of `endoscope try`."""

from __future__ import annotations

import gc
import itertools
import sys
import sysconfig
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from endoscope.recording.telling import shortest

if TYPE_CHECKING:
    from endoscope.cli.trying.search import Found, Seen

_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_OURS = str(Path(__file__).parents[2])
_RUNNER = str(Path(__file__).with_name("script.py"))  # it runs the script; what is further out is `endoscope` itself


class Named(NamedTuple):
    """A model with its optimizers, as the script calls them."""

    model: str  # a variable, or `model` where none is known
    kind: str  # the class
    optimizers: list[str]  # variables; empty where not all are known
    kinds: list[str]

    @property
    def told(self) -> str:
        model = self.kind if self.model in ("model", self.kind) else f"{self.model} ({self.kind})"
        return f"{model}, trained by {_listed(self.kinds)}"

    @property
    def watched(self) -> str:
        """The line to add."""
        more = self.optimizers if len(self.optimizers) < 2 else [f"[{', '.join(self.optimizers)}]"]
        return f"run.watch({', '.join([self.model, *more])})"


class Names(NamedTuple):
    """All that was found, and where the training is called."""

    models: list[Named]
    file: str
    line: int

    @classmethod
    def of(cls, found: list[Found], frame: FrameType | None) -> Names:
        """Where the user's code calls the model, or a framework that does; variables of that place and further out."""
        frames = _of_the_user(frame)
        models = []
        for number, (model, optimizers) in enumerate(found, start=1):
            several = str(number) if len(found) > 1 else ""
            named = [_variable(frames, one) for one in optimizers]
            kinds = [type(one).__name__ for one in optimizers]
            name = _variable(frames, model) or f"model{several}"
            models.append(Named(name, type(model).__name__, named if all(named) else [], kinds))
        return cls(models, frames[0].f_code.co_filename if frames else "", frames[0].f_lineno if frames else 0)


def _of_the_user(frame: FrameType | None) -> list[FrameType]:
    """The innermost first. Not counted: what a framework calls of the user's code, and the program that runs us."""
    frames = []
    while frame is not None and frame.f_code.co_filename != _RUNNER:
        frames.append(frame)
        frame = frame.f_back
    outermost_first = itertools.dropwhile(_is_of_a_library, reversed(frames))
    return list(itertools.takewhile(lambda one: not _is_of_a_library(one), outermost_first))[::-1]


def _is_of_a_library(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith((*_LIBRARIES, _OURS, "<frozen"))


def _variable(frames: list[FrameType], value: Any) -> str:
    """What to type for this value: a variable, or an attribute of `self`; empty if there is none."""
    for frame in frames:
        for name, one in {**frame.f_globals, **frame.f_locals}.items():
            if one is value and name != "self":
                return name
        of_self = getattr(frame.f_locals.get("self"), "__dict__", {})
        for name, one in of_self.items():
            if one is value:
                return f"self.{name}"
    return ""


def records_itself() -> bool:
    """Whether the script has made a Run of its own."""
    module = sys.modules.get("endoscope.recording.run")
    if module is None:
        return False
    return any(issubclass(type(one), module.Run) and not one.closed for one in gc.get_objects())


def beginning(names: Names) -> str:
    return f"found {'; '.join(one.told for one in names.models)}."


def lines_to_add(names: Names, root: str) -> str:
    """What the user can type to keep what `try` has done."""
    where = f" to {shortest(names.file)}, before line {names.line} and not inside a loop" if names.line else ""
    lines = ["import endoscope", f"run = endoscope.Run({root!r})", *(one.watched for one in names.models)]
    count = {3: "three", 4: "four", 5: "five"}.get(len(lines), str(len(lines)))
    typed = "\n".join(f"    {line}" for line in lines)
    return f"to record without `endoscope try`, add {count} lines{where}:\n\n{typed}\n"


def not_recorded(problem: str) -> str:
    return f"nothing was recorded here: {problem}."


def failed_early(script: str, error: BaseException) -> str:
    how = f"the exit status {error.code}" if isinstance(error, SystemExit) else type(error).__name__
    return f"{script} ended with {how} before a training step began, so nothing was recorded."


def nothing_found(seen: Seen | None, script: str) -> str:
    """What was seen instead of a training, and what to type."""
    manual = (
        "If a network is trained here all the same, add to the script:  run = endoscope.Run('runs');  "
        "run.watch(model, optimizer);  and `with run.step():` around each training step."
    )
    if seen is None:
        return f"{script} never imported torch in this process, so there was no network to record. {_OTHER_PROCESSES}"
    if not seen.largest:
        what = _optimizers(seen)
        return f"{script} called no torch.nn.Module with parameters, so there was nothing to record{what}. {manual}"
    calls = {mode: count for (name, mode), count in seen.called.items() if name == seen.largest}
    told = f"{script} called {seen.largest} {_times(sum(calls.values()))}"
    if not calls.get("training"):
        mode = "in evaluation mode" if "evaluation" in calls else "without gradients"
        return (
            f"{told}, but {mode} only, so no training step was seen. Call model.train() before the loop, and the model "
            f"outside torch.no_grad(). {manual}"
        )
    if not seen.optimizers:
        return f"{told} in training mode, but it made no torch.optim.Optimizer. {manual}"
    held = f"none of them holds a parameter of {seen.largest}"
    return f"{told} in training mode{_optimizers(seen)}, but {held}: is the optimizer that of another model? {manual}"


_OTHER_PROCESSES = (
    "If it starts processes of its own that train, type `endoscope try` in front of the script that they run."
)


def _optimizers(seen: Seen) -> str:
    told = [
        f"{name} with {_counted(seen.held[name], 'parameter')} took {_counted(steps, 'step')}"
        for name, steps in seen.optimizers.items()
    ]
    return f"; {_listed(told)}" if told else ""


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]
