"""`run.log({...})`: several numbers at once, nested ones under `a/b`; what is no number is refused with what to use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from endoscope.errors import BadArgument
from endoscope.recording.output.metrics import held_number

_MOST_NUMBERS = 65_536  # of one metric: one for each sample of a batch, but no picture


def flat(values: Any) -> dict[str, Any]:
    """{"train": {"loss": 1}} -> {"train/loss": 1}"""
    if not isinstance(values, Mapping):
        example = 'run.log({"loss": loss})'
        raise BadArgument(f"run.log got {type(values).__name__}. It takes names with numbers: {example}.")
    return dict(_flat(values, ""))


def _flat(values: Mapping[Any, Any], before: str) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}/")
        else:
            yield f"{before}{name}", value


def number(name: str, value: Any) -> Any:
    """The value as a metric; an error if it is something else."""
    if isinstance(value, str):
        raise BadArgument(f"run.log got the text {value!r} as {name!r}. For text, type: run.note({value!r}).")
    shape = getattr(value, "shape", ())
    size = _size(shape)
    if size > _MOST_NUMBERS or len(shape) > 1 or hasattr(value, "columns"):
        raise BadArgument(
            f"run.log got a {type(value).__name__} of shape {tuple(shape)} as {name!r}; a metric is one number, or one "
            f"for each sample. To record a tensor with its statistics, type inside of the step: "
            f"run.current_step.tag({name!r}, tensor). For pictures of your own, write a view: "
            "endoscope show --views FILE."
        )
    try:
        return held_number(value)
    except BadArgument:
        raise
    except (TypeError, ValueError) as error:
        raise BadArgument(
            f"run.log got a {type(value).__name__} as {name!r}, which is no number. For pictures and tables, record "
            f"the tensor that they show, run.current_step.tag({name!r}, tensor), and write a view: "
            "endoscope show --views FILE. For text, type: run.note(text)."
        ) from error


def _size(shape: Any) -> int:
    size = 1
    for length in shape:
        size *= int(length)
    return size
