"""Names and functions of others that are exchanged for a while, all together, and put back.

A recording does this in every step, so it must be quick. Names in a module are exchanged in its table. Of a function in
a class only the code is exchanged: the function stays who it is, for those who hold it under another name, and Python
need not forget what it knows about the class and all its subclasses, as it does when an attribute is set.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from itertools import repeat
from operator import attrgetter, getitem, is_, setitem
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch

_stack_depth, _stack_at = torch._C._len_torch_function_stack, torch._C._get_function_stack_at
_push_mode, _pop_mode = torch._C._push_on_torch_function_stack, torch._C._pop_torch_function_stack
_code_of = attrgetter("__code__")
_CODE = repeat("__code__")
_exhaust: Callable[..., Any] = partial(deque, maxlen=0)  # all of it, without a turn in Python for each
NO_WAYS: Mapping[int, Any] = {}
_OBSERVER: Any = "stands for the observer until it is put here"
_TOOLS: Any = "stands for tools until they are put here"
_SHORTCUT: Any = "stands for the shortcut until it is put here"


class Shortcut:
    """What an exchanged method asks first: id of an object -> what is called for it, and what that is told first."""

    __slots__ = ("ways",)

    def __init__(self) -> None:
        self.ways = NO_WAYS


class Modes:
    """Which modes on torch's stack are ours: recorders."""

    __slots__ = ("ours",)

    def __init__(self) -> None:
        self.ours: tuple[type, ...] = ()


