"""What is known of a function of torch, as plain data, and the names by which it is called.

`record/functions.py` finds it out for each function that is met.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any


class Role(IntEnum):
    """What the recorder does with a call."""

    PASS = 0  # no operation: metadata reads, flags, hooks
    RECORD = 1  # an operation
    WRITE = 2  # an operation that overwrites at least one of its arguments
    LEAVE = 3  # a value leaves torch for Python
    OPEN = 4  # a registered operator with a Python body: look inside
    COPY = 5  # copy.deepcopy of a tensor
    GRADIENT = 6  # `x.grad`: what backward passes have left there


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """One torch function, as far as tracing cares."""

    type: str  # plain name: add for +, add_, __iadd__
    name: str  # the function's own name
    role: Role
    written: Callable[[tuple[Any, ...], dict[str, Any]], list[Any]] | None = None  # the arguments it overwrites
    overwrites: bool = False  # it never reads what it overwrites (copy_, zero_, out=)
    random: bool = False  # it draws from a random number generator
    replayable: bool = True  # calling it again on the same values gives the same result
    opaque: bool = False  # its body could not be seen
    reshapes: bool = False  # in place, but only the shape: no memory is written
    uncounted: bool = False  # it overwrites running statistics without moving their version counters
    moves: bool = False  # its result may lie on another device than its arguments

    def writes_nothing_now(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> bool:
        """Batch norm writes only while training; otherwise it is as ordinary as any other function."""
        return self.uncounted and self.written is not None and not self.written(args, kwargs or {})


#: Through these the memory itself goes out: it can be written from there, whatever is in it.
SHARING = frozenset("numpy __array__ __dlpack__".split())

#: Hidden side effects: position and name of arguments that are updated when `training` (or its like) is true.
RUNNING_STATISTICS = {
    "batch_norm": ((3, "running_mean"), (4, "running_var"), (5, "training")),
    "instance_norm": ((3, "running_mean"), (4, "running_var"), (5, "use_input_stats")),
}


def plain_name(name: str) -> str:
    """`add` for `add`, `add_`, `__iadd__`, `__radd__`; other names as torch spells them."""
    if name.startswith("__") and name.endswith("__") and len(name) > 4:
        bare = name[2:-2]
        if bare in IN_PLACE_OPERATORS or bare in _MIRRORED_OPERATORS:
            bare = bare[1:]
        return _OPERATOR_FUNCTIONS.get(bare, bare)
    if name.endswith("_") and not name.endswith("__") and len(name) > 1:
        name = name[:-1]
    return _SAME_AS.get(name, name)


#: What the user wrote and what torch calls, where one function serves under two names.
_SAME_AS = {
    "split_with_sizes": "split",
    "true_divide": "div",
    "divide": "div",
    "multiply": "mul",
    "subtract": "sub",
}


_OPERATORS = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift div".split()
IN_PLACE_OPERATORS = frozenset("i" + o for o in _OPERATORS)
_MIRRORED_OPERATORS = frozenset({"radd", "rmul", "rand", "ror", "rxor", "rmatmul", "rlshift", "rrshift", "rdiv"})
#: Python spells some operators differently from the torch function that they call.
_OPERATOR_FUNCTIONS = {
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
    "invert": "bitwise_not",
}
#: The reverse, so that a look-up by the operator's Python name is understood too.
SPOKEN_NAMES = dict(_OPERATOR_FUNCTIONS)
