"""Two views of the demo's own. `endoscope demo` shows them; elsewhere: `endoscope show DIR --views FILE`.

A view is a function of what is selected on the page and of the recording. It is called again when that changes.
"""

from __future__ import annotations

import html
from typing import Any

import numpy as np


def what_was_said(selection: Any, recording: Any) -> str:
    """A sample, number by number."""
    step = _step(selection, recording)
    kept = list(step.raw_samples)
    sample = selection.sample if selection.sample in kept else kept[0]
    numbers = recording.tensor("input", step.number, type=step.type, sample=sample)  # [position, sequence]
    said = recording.tensor("output", step.number, type=step.type, sample=sample)
    sums = numbers.cumsum(axis=0)
    rows = [
        "<tr>" + "".join(_cell(*values) for values in zip(numbers[:, row], sums[:, row], said[:, row], strict=True))
        for row in range(numbers.shape[1])
    ]
    title = f"Step {step.number}, sample {sample} ({step.categories[sample]}); one line for each sequence"
    return f"{_STYLE}<p>{html.escape(title)}</p><table>{'</tr>'.join(rows)}</tr></table>"


def answer_by_sum(selection: Any, recording: Any) -> Any:
    """Answers against partial sums."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        return (
            "<p>This view draws with matplotlib, which is not installed. Type: <code>pip install matplotlib</code></p>"
        )

    step = _step(selection, recording)
    positions = recording.tensor("input", step.number, type=step.type).shape[1]
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for position in range(1, positions + 1):
        role = f"after number {position}"
        sums = recording.tensor("partial sums", step.number, type=step.type, role=role)
        answers = recording.tensor("answer", step.number, type=step.type, pass_=position)
        axes.scatter(sums, answers, s=14, color=(0.15, 0.35, 0.75, 0.3 + 0.7 * position / positions))
    axes.axhline(0, color="gray", linewidth=0.8)
    axes.axvline(0, color="gray", linewidth=0.8)
    axes.set(xlabel="partial sum", ylabel="answer, before the sigmoid", title=f"{recording.name}, step {step.number}")
    return figure


def _step(selection: Any, recording: Any) -> Any:
    """The selected step, or the newest one."""
    steps = [step for step in recording.steps if selection.step is None or step.number == selection.step]
    return steps[-1]


def _cell(number: float, partial_sum: float, probability: float) -> str:
    """Green if it was right, red if it was wrong, the stronger the surer the network was."""
    is_right = (probability > 0.5) == (partial_sum > 0)
    strength = float(np.clip(2 * abs(probability - 0.5), 0, 1))
    color = f"rgba({'30, 150, 80' if is_right else '210, 50, 50'}, {0.08 + 0.5 * strength:.2f})"
    return (
        f'<td style="background: {color}">{number:+.2f}<br><small>sum {partial_sum:+.2f}</small><br>'
        f"<b>{probability:.0%}</b></td>"
    )


_STYLE = """<style>
:root { color-scheme: light dark; font: 14px system-ui, sans-serif; }
td { padding: 4px 10px; text-align: right; font-variant-numeric: tabular-nums; border-radius: 4px; }
</style>"""
