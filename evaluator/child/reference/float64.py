"""Run a reference in float64: a dispatch mode converts every floating tensor, cast and constant inside it.

Inputs are converted after rounding to their own dtype, so the result is that of exact arithmetic on the same inputs.
8-bit floating types stay as they are: a cast to them is an intended quantisation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map

WIDE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """Return a float64 (complex128) copy of a floating tensor, others as they are. Not to be called inside the mode."""
    return tensor.detach().to(WIDE[tensor.dtype]) if tensor.dtype in WIDE else tensor


CUMULATIVE_SELECTIONS = frozenset({"cummax", "cummin"})
"""Those that select one index for each element, among the elements up to it."""
SELECTION_OPERATIONS = CUMULATIVE_SELECTIONS | frozenset(
    {"argmax", "argmin", "topk", "sort", "max", "min", "kthvalue", "median", "nanmedian"}
)
"""Operations that return indices of the elements that they select along an axis (`child.reference.ties`)."""
INDICES = (torch.int32, torch.int64)
"""The dtypes of outputs that are such indices, or computed from them."""
# Tensors with their float64 twins, by id. The tensors are kept, so that their ids stay taken.
Twins: TypeAlias = dict[int, tuple[torch.Tensor, torch.Tensor]]
ModeT = TypeVar("ModeT", bound="Float64Mode")


def arguments_by_name(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an operation by name, defaults included."""
    arguments = func._schema.arguments
    given = dict(zip([argument.name for argument in arguments], args, strict=False))
    return {argument.name: argument.default_value for argument in arguments} | given | dict(kwargs)


_LEAVES = frozenset({torch.Tensor, nn.Parameter, torch.dtype})
_OTHERS = frozenset({int, float, bool, complex, str, type(None), torch.device, torch.layout, torch.memory_format})


def _map_leaves(change: Callable[[Any], Any], value: Any) -> Any:
    """Change the leaves of an operation's arguments or results.

    Does what `tree_map` does in a tenth of its time, which is most of a small reference's time in float64.
    """
    kind = type(value)
    if kind in _LEAVES:
        return change(value)
    if kind in _OTHERS:
        return value
    if kind is tuple:
        return tuple([_map_leaves(change, one) for one in value])
    if kind is list:
        return [_map_leaves(change, one) for one in value]
    if kind is dict:
        return {key: _map_leaves(change, one) for key, one in value.items()}
    return tree_map(change, value)


class NoFloat64Counterpart(RuntimeError):
    """Raised for an operation of the reference without a float64 counterpart: reinterpreted bits, for example."""


class Float64Mode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Computes all floating arithmetic inside this mode in float64.

    A tensor from outside has one float64 twin, so that later reads see values written to the tensor in place. `twins`
    maps ids of tensors to their twins; only the caller keeps it longer than one call. `variable_ids` are the ids of
    tensors that a call is given. Where they are set, values that depend on none of them keep the reference's own
    precision: they are the same for all inputs, and where numbers become integers (buckets of distances, for example)
    rounding decides which.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: nothing is compiled under this mode. The answer saves importing the compiler (two seconds)."""
        return False

    def __init__(self, twins: Twins) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._twins = twins
        self.selects = False  # True once an operation has selected indices
        self.variable_ids: frozenset[int] | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.__name__
        if name == "frexp.Tensor" or (name == "view.dtype" and _reinterprets(args[0].dtype, args[1])):
            raise NoFloat64Counterpart(f"aten.{name}")
        self.selects = self.selects or func.overloadpacket.__name__ in SELECTION_OPERATIONS
        if self.is_constant(args, kwargs):
            return func(*args, **(kwargs or {}))
        args = _map_leaves(self.to_float64, args)
        kwargs = _map_leaves(self.to_float64, kwargs) if kwargs else {}
        # Some factories return a constant made before the mode. Its conversion keeps the rule that every operation
        # returns float64.
        return _map_leaves(self.to_float64, func(*args, **kwargs))

    def is_constant(self, *arguments: Any) -> bool:
        """Return whether an operation with these arguments keeps the reference's own precision: none depends on the
        call's inputs."""
        if self.variable_ids is None:
            return False
        found = (value for value in tree_leaves(arguments) if isinstance(value, torch.Tensor))
        return not any(id(value) in self.variable_ids or value.dtype in WIDE.values() for value in found)

    def to_float64(self, value: Any) -> Any:
        """Return the float64 twin of a floating tensor, a wide dtype for a floating dtype, anything else as it is."""
        if isinstance(value, torch.dtype):
            return WIDE.get(value, value)
        if not isinstance(value, torch.Tensor) or value.dtype not in WIDE:
            return value
        known = self._twins.get(id(value))
        if known is None:
            known = value, widened(value)
            self._twins[id(value)] = known
        return known[1]


