"""What all kernels are made of: numbers at raw addresses, their bits, the smaller of two; and how to compile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

INT32 = ir.IntType(32)
INT64 = ir.IntType(64)
FLOAT = ir.FloatType()
DOUBLE = ir.DoubleType()

ADDRESS = types.int64
INDEX = types.int64


def kernel(signature: str, *, may_reorder: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function for one signature, as early as its definition.

    Without a signature numba would compile it again for every constant that it is called with. Nothing of
    Python is used inside and no wrapper made, so what comes out stands on its own and can be kept in a file.
    Where sums may be added up in any order, LLVM uses wide registers for them.
    """
    return njit(  # type: ignore[no-any-return]
        signature,
        error_model="numpy",
        fastmath={"reassoc", "contract"} if may_reorder else False,
        nogil=True,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
    )


def primitive(result: Any, parameters: tuple[Any, ...], build: Callable[..., Any]) -> Any:
    """A function for compiled code from one that emits LLVM instructions: ``build(builder, *arguments)``."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return build(builder, *arguments)

    answer = result(*parameters), generate

    # numba reads the number of parameters from the Python signature, so each number is written out.
    def none(_typing: Any) -> Any:
        return answer

    def one(_typing: Any, a: Any) -> Any:
        return answer

    def two(_typing: Any, a: Any, b: Any) -> Any:
        return answer

    def three(_typing: Any, a: Any, b: Any, c: Any) -> Any:
        return answer

    def four(_typing: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        return answer

    return intrinsic((none, one, two, three, four)[len(parameters)])


def pointer(builder: Any, address: Any, index: Any, machine_type: Any) -> Any:
    """A pointer to the index-th number at an address."""
    return builder.gep(builder.inttoptr(address, machine_type.as_pointer()), [index])


def nothing() -> Any:
    """What a primitive returns that is called for its effect."""
    return ir.Constant(INT32, 0)


def _reader(of: Any, machine_type: Any) -> Any:
    return primitive(of, (ADDRESS, INDEX), lambda b, at, i: b.load(pointer(b, at, i, machine_type)))


def _writer(of: Any, machine_type: Any) -> Any:
    def build(builder: Any, address: Any, index: Any, value: Any) -> Any:
        builder.store(value, pointer(builder, address, index, machine_type))
        return nothing()

    return primitive(types.int32, (ADDRESS, INDEX, of), build)


get_u8 = _reader(types.uint8, ir.IntType(8))
get_i16 = _reader(types.int16, ir.IntType(16))
get_u16 = _reader(types.uint16, ir.IntType(16))
get_i32 = _reader(types.int32, INT32)
get_u32 = _reader(types.uint32, INT32)
get_i64 = _reader(types.int64, INT64)
get_u64 = _reader(types.uint64, INT64)
get_f32 = _reader(types.float32, FLOAT)
get_f64 = _reader(types.float64, DOUBLE)

set_i16 = _writer(types.int16, ir.IntType(16))
set_u32 = _writer(types.uint32, INT32)
set_i32 = _writer(types.int32, INT32)
set_i64 = _writer(types.int64, INT64)
set_f32 = _writer(types.float32, FLOAT)
set_f64 = _writer(types.float64, DOUBLE)

float_of_bits = primitive(types.float32, (types.uint32,), lambda b, x: b.bitcast(x, FLOAT))
bits_of_float = primitive(types.uint32, (types.float32,), lambda b, x: b.bitcast(x, INT32))
double_of_bits = primitive(types.float64, (types.uint64,), lambda b, x: b.bitcast(x, DOUBLE))
bits_of_double = primitive(types.uint64, (types.float64,), lambda b, x: b.bitcast(x, INT64))


def _select(compare: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    return lambda builder, a, b: builder.select(compare(builder, a, b), a, b)


# Those of Python work as well, but cost a compilation for each pair of types.
_DOUBLES = (types.float64, types.float64)
lesser = primitive(types.float64, _DOUBLES, _select(lambda builder, a, b: builder.fcmp_ordered("<", a, b)))
greater = primitive(types.float64, _DOUBLES, _select(lambda builder, a, b: builder.fcmp_ordered(">", a, b)))
fewer = primitive(types.int64, (INDEX, INDEX), _select(lambda builder, a, b: builder.icmp_signed("<", a, b)))


def _extreme(name: str) -> Callable[[Any, Any, Any], Any]:
    def build(builder: Any, a: Any, b: Any) -> Any:
        kind = ir.FunctionType(DOUBLE, [DOUBLE, DOUBLE])
        function = builder.module.declare_intrinsic(name, [DOUBLE], kind)
        return builder.call(function, [a, b], fastmath=("nnan", "nsz"))

    return build


# Whoever uses these looks at the result only after having made sure that there was no NaN. For that, LLVM can
# find the extremes of a whole loop in wide registers.
lowest = primitive(types.float64, _DOUBLES, _extreme("llvm.minnum"))
highest = primitive(types.float64, _DOUBLES, _extreme("llvm.maxnum"))


def _prefetch(builder: Any, address: Any, offset: Any) -> Any:
    byte = ir.IntType(8).as_pointer()
    place = builder.inttoptr(builder.add(address, offset), byte)
    kind = ir.FunctionType(ir.VoidType(), [byte, INT32, INT32, INT32])
    function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
    read, soon, data = ir.Constant(INT32, 0), ir.Constant(INT32, 3), ir.Constant(INT32, 1)
    builder.call(function, [place, read, soon, data])
    return nothing()


# Fetch what will be read next, so that memory and arithmetic do not wait for each other. Processors do so on their own,
# but stop at the end of every page. An address that is nobody's does no harm.
prefetch = primitive(types.int32, (ADDRESS, INDEX), _prefetch)
LINE = 64  # bytes that come from memory at once
AHEAD = 2048  # bytes: far enough to arrive in time, near enough to be there still


def _fence(builder: Any) -> Any:
    builder.fence("seq_cst")
    return nothing()


fence = primitive(types.int32, (), _fence)


def _increment(builder: Any, address: Any, index: Any) -> Any:
    bump(builder, builder.inttoptr(address, INT32.as_pointer()), index)
    return nothing()


def bump(builder: Any, counters: Any, index: Any) -> None:
    """Emit ``counters[index] += 1`` for 32-bit counters."""
    place = builder.gep(counters, [index])
    builder.store(builder.add(builder.load(place), ir.Constant(INT32, 1)), place)


increment = primitive(types.int32, (ADDRESS, INDEX), _increment)
