"""Draw the random numbers of large CPU tensors on the GPU while a module is constructed.

A constructor fills its weights with random numbers on the CPU, five nanoseconds an element: 0.3 s for a linear layer of
4096 x 14336, at every size that is checked. Here the tensors stay on the CPU and get numbers of the same distribution,
so that a constructor sees no difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_LARGE = 1 << 18  # elements: fewer are drawn on the CPU within about a millisecond
_PART = 1 << 24  # elements that are drawn at once, so that this needs little memory of the GPU

_aten = torch.ops.aten
_random_between = getattr(_aten.random_, "from")
_FILLING = frozenset(
    (
        _aten.normal_.default, _aten.uniform_.default, _aten.exponential_.default, _aten.bernoulli_.float,
        _aten.random_.default, _aten.random_.to, _random_between,
    )
)  # fmt: skip
# Functions that return a new tensor, each with the one that fills it, and how many of its arguments precede the size.
_MAKING = {
    _aten.randn.default: (_aten.normal_.default, 0),
    _aten.rand.default: (_aten.uniform_.default, 0),
    _aten.randint.default: (_aten.random_.to, 1),
    _aten.randint.low: (_random_between, 2),
}


class DeviceDraws(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Make large draws of CPU tensors on `device` while entered. Draws that have their own generator stay as they are.

    The numbers depend on the device's seed, which `torch.manual_seed` sets.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._device = device

    def draw(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call an operator of torch, or fill its tensor here instead."""
        del types
        options = dict(kwargs or {})
        if func in _FILLING and _is_large(args[0]) and options.get("generator") is None:
            return self._fill(args[0], lambda part: func(part, *args[1:], **options))
        if func in _MAKING:
            fill, before = _MAKING[func]
            made = _empty(args[before], options, torch.int64 if before else torch.get_default_dtype())
            if made is not None:
                return self._fill(made, lambda part: fill(part, *args[:before]))
        return func(*args, **options)

    def _fill(self, tensor: torch.Tensor, draw: Callable[[torch.Tensor], Any]) -> torch.Tensor:
        flat = tensor.detach().view(-1)
        drawn = torch.empty(min(_PART, flat.numel()), dtype=tensor.dtype, device=self._device)
        for part in torch.split(flat, _PART):
            draw(drawn[: part.numel()])
            part.copy_(drawn[: part.numel()])
        return tensor


# Torch wraps a method of this name in the class's body, so that its first call imports torch's compiler: 2 to 6 s.
DeviceDraws.__torch_dispatch__ = DeviceDraws.draw  # type: ignore[assignment]


def _is_large(tensor: Any) -> bool:
    return (
        type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and tensor.device.type == "cpu"
        and tensor.layout is torch.strided
        and tensor.is_contiguous()
        and tensor.numel() >= _LARGE
    )


def _empty(size: Sequence[int], options: Mapping[str, Any], usual: torch.dtype) -> torch.Tensor | None:
    """Return an empty tensor for a large draw as `options` ask for it, or None if the draw is to stay as it is."""
    device, layout = options.get("device"), options.get("layout")
    on_cpu = device is None or torch.device(device).type == "cpu"
    plain = layout in (None, torch.strided) and not options.get("pin_memory")
    if not (on_cpu and plain and math.prod(size) >= _LARGE):
        return None
    return torch.empty(tuple(size), dtype=options.get("dtype") or usual, device="cpu")
