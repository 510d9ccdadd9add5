"""Apply edits while a recorder records a run.

    torch call ─► exchange: arguments that were edited where they came in, or handed back by their own operation
                     ├─► an operation that cannot be meant: on to the hot path, as without edits
                     └─► recorder.record_unusual ─► call ─► torch ─► after_call ─► edited ─► the caller

No node is added: the edited value stands in the place of the operation's own. Nothing that belongs to the user is
written: parameters, buffers and inputs are exchanged for edited ones when they are read.

An operation that hands its argument back (dropout outside of training, `contiguous` of what is contiguous) makes no
new tensor. Whoever reads that tensor from then on reads what the operation returned, which is also what the
graph says; so all of them see the edit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, MethodType
from typing import Any

import torch
from torch import Tensor

from endoscope.capture.change.edit import Edit, Moment, apply_all, new_like
from endoscope.capture.change.plan import Occasions, Plan, Site
from endoscope.capture.change.rebuild import rebuilt
from endoscope.capture.data.arguments import map_arguments
from endoscope.capture.data.calls import Calls
from endoscope.capture.data.functions import FunctionFacts, Role
from endoscope.capture.data.nodes import Applied, Position
from endoscope.capture.patch.patches import aside
from endoscope.capture.patch.torch_private import is_wrapped as _is_wrapped
from endoscope.capture.record.functions import facts_of
from endoscope.capture.record.keeping import SomeOp
from endoscope.capture.record.leaves import tensors_in
from endoscope.capture.record.recorder import Recorder
from endoscope.capture.record.records import TorchCall
from endoscope.errors import BadEdit
from endoscope.schema.ops import Kind

_UNKNOWN: Any = object()


class _Now(SomeOp):
    """An operation the moment it has run, for patterns."""

    def __init__(self, type_: str, calls: Calls, call: int) -> None:
        super().__init__(type_)
        self._calls, self._call = calls, call

    @property
    def modules(self) -> tuple[str, ...]:  # type: ignore[override]
        return self._calls.path(self._call)


class Run:
    """One forward pass under one plan."""

    def __init__(self, plan: Plan, recorder: Recorder, forward: int) -> None:
        self.plan = plan
        self.forward = forward  # which one in its block, from 0
        self.applied: set[int] = set()  # numbers of the changes that found something
        self._calls = recorder.calls
        self.first_call = len(recorder.calls.entries)
        self._occasions = Occasions(recorder.calls, self.first_call)

    def site(self, type_: str, position: Position, call: int, count: bool) -> Site | None:
        statement = self._occasions.statement(type_, position, call)
        now = _Now(type_, self._calls, call)
        found = self.plan.at(statement, self._occasions.upcoming(statement, call), now)
        if count:
            self._occasions.count(statement, call)
        return found

    def check_all_applied(self) -> None:
        missed = [change for number, change in enumerate(self.plan.changes) if number not in self.applied]
        if missed:
            key, edit = missed[0]
            raise BadEdit(
                f"edit={{{key!r}: {edit}}} was never applied: {key!r} exists in the run without edits, but the edited "
                "run took another path and did not come there. Edit an operation that the edited run executes."
            )


class Editor:
    """The edits of one recorder; several plans may be at work, the outer ones first."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._runs: list[Run] = []
        self._facts: dict[Any, FunctionFacts | None] = {}  # function -> None if no edit can concern it
        self._types: dict[str, bool] = {}
        self._has_sources = False  # a parameter, buffer or input is edited
        self._instead: dict[int, Tensor] = {}  # id of a tensor -> what is read in its place
        self._made: dict[int, list[Applied]] = {}  # id of an edited parameter, buffer or input -> its edits
        self._held: list[Tensor] = []  # so that the ids above stay their own
        self._applying = False
        self._done = False  # the call that was just made has been edited already

    @contextmanager
    def following(self, plan: Plan, forward: int = 0) -> Iterator[Run]:
        """Apply a plan to everything that is recorded meanwhile."""
        run = Run(plan, self._recorder, forward)
        self._runs.append(run)
        self._learn_anew()
        try:
            yield run
        finally:
            self._runs.remove(run)
            self._learn_anew()

    def _learn_anew(self) -> None:
        self._facts.clear()
        self._types.clear()
        self._has_sources = any(run.plan.sources for run in self._runs)

    def begins_with(self, call: int) -> bool:
        """Whether this call of a module is the one that a plan was made for."""
        return any(run.first_call == call for run in self._runs)

    def wrap(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        """What handles calls of torch in place of the handler `plain`."""
        recorder, known = self._recorder, self._facts

        def handle(mode: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if self._applying:
                return func(*args, **(kwargs or {}))
            if self._instead or self._has_sources:
                args, kwargs = self._exchanged(args, kwargs)
            facts = known.get(func, _UNKNOWN)
            if facts is _UNKNOWN:
                facts = known[func] = self._learn(func)
            if facts is None:
                return plain(mode, func, types, args, kwargs)
            return recorder.record_unusual(func, facts, args, kwargs or {})

        return handle

    def _learn(self, func: Any) -> FunctionFacts | None:
        facts = facts_of(func)
        if facts.role in (Role.PASS, Role.LEAVE):
            return None
        return facts if self._concerns(facts.type) else None

    def _concerns(self, type_: str) -> bool:
        if type_ not in self._types:
            self._types[type_] = any(run.plan.may_concern(type_, SomeOp(type_)) for run in self._runs)
        return self._types[type_]

    # ---- operations ------------------------------------------------------------------------------

    def _sites(self, facts: FunctionFacts, position: Position, count: bool) -> list[tuple[Run, Site]]:
        if self._applying or not self._concerns(facts.type):
            return []
        call = self._recorder.calls.current
        found = [(run, run.site(facts.type, position, call, count)) for run in self._runs]
        return [(run, site) for run, site in found if site is not None]

    def call(
        self,
        func: Any,
        facts: FunctionFacts,
        position: Position,
        written: list[Tensor],
        args: Any,
        kwargs: dict[str, Any],
    ) -> Any:
        """Call torch. What writes into a tensor that is to be edited writes into a copy, which is edited and copied
        back: autograd may have to see what the function itself left there."""
        sites = [] if not written or facts.uncounted else self._sites(facts, position, count=False)
        if not sites:
            return func(*args, **kwargs)
        copies = {id(tensor): _copy(tensor) for tensor in written}

        def spared(tensor: Tensor) -> Tensor:
            return copies.get(id(tensor), tensor)

        out = func(*map_arguments(args, spared), **map_arguments(kwargs, spared))
        results = tensors_in(out) or list(copies.values())
        changed = {id(old): new for old, new in zip(results, self._changed(sites, results), strict=True)}
        for tensor in {id(t): t for t in written}.values():
            copy = copies[id(tensor)]
            tensor.copy_(changed.get(id(copy), copy))
            changed[id(copy)] = tensor
        self._sites(facts, position, count=True)
        self._done = True
        return _with_tensors(out, lambda tensor: changed.get(id(tensor), tensor))

    def edited(self, call: TorchCall, out: Any, found: list[Tensor]) -> tuple[Any, list[Tensor]]:
        """What the caller gets, and the tensors in it."""
        if self._done:
            self._done = False
            return out, found
        sites = self._sites(call.facts, call.position, count=True)
        if not sites:
            return out, found
        changed = {id(old): new for old, new in zip(found, self._changed(sites, found), strict=True)}
        for old in found:
            if changed[id(old)] is not old and self._recorder.knows(old):  # it handed its argument back
                self._put_instead(old, changed[id(old)])
        return _with_tensors(out, lambda t: changed.get(id(t), t)), [changed[id(tensor)] for tensor in found]

    def _changed(self, sites: list[tuple[Run, Site]], tensors: list[Tensor]) -> list[Tensor]:
        edits: list[Applied] = []
        for run, site in sites:
            own = [Applied(edit, site.label, run.forward) for _, edit in site.edits]
            tensors = apply_all(own, tensors, self._apply)
            run.applied.update(number for number, _ in site.edits)
            edits += own
        self._recorder.edited[len(self._recorder.nodes)] = edits
        return tensors

    def _apply(self, edit: Edit, tensor: Tensor, moment: Moment) -> Tensor:
        if _is_wrapped(tensor):
            raise BadEdit(
                f"{edit} of {moment.label}: it runs inside a function transform (vmap, grad), where the batch "
                "dimension is not visible. Edit an operation outside."
            )
        _check_not_checkpointed(edit, moment)
        self._applying = True
        try:
            with aside(self._recorder):
                return edit.apply(tensor, moment)
        finally:
            self._applying = False

    # ---- tensors that are read in place of others ------------------------------------------------

    def _exchanged(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        if all(self.seen(tensor) is tensor for tensor in tensors_in((args, kwargs))):
            return args, kwargs
        return map_arguments(args, self.seen), map_arguments(kwargs or {}, self.seen)

    def seen(self, tensor: Tensor) -> Tensor:
        """What whoever reads this tensor sees."""
        while id(tensor) in self._instead:
            tensor = self._instead[id(tensor)]
        named = self._recorder.calls.named.get(id(tensor))
        if named is None or id(tensor) in self._made or not self._has_sources:
            return tensor
        kind, name, _ = named
        changed = self._source(kind, name, tensor)
        if changed is not tensor:
            self._recorder.calls.named[id(changed)] = (kind, name, changed)
        return changed

    def source(self, kind: Kind, name: str, tensor: Tensor) -> Tensor:
        """A tensor comes into the run; the recorder is about to note it."""
        if id(tensor) not in self._made:
            tensor = self._source(kind, name, tensor)
        if id(tensor) in self._made:
            self._recorder.edited[len(self._recorder.nodes)] = self._made[id(tensor)]
        return tensor

    def _source(self, kind: Kind, name: str, tensor: Tensor) -> Tensor:
        changed, edits = tensor, []
        for run in () if self._applying else self._runs:
            site = run.plan.sources.get((kind, name))
            if site is not None:
                own = [Applied(edit, site.label, run.forward) for _, edit in site.edits]
                changed = apply_all(own, [changed], self._apply)[0]
                run.applied.update(number for number, _ in site.edits)
                edits += own
        if edits:
            self._made[id(changed)] = edits
            self._put_instead(tensor, changed)
        return changed

    def _put_instead(self, old: Tensor, new: Tensor) -> None:
        self._instead[id(old)] = new
        self._held += [old, new]

    def result(self, out: Any) -> Any:
        """What the target returned, where it returned a tensor that another one stands for."""
        return rebuilt(out, self.seen) if self._instead else out


@contextmanager
def following(recorder: Recorder, plan: Plan, forward: int = 0) -> Iterator[tuple[Editor, Run]]:
    """Let a recorder apply a plan to what it records in the block."""
    if isinstance(recorder.editor, Editor):
        with recorder.editor.following(plan, forward) as run:
            yield recorder.editor, run
        return
    editor = recorder.editor = Editor(recorder)
    plain: Any = recorder.__torch_function__
    recorder.__torch_function__ = MethodType(editor.wrap(plain.__func__), recorder)  # type: ignore[method-assign]
    try:
        with editor.following(plan, forward) as run:
            yield editor, run
    finally:
        recorder.__torch_function__ = plain  # type: ignore[method-assign]
        recorder.editor = None


def _copy(tensor: Tensor) -> Tensor:
    """With the strides of the original, so that the same kernels run."""
    copy = tensor.clone()
    if tensor.layout is torch.strided and not tensor.is_nested and copy.stride() != tensor.stride():
        copy = new_like(tensor).copy_(tensor)
    return copy


def _with_tensors(out: Any, exchange: Callable[[Tensor], Tensor]) -> Any:
    """The same result with other tensors; torch's named tuples are not made like other people's."""
    if isinstance(out, tuple) and type(out).__module__.startswith("torch.return_types"):
        return type(out)([map_arguments(item, exchange) for item in out])
    return map_arguments(out, exchange)


def _check_not_checkpointed(edit: Edit, moment: Moment) -> None:
    module = sys.modules.get("torch.utils.checkpoint")
    file = module.__file__ if module is not None else None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == file:
            raise BadEdit(
                f"{edit} of {moment.label}: it runs inside torch.utils.checkpoint, which computes it again, without "
                "the edit, when gradients are needed. Switch checkpointing off while editing."
            )
        frame = frame.f_back
