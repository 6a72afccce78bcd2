"""Liger-Kernel's functions for the rows that it has (the wheel `liger-kernel`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Call = Callable[..., Any]


def _functions() -> Any:
    import liger_kernel.transformers.functional as functions  # noqa: PLC0415  an optional package

    return functions


def _softmax(_: Any) -> Call:
    return lambda x: _functions().liger_softmax(x)


def _layer_norm(model: Any) -> Call:
    return lambda x: _functions().liger_layer_norm(x, model.norm.weight, model.norm.bias, 1e-5)


def _rms_norm(model: Any) -> Call:
    return lambda x: _functions().liger_rms_norm(x, model.weight, 1e-5, in_place=False)


def _swiglu(_: Any) -> Call:
    return lambda gate, up: _functions().liger_swiglu(gate, up)


def _rope(_: Any) -> Call:
    """Liger rotates in place: it gets copies, as the reference leaves its inputs alone."""

    def call(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> Any:
        return _functions().liger_rope(q.clone(), k.clone(), cos.unsqueeze(0), sin.unsqueeze(0))

    return call


def _cross_entropy(_: Any) -> Call:
    """Without gradients it leaves the logits alone."""
    return lambda logits, targets: _functions().liger_cross_entropy(logits, targets)


def _group_norm(model: Any) -> Call:
    def call(x: torch.Tensor) -> Any:
        norm = model.gn
        answer = _functions().liger_group_norm(x, norm.weight, norm.bias, norm.num_channels, norm.num_groups, norm.eps)
        return torch.nn.functional.silu(answer)

    return call


CALLS: dict[str, dict[str, Callable[[Any], Call]]] = {
    "rows/softmax": {"Liger": _softmax},
    "rows/layernorm": {"Liger": _layer_norm},
    "rows/rmsnorm": {"Liger": _rms_norm},
    "rows/swiglu": {"Liger": _swiglu},
    "rows/rope": {"Liger": _rope},
    "rows/cross_entropy": {"Liger": _cross_entropy},
    "rows/groupnorm_silu": {"Liger": _group_norm},
}
