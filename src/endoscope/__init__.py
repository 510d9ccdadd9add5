"""Endoscope: look inside a living PyTorch network without cutting it open.

Importing this package does nothing but define the list below. A public name is imported when it is first
used, so the viewing half of the tool starts fast and works on a machine without torch.
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from endoscope import errors
    from endoscope.analysis.user_rules.anomalies import anomaly
    from endoscope.capture.change import edits
    from endoscope.capture.change.editing import editing
    from endoscope.capture.file.folder import to_folder
    from endoscope.capture.file.load import load
    from endoscope.capture.trace import trace, tracing
    from endoscope.findings.batch_probe import probe_batch
    from endoscope.findings.change_points import changes
    from endoscope.findings.correlation import correlate
    from endoscope.findings.diagnose import diagnose
    from endoscope.findings.differences import differences
    from endoscope.findings.origin import origin
    from endoscope.query.open import open
    from endoscope.recording.deciding import policies
    from endoscope.recording.run import Run
    from endoscope.replay.divergence import compare
    from endoscope.replay.rerun import rerun
    from endoscope.replay.validate import validate
    from endoscope.schema.stats import statistic
    from endoscope.server.launch import show

__version__ = "0.1.0"

__all__ = [
    "Run", "__version__", "anomaly", "changes", "compare", "correlate", "diagnose", "differences", "editing", "edits",
    "errors", "load", "open", "origin", "policies", "probe_batch", "rerun", "show", "statistic", "to_folder", "trace",
    "tracing", "validate",
]  # fmt: skip

# Public name -> where it lives: "module:attribute", or "module" when the name is a module itself.
# Keep it in step with `__all__` and with the TYPE_CHECKING block, which shows editors the same names.
_TARGETS = {
    "Run": "endoscope.recording.run:Run",
    "anomaly": "endoscope.analysis.user_rules.anomalies:anomaly",
    "changes": "endoscope.findings.change_points:changes",
    "compare": "endoscope.replay.divergence:compare",
    "correlate": "endoscope.findings.correlation:correlate",
    "diagnose": "endoscope.findings.diagnose:diagnose",
    "differences": "endoscope.findings.differences:differences",
    "editing": "endoscope.capture.change.editing:editing",
    "edits": "endoscope.capture.change.edits",
    "errors": "endoscope.errors",
    "load": "endoscope.capture.file.load:load",
    "open": "endoscope.query.open:open",
    "origin": "endoscope.findings.origin:origin",
    "policies": "endoscope.recording.deciding.policies",
    "probe_batch": "endoscope.findings.batch_probe:probe_batch",
    "rerun": "endoscope.replay.rerun:rerun",
    "show": "endoscope.server.launch:show",
    "statistic": "endoscope.schema.stats:statistic",
    "to_folder": "endoscope.capture.file.folder:to_folder",
    "trace": "endoscope.capture.trace:trace",
    "tracing": "endoscope.capture.trace:tracing",
    "validate": "endoscope.replay.validate:validate",
}


def __getattr__(name: str) -> Any:
    target = _TARGETS.get(name)
    if target is None:
        # With `name` and `obj` set, Python itself adds "Did you mean ...?" to the message.
        this = sys.modules[__name__]
        raise AttributeError(f"module 'endoscope' has no attribute {name!r}", name=name, obj=this)
    value = _load(name, target)
    globals()[name] = value  # the next access does not come here
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def _load(name: str, target: str) -> Any:
    module_name, _, attribute = target.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "torch":
            raise
        raise _torch_is_missing(name) from error
    return getattr(module, attribute) if attribute else module


def _torch_is_missing(name: str) -> Exception:
    from endoscope.errors import MissingDependencyError

    return MissingDependencyError(
        f"endoscope.{name} needs PyTorch, which is not installed for {sys.executable}.\n"
        'Install it with:  pip install "endoscope[torch]"'
    )
