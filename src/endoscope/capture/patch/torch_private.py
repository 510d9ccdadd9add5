"""Every name that is private in torch and that we use, in one file.

Torch promises nothing about such names: another version may move one, rename it or drop it. Whoever makes Endoscope run
with another version of torch starts here. Each name says what it is for and what happens where torch lacks it:

- *Needed*: there is no substitute. Importing this file fails, so without it torch ≥ 2.6 is needed, the oldest that the
  package asks for. (Older ones lack some of these, or the switch by which compiled code runs eagerly.)
- A name that is patched is looked up when it is patched first: "needed from the first trace".
- Anything else is said: what stands in its place, or what is not known then.

Importing this file must not import the compiler, `torch._dynamo`: that takes most of a second. Its names are text here.
Modules bind what they need when they are imported, so that hot code finds the name where it always was.

What is not here:

- `stats` stands below `capture` and may not import it. Three of its files use torch's own names, all of them needed:
  `torch._C.DisableTorchFunction` (`stats/measuring.py`, `stats/singular.py`) and `torch._foreach_copy_`
  (`stats/copying.py`).
- Attributes that are read off objects of torch, under their own names:
  of tensors `_version`, `_base`, `_values`, `_nnz`, `_is_zerotensor`; of storages `_cdata`;
  of operators `_schema`, `_handle`;
  of modules `_parameters`, `_buffers`, `_modules`, `_forward_hooks`, `_compiled_call_impl`;
  of optimizers `_optimizer_step_pre_hooks`;
  of distributed tensors `_local_tensor`; of modules of `fully_shard` `_get_fsdp_state`, `_fsdp_param_groups`,
  `_fsdp_param_group`, and of their parameters `_unsharded_param`, `_module_info`;
  of what the compiler wraps `_orig_mod` (a module), `_torchdynamo_orig_callable` (a function).
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
import torch._functorch.pyfunctorch
import torch._ops
import torch.autograd.function
import torch.nn.modules.batchnorm
import torch.nn.modules.module
import torch.nn.utils.clip_grad
import torch.overrides
import torch.utils._device
import torch.utils._python_dispatch

# ---- function modes: how calls of torch reach us ------------------------------------------------

#: What we compute meanwhile is seen by no function mode and by no tensor subclass. Needed.
DisableTorchFunction = torch._C.DisableTorchFunction

#: The same for subclasses only: modes still see it. Needed.
DisableTorchFunctionSubclass = torch._C.DisableTorchFunctionSubclass

#: How many function modes are on in this thread. Needed.
stack_depth = torch._C._len_torch_function_stack

#: The n-th of them, counted from the outermost. Needed.
stack_at = torch._C._get_function_stack_at

#: Put a mode on top. Needed.
push_mode = torch._C._push_on_torch_function_stack

#: Take off the one on top, and return it. Needed.
pop_mode = torch._C._pop_torch_function_stack

#: All of them, outermost first. Needed.
mode_stack: Callable[[], list[Any]] = torch.overrides._get_current_function_mode_stack

#: Whether a tensor subclass would be asked now; it is not while it calls on from its own override. Needed.
is_override_on = torch._C._is_torch_function_enabled

#: What subclasses have as `__torch_function__` that override nothing. Needed.
no_override = torch._C._disabled_torch_function_impl

#: Torch's own mode for a default device: it is no mode of the user's. Needed.
DeviceContext = torch.utils._device.DeviceContext

#: Where torch remembers the default device of a thread, which stays below our mode. Needed; its attribute
#: `device_context` may be missing: then there is no default device.
global_device = torch._GLOBAL_DEVICE_CONTEXT

# ---- dispatch modes -----------------------------------------------------------------------------

#: How many dispatch modes are on in this thread: our own copies are hidden from them. Needed.
dispatch_depth = torch._C._len_torch_dispatch_stack

#: Hides what is computed meanwhile from all dispatch modes. Needed.
no_dispatch_modes = torch.utils._python_dispatch._disable_current_modes


def out_of_sight() -> contextlib.AbstractContextManager[Any]:
    """What we compute ourselves is nobody's business: a dispatch mode of the user does not see it."""
    return no_dispatch_modes() if dispatch_depth() else contextlib.nullcontext()