class Exchanges:
    """What is exchanged together. `make` gets the original as a function of its own and returns what is called instead.

    Exchanges come into force with `put`. All lists are gone through without a turn in Python for each entry.
    """

    def __init__(self) -> None:
        self.are_on = False
        # Where all of it is found: the table of a module or class, the name there, and what it stands for.
        self._tables: list[Mapping[str, Any]] = []
        self._keys: list[str] = []
        self._found: list[Any] = []
        # Functions whose code is exchanged; names in modules, by their tables; attributes of classes, by the classes.
        self._functions: list[FunctionType] = []
        self._codes: list[CodeType] = []
        self._observing: list[CodeType] = []
        self._modules: list[dict[str, Any]] = []
        self._names: list[str] = []
        self._originals: list[Any] = []
        self._replacements: list[Any] = []
        self._attributes: list[tuple[Any, str, Any, Any]] = []  # owner, name, original, replacement
        self._inherited: list[tuple[Any, str, Any, Any]] = []  # owner, name, original, replacement

    def add(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        if not isinstance(owner, ModuleType) and self.add_code(owner, name, make):
            return
        if name not in vars(owner):
            original = getattr(owner, name)
            self._inherited.append((owner, name, original, make(original)))
            return
        self.expect(owner, name)
        original, replacement = vars(owner)[name], make(getattr(owner, name))
        if not isinstance(owner, ModuleType):
            self._attributes.append((owner, name, original, replacement))
            return
        self._modules.append(vars(owner))
        self._names.append(name)
        self._originals.append(original)
        self._replacements.append(replacement)

    def add_code(self, owner: Any, name: str, make: Callable[[Any], Any], shortcut: Shortcut | None = None) -> bool:
        """Whether it can be done: only with a function, or with one that is wrapped, and not with any closure.

        With a `shortcut` the observer of a method gets three things: the object, a tuple and a dict of arguments. If
        there is a way for the object, it is told what it is told first, the observer and the three.
        """
        entry = vars(owner).get(name)
        function = getattr(entry, "__func__", entry)
        function = getattr(function, "__wrapped__", function)  # the wrapper calls this very function
        if not can_be_exchanged(function):
            return False
        if shortcut is not None and function.__code__.co_freevars:
            return False
        code = _PACKED if shortcut is not None else _HANDING_OVER[function.__code__.co_freevars]
        constants = {_OBSERVER: make(_twin(function)), _SHORTCUT: shortcut}
        self.expect(owner, name)
        self._add_function(function, _with_constants(code, constants))
        return True

    def add_unheard(self, owner: Any, name: str, modes: Modes, template: Any = None, *tools: Any) -> None:
        """A method that computes nothing is called without the one mode of ours; modes of others hear it all the same.

        Its code is exchanged for one that needs no other function of Python. That of a `template` gets, as its tools, a
        function that does this, what is needed to see whether the one mode is ours, and the `tools`.
        """
        function = vars(owner).get(name)
        if can_be_exchanged(function) and not function.__code__.co_freevars:
            self.expect(owner, name)
            seen = modes, _stack_depth, _stack_at
            whole = _twin(function), *seen, _pop_mode, _push_mode
            code = _with_constants(_hand_over_unheard.__code__, {_TOOLS: whole})
            if template is not None:
                unheard = FunctionType(code, globals(), name)
                code = _with_constants(template.__code__, {_TOOLS: (unheard, *seen, *tools)})
            self._add_function(function, code)

    def _add_function(self, function: FunctionType, code: CodeType) -> None:
        self._functions.append(function)
        self._codes.append(function.__code__)
        self._observing.append(code)

    def expect(self, owner: Any, name: str) -> None:
        """The exchanges fit as long as this stays what it is now, also if it is not exchanged itself."""
        if name in vars(owner):
            self._tables.append(vars(owner))
            self._keys.append(name)
            self._found.append(vars(owner)[name])

    def fit(self) -> bool:
        """Whether nobody else has exchanged anything since."""
        try:
            return (
                all(map(is_, map(getitem, self._tables, self._keys), self._found))
                and all(map(is_, map(_code_of, self._functions), self._codes))
                and (not self._inherited or self._inherited_fit())
            )
        except (KeyError, AttributeError):
            return False

    def _inherited_fit(self) -> bool:
        return all(name not in vars(o) and getattr(o, name) is found for o, name, found, _ in self._inherited)

    def put(self) -> bool:
        """Whether it could be done: not if there is nothing, or if somebody else has exchanged anything since."""
        if not (self._tables or self._inherited) or not self.fit():
            return False
        self.are_on = True
        _exhaust(map(setitem, self._modules, self._names, self._replacements))
        _exhaust(map(setattr, self._functions, _CODE, self._observing))
        for owner, name, _, replacement in self._attributes + self._inherited:
            setattr(owner, name, replacement)
        return True

    def take_off(self) -> None:
        if self.are_on:
            self.are_on = False
            _exhaust(map(setitem, self._modules, self._names, self._originals))
            _exhaust(map(setattr, self._functions, _CODE, self._codes))
            for owner, name, original, replacement in self._attributes:
                if vars(owner).get(name) is replacement:  # or somebody else's is there meanwhile
                    setattr(owner, name, original)
            for owner, name, _, _ in self._inherited:
                delattr(owner, name)


def can_be_exchanged(function: Any) -> bool:
    """Whether the code of a function can be: it is written in Python and needs nothing from around it."""
    return isinstance(function, FunctionType) and function.__code__.co_freevars in _HANDING_OVER


def _hand_over(*args: Any, **kwargs: Any) -> Any:
    observer = "stands for the observer until it is put here"
    return observer(*args, **kwargs)  # type: ignore[operator]


def _hand_over_packed(self: Any, *args: Any, **kwargs: Any) -> Any:
    shortcut: Any = "stands for the shortcut until it is put here"
    observer: Any = "stands for the observer until it is put here"
    way = shortcut.ways.get(id(self))
    if way is not None:
        return way[0](way[1], observer, self, args, kwargs)
    return observer(self, args, kwargs)


def _hand_over_unheard(self: Any, *args: Any, **kwargs: Any) -> Any:
    tools: Any = "stands for tools until they are put here"
    original, modes, depth, top, pop, push = tools
    if depth() != 1 or not isinstance(top(0), modes.ours):
        return original(self, *args, **kwargs)
    mode = pop()
    try:
        return original(self, *args, **kwargs)
    finally:
        push(mode)


def _with_class(__class__: Any) -> FunctionType:
    def hand_over(*args: Any, **kwargs: Any) -> Any:
        __class__  # noqa: B018  exchanged code must have the same free variables: `super()` needs this one
        observer = "stands for the observer until it is put here"
        return observer(*args, **kwargs)  # type: ignore[operator]

    return hand_over  # type: ignore[return-value]


#: Free variables of the original -> code with the same ones.
_HANDING_OVER = {(): _hand_over.__code__, ("__class__",): _with_class(None).__code__}
_PACKED = _hand_over_packed.__code__


def _twin(function: FunctionType) -> FunctionType:
    """A function of its own with the same code."""
    code, name = function.__code__, function.__name__
    twin = FunctionType(code, function.__globals__, name, function.__defaults__, function.__closure__)
    twin.__kwdefaults__ = function.__kwdefaults__
    return twin


def _with_constants(code: CodeType, named: Mapping[Any, Any]) -> CodeType:
    """What is meant stands among the constants: what is global there belongs to the module of the original."""
    return code.replace(co_consts=tuple([named.get(constant, constant) for constant in code.co_consts]))
