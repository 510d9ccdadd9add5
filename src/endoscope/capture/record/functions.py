"""What is known about the functions of torch: their plain name, what they overwrite, what they let out.

Each function is described once, when it is met first, so everything here may be slow.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import torch

from endoscope.capture.data.functions import IN_PLACE_OPERATORS, RUNNING_STATISTICS, FunctionFacts, Role, plain_name
from endoscope.capture.patch.torch_private import OpOverload, OpOverloadPacket
from endoscope.capture.record.leaves import tensors_in

#: Tensor properties that hand out a tensor; all other properties are metadata.
TENSOR_PROPERTIES = frozenset({"T", "mT", "H", "mH", "real", "imag", "data", "grad"})
#: Tensor properties whose assignment changes values.
WRITABLE_PROPERTIES = frozenset({"data", "real", "imag"})

#: Calls that return a tensor, or end in an underscore, and compute nothing.
NOT_OPERATIONS = frozenset(
    """requires_grad_ retain_grad register_hook register_post_accumulate_grad_hook share_memory_ is_shared
    backward __repr__ __format__ __str__ __hash__ __reduce_ex__ __reduce__ __setstate__ __len__ __dir__
    storage untyped_storage _typed_storage data_ptr size dim ndimension stride numel nelement
    element_size storage_offset is_contiguous is_floating_point is_complex is_signed is_inference get_device
    has_names _is_view is_set_to type_as_name _set_grad_enabled set_grad_enabled is_tensor is_storage
    result_type can_cast promote_types is_same_size __torch_dispatch__ _is_zerotensor is_conj is_neg is_pinned
    is_coalesced sparse_dim dense_dim _dimI _dimV _nnz qscheme q_scale q_zero_point q_per_channel_axis
    _autocast_to_full_precision _has_compatible_shallow_copy_type __cuda_array_interface__ module_load
    _nested_tensor_size _nested_tensor_strides _nested_tensor_storage_offsets _assert_async
    __dlpack_device__ names __subclasscheck__ _backward_hooks broadcast_shapes get_default_dtype""".split()
)

#: Calls through which a value leaves torch. Those in `CONTROL` only ever give a bool: they steer Python.
LEAVING = frozenset(
    "item tolist numpy __int__ __float__ __index__ __complex__ __array__ __dlpack__ _local_scalar_dense".split()
)
CONTROL = frozenset("__bool__ is_nonzero equal allclose __contains__".split())

#: In-place calls that never look at what they overwrite.
OVERWRITERS = frozenset(
    """copy_ zero_ fill_ bernoulli_ normal_ uniform_ random_ exponential_ geometric_ log_normal_ cauchy_ set_
    """.split()
)

#: In-place calls after which the tensor looks at other memory: nothing is written into what either memory holds.
MOVING_MEMORY = frozenset(("set_", "data="))

#: In-place calls that only change the shape of the tensor.
RESHAPING = frozenset("t_ transpose_ swapdims_ swapaxes_ squeeze_ unsqueeze_".split())

#: Functions of randomness beyond those that torch tags.
RANDOM_NAMES = frozenset(
    """rand randn randint randperm rand_like randn_like randint_like bernoulli bernoulli_ multinomial normal
    normal_ uniform_ random_ exponential_ geometric_ log_normal_ cauchy_ poisson dropout dropout_
    alpha_dropout alpha_dropout_ feature_dropout feature_dropout_ feature_alpha_dropout feature_alpha_dropout_
    native_dropout rrelu rrelu_ rrelu_with_noise rrelu_with_noise_ binomial _sample_dirichlet _standard_gamma
    scaled_dot_product_attention lstm gru rnn_tanh rnn_relu fractional_max_pool2d fractional_max_pool3d
    """.split()
)

#: Results that a second call cannot be expected to repeat.
UNINITIALISED = frozenset("empty empty_like new_empty empty_strided new_empty_strided empty_permuted new".split())
UNREPEATABLE = UNINITIALISED | frozenset(
    "grad _make_dual _unpack_dual resize_ resize_as_ fused_moving_avg_obs_fake_quant".split()
)

MOVING = frozenset("to cuda cpu xpu ipu tensor as_tensor new_tensor type asarray".split())

BUILTIN_NAMESPACES = frozenset("aten prim prims quantized mkldnn _quantized inductor".split())


def overwritten(facts: FunctionFacts, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """The tensors that a call overwrites."""
    if kwargs.get("out") is not None:
        return tensors_in(kwargs["out"])
    return [t for t in facts.written(args, kwargs) if isinstance(t, torch.Tensor)] if facts.written else []


_described: dict[Any, FunctionFacts] = {}  # by all traces so far


def facts_of(func: Any) -> FunctionFacts:
    """What is known about a function of torch."""
    return _described.get(func) or _described.setdefault(func, describe(func))


def timed(func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> tuple[Any, int, int]:
    """Call; the result, and when the call began and ended."""
    started = perf_counter_ns()
    out = func(*args, **kwargs)
    return out, started, perf_counter_ns()


def describe(func: Any) -> FunctionFacts:
    if isinstance(func, (OpOverload, OpOverloadPacket)):
        return _describe_registered(func)
    name = getattr(func, "__name__", None) or type(func).__name__
    owner = getattr(func, "__self__", None)
    if name in ("__get__", "__set__", "__delete__") and owner is not None:
        return _describe_property(getattr(owner, "__name__", ""), name)
    return _describe_named(name)


def _describe_property(prop: str, access: str) -> FunctionFacts:
    if access == "__get__" and prop in TENSOR_PROPERTIES:
        if prop == "grad":
            return FunctionFacts(prop, prop, Role.GRADIENT, replayable=False)
        return FunctionFacts(prop, prop, Role.RECORD)
    if access == "__set__" and prop in WRITABLE_PROPERTIES:
        # `x.data = y` replaces x whole; `x.real = y` leaves the other half.
        return FunctionFacts(prop, f"{prop}=", Role.WRITE, _first_argument, overwrites=prop == "data")
    return FunctionFacts(prop, prop, Role.PASS)


def _describe_named(name: str) -> FunctionFacts:
    bare = plain_name(name)
    if name in NOT_OPERATIONS:
        return FunctionFacts(bare, name, Role.PASS)
    if name in LEAVING or name in CONTROL:
        return FunctionFacts(bare, name, Role.LEAVE)
    if name == "__deepcopy__":
        return FunctionFacts(bare, name, Role.COPY)
    random = name in RANDOM_NAMES
    replayable = name not in UNREPEATABLE
    if name in RUNNING_STATISTICS:
        return FunctionFacts(bare, name, Role.WRITE, _running_statistics(name), uncounted=True)
    written = _written_by_schema(name)
    if written is not None:
        return FunctionFacts(bare, name, Role.WRITE, written, random=random, replayable=replayable)
    if _is_in_place(name):
        return FunctionFacts(
            bare,
            name,
            Role.WRITE,
            _first_argument,
            overwrites=name in OVERWRITERS,
            reshapes=name in RESHAPING,
            random=random,
            replayable=replayable,
        )
    return FunctionFacts(bare, name, Role.RECORD, random=random, replayable=replayable, moves=name in MOVING)


def _describe_registered(func: OpOverload | OpOverloadPacket) -> FunctionFacts:
    """An operator called through `torch.ops`: its schema says what it overwrites."""
    overload = func if isinstance(func, OpOverload) else getattr(func, func.overloads()[0])
    namespace, _, name = overload._schema.name.partition("::")
    written = [i for i, a in enumerate(overload._schema.arguments) if a.alias_info and a.alias_info.is_write]
    names = [overload._schema.arguments[i].name for i in written]
    bare = plain_name(name)
    random = name in RANDOM_NAMES or torch.Tag.nondeterministic_seeded in overload.tags
    if name in NOT_OPERATIONS or namespace == "profiler":  # optimizers mark their steps for torch's profiler
        role = Role.PASS
    elif namespace not in BUILTIN_NAMESPACES:
        role = Role.OPEN
    elif name in LEAVING or name in CONTROL:
        role = Role.LEAVE
    else:
        role = Role.WRITE if written else Role.RECORD
    pick = _positions(written, names) if written else None
    return FunctionFacts(bare, name, role, pick, overwrites=name in OVERWRITERS, random=random)


def _written_by_schema(name: str) -> Callable[[tuple[Any, ...], dict[str, Any]], list[Any]] | None:
    """Functions that overwrite other arguments than (just) their first: fused optimizers, observers."""
    packet = getattr(torch.ops.aten, name, None) if not name.startswith("__") else None
    for overload in packet.overloads() if packet is not None else ():
        arguments = getattr(packet, overload)._schema.arguments
        written = [i for i, a in enumerate(arguments) if a.alias_info and a.alias_info.is_write and not a.is_out]
        if written and written != [0]:
            return _positions(written, [arguments[i].name for i in written])
    return None


def _is_in_place(name: str) -> bool:
    if name == "__setitem__" or name == "__delitem__":
        return True
    if name.startswith("__"):
        return name.endswith("__") and name[2:-2] in IN_PLACE_OPERATORS
    return name.endswith("_")


def _first_argument(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    first = args[0] if args else kwargs.get("input", kwargs.get("self"))
    return list(first) if isinstance(first, (list, tuple)) else [first]


def _positions(positions: list[int], names: list[str]) -> Callable[[tuple[Any, ...], dict[str, Any]], list[Any]]:
    def pick(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        found: list[Any] = []
        for position, name in zip(positions, names, strict=True):
            value = args[position] if position < len(args) else kwargs.get(name)
            found.extend(value if isinstance(value, (list, tuple)) else [value])
        return found

    return pick


def _running_statistics(name: str) -> Callable[[tuple[Any, ...], dict[str, Any]], list[Any]]:
    *statistics, (position, keyword) = RUNNING_STATISTICS[name]
    every = _positions([p for p, _ in statistics], [n for _, n in statistics])

    def pick(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        training = args[position] if position < len(args) else kwargs.get(keyword)
        return every(args, kwargs) if training else []

    return pick