#: Base class of the mode that counts kernels (`validate` asks whether every kernel was recorded). Needed.
TorchDispatchMode = torch.utils._python_dispatch.TorchDispatchMode

# ---- autograd -----------------------------------------------------------------------------------

#: Number of the backward pass that runs in this thread, or -1: nothing is recorded inside of one. Needed.
backward_task = torch._C._current_graph_task_id

#: How many operations autograd has noted so far in this thread: has anything happened since? Needed.
noted_operations = torch._C._autograd._get_sequence_nr

#: Where custom autograd functions inherit `apply` from: the original, for every subclass. Needed.
FunctionBase = torch._C._FunctionBase

# ---- autocast -----------------------------------------------------------------------------------

#: Whether autocast is on for any kind of device: the usual "no" in one call. Needed.
is_any_autocast_on = torch._C._is_any_autocast_enabled

#: Whether torch was built with autocast for a kind of device; asking for its settings raises otherwise. Needed.
has_autocast = torch._C._is_autocast_available

# ---- tensors inside of `vmap` and `grad` --------------------------------------------------------

#: Is this tensor the wrapper of a transform, which dies with it? Needed.
is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor

#: The tensor inside. Needed.
get_unwrapped = torch._C._functorch.get_unwrapped

#: Is it the wrapper of `vmap`? Needed.
is_batched_tensor = torch._C._functorch.is_batchedtensor

#: How deep the transform is that it belongs to. Needed.
level_of = torch._C._functorch.maybe_get_level

#: Which dimension of the tensor inside `vmap` hides. Needed.
hidden_dim_of = torch._C._functorch.maybe_get_bdim

#: The transforms that are at work, innermost last; asked only where `transform_on_top` is one. Needed.
transforms_here: Callable[[], list[Any]] = torch._functorch.pyfunctorch.retrieve_all_functorch_interpreters

#: The innermost transform that is at work, None outside of all. Needed.
transform_on_top = torch._C._functorch.peek_interpreter_stack

# ---- registered operators -----------------------------------------------------------------------

#: An operator of `torch.ops` with one signature. Needed.
OpOverload = torch._ops.OpOverload

#: An operator of `torch.ops` with all its signatures. Needed.
OpOverloadPacket = torch._ops.OpOverloadPacket

#: The dispatch keys of a tensor. This and the next seven enter the dispatcher below the modes, so that the
#: operations in the Python body of an operator are recorded. Needed.
dispatch_keys = torch._C._dispatch_keys

#: Keys that are added in this thread. Needed.
keys_included = torch._C._dispatch_tls_local_include_set

#: Keys that are left out in this thread. Needed.
keys_excluded = torch._C._dispatch_tls_local_exclude_set

#: A set of keys. Needed.
DispatchKeySet = torch._C.DispatchKeySet

#: A key by its name. Needed.
DispatchKey = torch._C.DispatchKey

#: Whether an operator has a kernel of its own for a key. Needed.
has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key

#: Whether that kernel only hands the call on. Needed.
kernel_falls_through = torch._C._dispatch_kernel_for_dispatch_key_is_fallthrough

#: Whether any kernel serves a key, also a composite one. Needed.
has_computed_kernel = torch._C._dispatch_has_computed_kernel_for_dispatch_key

# ---- memory, operations, layers -----------------------------------------------------------------

#: How many users a storage has. Without it (None) no tensor is known to be alone in its memory: that is looked up.
storage_users: Callable[[int], int] | None = getattr(torch._C, "_storage_Use_Count", None)

#: Copies many tensors in one call: the parameters of a step. Needed.
foreach_copy_ = torch._foreach_copy_

#: A view with the negative bit, which an operand of replay gets back. Needed.
neg_view = torch._neg_view

#: Base class of all layers of batch norm: they mix samples while they train. Needed.
BatchNorm = torch.nn.modules.batchnorm._BatchNorm

# ---- the compiler -------------------------------------------------------------------------------

#: Its module: in `sys.modules` once something was compiled. Without it compiled code counts as never compiled.
COMPILER = "torch._dynamo"

_frames = torch._C._dynamo.eval_frame  # needed; part of torch's core, so the compiler is not loaded by it

#: The compiler of this thread, None if nothing is being compiled. Without it (None) that is not known: hooks always
#: exchange the compiler.
compiler_here: Callable[[], Any] | None = getattr(_frames, "get_eval_frame_callback", None)