def _reinterprets(before: torch.dtype, after: torch.dtype) -> bool:
    """Return whether a view shows the bits of a number that float64 mode lifts, or makes one of bits."""
    return any(dtype in WIDE or dtype in WIDE.values() for dtype in (before, after))


@contextmanager
def in_float64(mode: ModeT) -> Iterator[ModeT]:
    """Run the block in this mode. The default dtype is float64, too, unless constants keep their own precision."""
    before = torch.get_default_dtype()
    if mode.variable_ids is None:
        torch.set_default_dtype(torch.float64)
    # oneDNN's fused layers (LSTM) have no float64; without them torch uses operations that have. RNN modules compare
    # dtypes in Python, where parameters still have their own dtypes.
    check, nn.RNNBase.check_input = nn.RNNBase.check_input, _skip_check  # type: ignore[assignment, method-assign]
    fused = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        with _without_fused_attention(), mode, _MatchedDtypes(mode):
            yield mode
    finally:
        torch._C._set_mkldnn_enabled(fused)
        nn.RNNBase.check_input = check  # type: ignore[method-assign]
        torch.set_default_dtype(before)


@contextmanager
def _without_fused_attention() -> Iterator[None]:
    """Disable a GPU's fused kernels for attention and whole encoder layers. They are chosen by the dtypes outside the
    mode, and have no float64 either."""
    backends: Any = torch.backends.cuda
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        yield
        return
    flags = (
        (backends.enable_flash_sdp, backends.flash_sdp_enabled()),
        (backends.enable_mem_efficient_sdp, backends.mem_efficient_sdp_enabled()),
        (backends.enable_cudnn_sdp, backends.cudnn_sdp_enabled()),
        (torch.backends.mha.set_fastpath_enabled, torch.backends.mha.get_fastpath_enabled()),
    )
    for switch, _ in flags:
        switch(False)
    try:
        yield
    finally:
        for switch, before in flags:
            switch(before)


_DTYPE_COMPARING = frozenset(
    {
        nn.functional.scaled_dot_product_attention, torch.conv1d, torch.conv2d, torch.conv3d, torch.bilinear,
        torch.prelu, torch.Tensor.prelu, torch.inner, torch.Tensor.inner, torch.tensordot, torch.linalg.multi_dot,
    }
)  # fmt: skip


class _MatchedDtypes(TorchFunctionMode):
    """Converts the arguments of functions that compare dtypes before any operation is dispatched.

    A call's own tensors and parameters are converted only where they are used; computed values are in float64 already.
    """

    def __init__(self, mode: Float64Mode) -> None:
        super().__init__()
        self._mode = mode

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _DTYPE_COMPARING:
            with _disable_current_modes():
                args, kwargs = _map_leaves(self._mode.to_float64, args), _map_leaves(self._mode.to_float64, kwargs)
        return func(*args, **kwargs)


def _skip_check(*_: Any) -> None:
    """Replace a check that the module's own run has passed."""
