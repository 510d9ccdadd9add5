"""Names and functions that are exchanged for a while, and put back."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from endoscope.capture.exchange import NO_WAYS, Exchanges, Modes, Shortcut


class Base:
    def greet(self, name: str, *, mark: str = "!") -> str:
        return f"hello {name}{mark}"

    def __new__(cls, *args: Any) -> Base:
        return super().__new__(cls)

    @classmethod
    def make(cls) -> str:
        return cls.__name__

    @staticmethod
    def add(a: int, b: int = 2) -> int:
        return a + b


class Derived(Base):
    def greet(self, name: str, *, mark: str = "!") -> str:
        return super().greet(name, mark=mark).upper()


@pytest.fixture
def module() -> ModuleType:
    made = ModuleType("made")
    made.double = lambda x: 2 * x  # type: ignore[attr-defined]
    return made


def counting(calls: list[str], name: str) -> Any:
    def make(original: Any) -> Any:
        def observed(*args: Any, **kwargs: Any) -> Any:
            calls.append(name)
            return original(*args, **kwargs)

        return observed

    return make


def test_what_is_bound_elsewhere_is_exchanged_too(module: ModuleType) -> None:
    calls: list[str] = []
    exchanges = Exchanges()
    for name in ("greet", "make", "add", "__new__"):
        exchanges.add(Base, name, counting(calls, name))
    exchanges.add(module, "double", counting(calls, "double"))
    bound, kept = Base().greet, dict(vars(Base))
    assert calls == [] and not exchanges.are_on
    exchanges.put()
    assert (bound("you"), Base.make(), Derived.make(), Base.add(1), module.double(4)) == (
        "hello you!", "Base", "Derived", 3, 8,
    )  # fmt: skip
    assert calls == ["greet", "make", "make", "add", "double"]
    assert Derived().greet("you", mark="?") == "HELLO YOU?"
    assert calls[5:] == ["__new__", "greet"]
    exchanges.take_off()
    assert bound("you") == "hello you!" and Derived.make() == "Derived" and module.double(4) == 8
    assert len(calls) == 7
    assert dict(vars(Base)) == kept


def test_the_same_again_and_again() -> None:
    calls: list[str] = []
    exchanges = Exchanges()
    exchanges.add(Base, "add", counting(calls, "add"))
    for _ in range(3):
        assert exchanges.fit()
        exchanges.put()
        assert not exchanges.fit()  # it is on
        Base.add(1)
        exchanges.take_off()
    assert calls == ["add"] * 3


def test_a_function_with_a_closure_is_exchanged_by_name() -> None:
    def outer(value: int) -> type:
        class Closed:
            def get(self) -> int:
                return value

        return Closed

    closed = outer(3)
    calls: list[str] = []
    exchanges = Exchanges()
    assert not exchanges.add_code(closed, "get", counting(calls, "get"))
    exchanges.add(closed, "get", counting(calls, "get"))
    before = vars(closed)["get"]
    exchanges.put()
    assert closed().get() == 3
    exchanges.take_off()
    assert closed().get() == 3 and calls == ["get"] and vars(closed)["get"] is before


def test_an_inherited_name_is_gone_afterwards() -> None:
    calls: list[str] = []
    exchanges = Exchanges()
    exchanges.add(Derived, "add", counting(calls, "add"))
    exchanges.put()
    assert Derived.add(1) == 3
    exchanges.take_off()
    assert calls == ["add"] and "add" not in vars(Derived)


def test_it_is_noticed_that_somebody_else_exchanged_something(module: ModuleType) -> None:
    exchanges = Exchanges()
    exchanges.add(module, "double", counting([], "double"))
    exchanges.add(Base, "add", counting([], "add"))
    assert exchanges.fit()
    module.double = abs  # type: ignore[attr-defined]
    assert not exchanges.fit()


def test_a_shortcut_is_asked_first() -> None:
    class Called:
        def call(self, *args: int, **kwargs: int) -> str:
            return f"plain {args} {kwargs}"

    seen: list[tuple[Any, ...]] = []
    ways: dict[int, tuple[Any, str]] = {}

    def observed(original: Any) -> Any:
        return lambda self, args, kwargs: "observed " + original(self, *args, **kwargs)

    def quick(fact: str, observer: Any, self: Any, args: Any, kwargs: Any) -> Any:
        seen.append((fact, self, args, kwargs))
        return observer(self, args, kwargs) if kwargs else f"known {args}"

    exchanges, shortcut = Exchanges(), Shortcut()
    shortcut.ways = ways
    assert exchanges.add_code(Called, "call", observed, shortcut)
    one, other = Called(), Called()
    ways[id(one)] = quick, "a fact"
    exchanges.put()
    assert one.call(1) == "known (1,)"
    assert one.call(1, b=2) == "observed plain (1,) {'b': 2}"
    assert other.call(1) == "observed plain (1,) {}"
    assert seen == [("a fact", one, (1,), {}), ("a fact", one, (1,), {"b": 2})]
    assert hash(Called.call.__code__)  # profilers have tables of it
    shortcut.ways = NO_WAYS
    assert one.call(1) == "observed plain (1,) {}"
    exchanges.take_off()
    assert one.call(1) == "plain (1,) {}"


def test_what_computes_nothing_is_called_without_our_mode() -> None:
    class Mode(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            heard.append(func)
            return func(*args, **(kwargs or {}))

    class Theirs(Mode):
        pass

    class Called:
        def call(self, fails: bool = False) -> int:
            x = torch.ones(2).abs()
            if fails:
                raise ValueError("theirs")
            return len(x)

    heard: list[Any] = []
    exchanges, modes = Exchanges(), Modes()
    modes.ours = (Mode,)
    exchanges.add_unheard(Called, "call", modes)
    exchanges.put()
    assert hash(Called.call.__code__)
    with Mode() as mode:
        assert Called().call() == 2 and not heard
        with pytest.raises(ValueError, match="theirs"):
            Called().call(fails=True)
        assert torch._C._get_function_stack_at(0) is mode  # it is put back
        with Theirs():
            assert Called().call() == 2 and torch.Tensor.abs in heard
    exchanges.take_off()
    heard.clear()
    with Mode():
        assert Called().call() == 2 and heard


def test_nothing_is_put_where_somebody_else_has_put_something(module: ModuleType) -> None:
    exchanges = Exchanges()
    assert not exchanges.put()  # there is nothing
    exchanges.add(module, "double", counting([], "double"))
    module.double = lambda x: x  # type: ignore[attr-defined]
    theirs = module.double
    assert not exchanges.put() and not exchanges.are_on
    assert module.double is theirs
