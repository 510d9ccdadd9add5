"""Names and functions of others that are exchanged for a while, all together, and put back.

A recording does this in every step, so it must be quick. Names in a module are exchanged in its table. Of a function in
a class only the code is exchanged: the function stays who it is, for those who hold it under another name, and Python
need not forget what it knows about the class and all its subclasses, as it does when an attribute is set.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from operator import is_, setitem
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

_get, _set = dict.get, setitem
_exhaust: Callable[..., Any] = partial(deque, maxlen=0)  # all of it, without a turn in Python for each
_OBSERVER: Any = "stands for the observer until it is put here"


class _Attribute(NamedTuple):
    """Of a class that is not written in Python, or that inherits it."""

    owner: Any
    name: str
    inherited: bool
    original: Any  # as it stands in the owner's own table; where it is inherited, what was found
    replacement: Any

    def fits(self) -> bool:
        """Whether the name still means what it did."""
        found = self.owner.__dict__.get(self.name)
        return found is self.original or (self.inherited and getattr(self.owner, self.name) is self.original)

    def take_off(self) -> None:
        if self.inherited:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.original)


class Exchanges:
    """What is exchanged together. `make` gets the original as a function of its own and returns what is called instead.

    Exchanges come into force with `put`.
    """

    def __init__(self) -> None:
        self.are_on = False
        # Of names in modules: the table of the module, the name, what is there and what is put there.
        self._tables: list[dict[str, Any]] = []
        self._keys: list[str] = []
        self._originals: list[Any] = []
        self._replacements: list[Any] = []
        self._codes: list[tuple[Any, str, Any, FunctionType, CodeType, CodeType]] = []
        self._attributes: list[_Attribute] = []

    def __bool__(self) -> bool:
        return bool(self._tables or self._codes or self._attributes)

    def add(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        if isinstance(owner, ModuleType):
            table = vars(owner)
            self._tables.append(table)
            self._keys.append(name)
            self._originals.append(table[name])
            self._replacements.append(make(table[name]))
        elif not self.add_code(owner, name, make):
            inherited = name not in vars(owner)
            original = getattr(owner, name) if inherited else owner.__dict__[name]
            self._attributes.append(_Attribute(owner, name, inherited, original, make(getattr(owner, name))))

    def add_code(self, owner: Any, name: str, make: Callable[[Any], Any], packed: bool = False) -> bool:
        """Whether it can be done: only with a function, or with one that is wrapped, and not with any closure.

        With `packed` the observer of a method gets three things: the object, a tuple and a dict of arguments.
        """
        entry = owner.__dict__.get(name)
        function = getattr(entry, "__func__", entry)
        function = getattr(function, "__wrapped__", function)  # the wrapper calls this very function
        if not can_be_exchanged(function):
            return False
        if packed and function.__code__.co_freevars:
            return False
        original = FunctionType(
            function.__code__, function.__globals__, name, function.__defaults__, function.__closure__
        )
        original.__kwdefaults__ = function.__kwdefaults__
        code = _handing_over_to(make(original), _PACKED if packed else _HANDING_OVER[function.__code__.co_freevars])
        self._codes.append((owner, name, entry, function, function.__code__, code))
        return True

    def fit(self) -> bool:
        """Whether nobody else has exchanged anything since."""
        if not all(map(is_, map(_get, self._tables, self._keys), self._originals)):
            return False
        for owner, name, entry, function, code, _ in self._codes:
            if owner.__dict__.get(name) is not entry or function.__code__ is not code:
                return False
        return all(map(_Attribute.fits, self._attributes))

    def put(self) -> None:
        self.are_on = True
        _exhaust(map(_set, self._tables, self._keys, self._replacements))
        for _, _, _, function, _, code in self._codes:
            function.__code__ = code
        for attribute in self._attributes:
            setattr(attribute.owner, attribute.name, attribute.replacement)

    def take_off(self) -> None:
        if self.are_on:
            self.are_on = False
            _exhaust(map(_set, self._tables, self._keys, self._originals))
            for _, _, _, function, code, _ in self._codes:
                function.__code__ = code
            for attribute in self._attributes:
                attribute.take_off()


def can_be_exchanged(function: Any) -> bool:
    """Whether the code of a function can be: it is written in Python and needs nothing from around it."""
    return isinstance(function, FunctionType) and function.__code__.co_freevars in _HANDING_OVER


def _hand_over(*args: Any, **kwargs: Any) -> Any:
    observer = "stands for the observer until it is put here"
    return observer(*args, **kwargs)  # type: ignore[operator]


def _hand_over_packed(self: Any, *args: Any, **kwargs: Any) -> Any:
    observer = "stands for the observer until it is put here"
    return observer(self, args, kwargs)  # type: ignore[operator]


def _with_class(__class__: Any) -> FunctionType:
    def hand_over(*args: Any, **kwargs: Any) -> Any:
        __class__  # noqa: B018  exchanged code must have the same free variables: `super()` needs this one
        observer = "stands for the observer until it is put here"
        return observer(*args, **kwargs)  # type: ignore[operator]

    return hand_over  # type: ignore[return-value]


#: Free variables of the original -> code with the same ones.
_HANDING_OVER = {(): _hand_over.__code__, ("__class__",): _with_class(None).__code__}
_PACKED = _hand_over_packed.__code__


def _handing_over_to(observer: Callable[..., Any], code: CodeType) -> CodeType:
    """The observer stands among the constants: what is global there belongs to the module of the original."""
    return code.replace(co_consts=tuple(observer if c == _OBSERVER else c for c in code.co_consts))