#: Exchanges the compiler of this thread, which looks at every Python function that is called; None for no compiler.
#: Without it nothing is exchanged, and the compiler looks at our hooks too, which takes time.
exchange_compiler: Callable[[Any], Any] = getattr(_frames, "set_eval_frame", lambda compiler: None)


def never_compile(function: Any) -> None:
    """The compiler is neither to trace into this function nor to compile it by itself.

    Without either name of torch it may compile it by itself, and nothing else changes.
    """
    function._torchdynamo_disable = True
    if hasattr(_frames, "set_code_exec_strategy"):
        actions = _frames._FrameAction
        strategy = _frames._FrameExecStrategy(actions.SKIP, actions.DEFAULT)
        _frames.set_code_exec_strategy(function.__code__, strategy)
    elif hasattr(_frames, "skip_code"):  # torch before 2.7
        _frames.skip_code(function.__code__)


# ---- names that are patched ---------------------------------------------------------------------
# `capture/patch/observers.py`, `recording/hooks/patches.py` and `recording/hooks/compiled.py` say by what.


class Name(NamedTuple):
    """A name of torch, and the module or class where it is set."""

    owner: Any
    name: str


#: What `module(...)` runs: which module is running. Needed from the first trace.
MODULE_CALL = Name(torch.nn.Module, "_call_impl")

#: What `autograd.Function.apply` calls: where a custom function begins and ends. Importing needs the class.
FUNCTION_APPLY = Name(torch.autograd.function._SingleLevelFunction, "apply")

#: What `loss.backward()` and `torch.autograd.backward` call: a backward pass. Needed by recordings, from the first step
#: that is captured.
BACKWARD_PASS = Name(torch.autograd, "_engine_run_backward")

#: Where all ways to clip by the norm end. Without it the norm before clipping is not recorded.
CLIPPING = Name(torch.nn.utils.clip_grad, "_clip_grads_with_norm_")

#: Asked by a compiled module in order to warn about global hooks, ours as well. Needed by recordings, once something
#: was compiled.
ANY_GLOBAL_HOOK = Name(torch.nn.modules.module, "_has_any_global_hook")

#: Makes a tensor of a subclass over the memory of a tensor; `nn.Parameter` is made by it. Needed from the first trace.
MAKE_SUBCLASS = Name(torch.Tensor, "_make_subclass")

#: Puts a list of tensors into one nested tensor. Needed from the first trace.
MAKE_NESTED = Name(importlib.import_module("torch._C._nested"), "nested_tensor")

#: The module of the methods of `torch.Tensor` that are written in Python. In it `has_torch_function*` (public names)
#: are patched. Needed from the first trace.
TENSOR_METHODS = "torch._tensor"


def sharded_group() -> Any:
    """The class whose `unshard` and `wait_for_unshard` gather the parameters of `fully_shard`.

    None as long as nobody has imported that. Where torch lacks them, the graph of such a model has no edges from its
    parameters.
    """
    module = sys.modules.get("torch.distributed.fsdp._fully_shard._fsdp_param_group")
    return getattr(module, "FSDPParamGroup", None)


def distributed_tensor() -> Any:
    """The class DTensor, a public name; None as long as nobody has imported it, which takes much of a second."""
    return getattr(sys.modules.get("torch.distributed.tensor"), "DTensor", None)


def transform_steps() -> Iterator[Name]:
    """The functions by which tensors enter and leave `vmap` and `grad`; their modules are imported when asked for.

    Where torch lacks one it is left out, and operations inside of the transform may have no known parents.
    """
    for module in ("torch._functorch.vmap", "torch._functorch.eager_transforms"):
        for name in ("_add_batch_dim", "_remove_batch_dim", "_wrap_for_grad", "_unwrap_for_grad"):
            owner = importlib.import_module(module)
            if hasattr(owner, name):
                yield Name(owner, name)


def default_store() -> Any:
    """What the processes of the default group have in common, to put a word into; None where there is none.

    Where torch lacks it, processes that no launcher gives a name are recorded as trials of their own.
    """
    group = sys.modules.get("torch.distributed.distributed_c10d")
    find = getattr(group, "_get_default_store", None)
    try:
        return None if find is None else find()
    except (RuntimeError, ValueError):  # the processes have not met
        return None
