"""Helion's kernels that are tuned ahead for sm_90.

They are in the folder pretuned_kernels of its repository, not in the wheel `helion`: --helion names a checkout. Some
write into results that they are given; these are allocated in the call, as the reference's are.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

Call = Callable[..., Any]
FP8 = torch.float8_e4m3fn
BLOCK, LARGEST = 128, 448.0


def _module(checkout: Path, name: str) -> Any:
    path = checkout / "pretuned_kernels" / name / f"{name}.py"
    if not path.exists():
        raise ImportError(f"{path} is missing")
    if name not in sys.modules:
        _stand_in()
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        sys.modules[name] = made  # the tracer looks globals up there
        spec.loader.exec_module(made)
    return sys.modules[name]


def _stand_in() -> None:
    """Give Inductor of torch 2.11 the name of an exception that Helion 1.5.1 imports from it and that no GPU of NVIDIA
    raises."""
    from torch._inductor.runtime import triton_compat  # noqa: PLC0415  loads the compiler

    if not hasattr(triton_compat, "IntelGPUError"):
        triton_compat.IntelGPUError = type("IntelGPUError", (Exception,), {})  # type: ignore[attr-defined]


def _scales(x: torch.Tensor, columns: int) -> torch.Tensor:
    return torch.empty(x.shape[0], columns, dtype=torch.float32, device=x.device)


def _per_token(kernel: Any) -> Call:
    def call(x: torch.Tensor) -> Any:
        result, scale = torch.empty_like(x, dtype=FP8), _scales(x, 1)
        kernel(result, x, scale)
        return result, scale

    return call


def _per_block(kernel: Any) -> Call:
    def call(x: torch.Tensor) -> Any:
        result, scale = torch.empty_like(x, dtype=FP8), _scales(x, x.shape[1] // BLOCK)
        kernel(x, result, scale, BLOCK, 1e-10, -LARGEST, LARGEST, False)
        return result, scale

    return call


def _norm_per_token(kernel: Any, model: Any) -> Call:
    def call(x: torch.Tensor) -> Any:
        result, scale = torch.empty_like(x, dtype=FP8), _scales(x, 1)
        kernel(result, x, model.weight, scale, 1e-6)
        return result, scale

    return call


def _norm_per_block(kernel: Any, model: Any) -> Call:
    def call(x: torch.Tensor) -> Any:
        result, scale = torch.empty_like(x, dtype=FP8), _scales(x, x.shape[1] // BLOCK)
        kernel(result, x, model.weight, scale, 1e-6, None, None, BLOCK, False)
        return result, scale

    return call


def _silu_per_block(kernel: Any) -> Call:
    def call(x: torch.Tensor) -> Any:
        inner = x.shape[1] // 2
        result = torch.empty(x.shape[0], inner, dtype=FP8, device=x.device)
        scale = _scales(x, inner // BLOCK)
        kernel(result, x, scale, BLOCK)
        return result, scale

    return call


def _rope(kernel: Any) -> Call:
    def call(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> Any:
        shape = (q.shape[0], *cos.shape)
        return kernel(q, k, cos.expand(shape), sin.expand(shape))

    return call


ROWS: dict[str, tuple[str, str, Callable[[Any, Any], Call]]] = {
    "rows/softmax": ("softmax", "softmax", lambda kernel, _: kernel),
    "rows/layernorm": (
        "layer_norm",
        "layer_norm",
        lambda kernel, m: lambda x: kernel(x, m.norm.weight, m.norm.bias),
    ),
    "rows/rmsnorm": ("rms_norm", "rms_norm", lambda kernel, m: lambda x: kernel(x, m.weight)),
    "rows/cross_entropy": ("cross_entropy", "cross_entropy", lambda kernel, _: kernel),
    "rows/rope": ("rope", "rope_fwd", lambda kernel, _: _rope(kernel)),
    "quantised/per_token": (
        "dynamic_per_token_scaled_fp8_quant",
        "dynamic_per_token_scaled_fp8_quant",
        lambda kernel, _: _per_token(kernel),
    ),
    "quantised/per_block": (
        "per_token_group_fp8_quant",
        "per_token_group_fp8_quant",
        lambda kernel, _: _per_block(kernel),
    ),
    "quantised/rmsnorm_per_token": (
        "rms_norm_dynamic_per_token_quant",
        "rms_norm_dynamic_per_token_quant",
        _norm_per_token,
    ),
    "quantised/rmsnorm_per_block": ("rms_norm_per_block_quant", "rms_norm_per_block_quant", _norm_per_block),
    "quantised/silu_mul_2": ("silu_mul_fp8", "silu_mul_fp8", lambda kernel, _: kernel),
    "quantised/silu_mul_per_block": (
        "silu_and_mul_per_block_quant",
        "silu_and_mul_per_block_quant",
        lambda kernel, _: _silu_per_block(kernel),
    ),
}


def calls(checkout: Path | None) -> dict[str, dict[str, Callable[[Any], Call]]]:
    """Return a maker for each row that Helion has; nothing without a checkout."""
    if checkout is None:
        return {}

    def maker(folder: str, name: str, adapt: Callable[[Any, Any], Call]) -> Callable[[Any], Call]:
        return lambda model: adapt(getattr(_module(checkout, folder), name), model)

    return {prefix: {"Helion": maker(*found)} for prefix, found in ROWS.items()}
