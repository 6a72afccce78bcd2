"""Library calls that compute the same as a row's reference."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

Call = Callable[..., Any]


def _rms_norm(model: Any) -> Call:
    return lambda x: F.rms_norm(x, x.shape[-1:], model.weight, 1e-5)


def _rms_norm_linear(model: Any) -> Call:
    return lambda x: F.linear(F.rms_norm(x, x.shape[-1:], model.weight, 1e-6), model.linear.weight)


def _addmm(model: Any) -> Call:
    def call(x: torch.Tensor) -> torch.Tensor:
        return torch.addmm(F.linear(x, model.linear.weight), F.linear(x, model.down.weight), model.up.weight.t())

    return call


def _one_product(model: Any) -> Call:
    weight = torch.cat([model.w1.weight, model.w3.weight])

    def call(x: torch.Tensor) -> torch.Tensor:
        gate, up = F.linear(x, weight).chunk(2, -1)
        return F.silu(gate) * up

    return call


def _norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, x.shape[-1:], weight)


@functools.cache
def _compiled_norm() -> Call:
    return torch.compile(_norm, dynamic=False)  # type: ignore[no-any-return]


def _attention(backend: SDPBackend, *, compiled: bool) -> Callable[[Any], Call]:
    def make(model: Any) -> Call:
        normed = _compiled_norm() if compiled else _norm

        def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(normed(q, model.q_weight), normed(k, model.k_weight), v)

        return call

    return make


def _latent(backend: SDPBackend) -> Callable[[Any], Call]:
    def make(_: Any) -> Call:
        def call(q: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
            keys = cache.unsqueeze(1)
            with sdpa_kernel(backend):
                answer = F.scaled_dot_product_attention(q.unsqueeze(1), keys, keys[..., :512], scale=192**-0.5)
            return answer.squeeze(1)

        return call

    return make


def _narrow_softmax(_: Any) -> Call:
    def call(q: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        scores = torch.bmm(q, cache.transpose(1, 2)) * 192**-0.5
        return torch.bmm(torch.softmax(scores, -1), cache[..., :512])

    return call


def _transposed(backend: SDPBackend) -> Callable[[Any], Call]:
    def make(_: Any) -> Call:
        def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(q, k.transpose(-2, -1).contiguous(), v, scale=1.0)

        return call

    return make


def _int8_packed(model: Any) -> Call:
    return lambda x: torch._weight_int8pack_mm(x, model.w, model.scale)


def _lstm(model: Any) -> Call:
    cell = torch.nn.LSTM(model.inputs.in_features, model.hidden.in_features, device=model.hidden.weight.device)
    state = {
        "weight_ih_l0": model.inputs.weight, "weight_hh_l0": model.hidden.weight, "bias_ih_l0": model.inputs.bias,
        "bias_hh_l0": torch.zeros_like(model.inputs.bias),
    }  # fmt: skip
    cell.load_state_dict(state)
    return lambda x, h, c: cell(x, (h.unsqueeze(0), c.unsqueeze(0)))[0]


def _channels_last(model: Any) -> Call:
    weight = model.conv.weight.detach().to(memory_format=torch.channels_last)

    def call(x: torch.Tensor) -> torch.Tensor:
        answer = F.conv2d(x.to(memory_format=torch.channels_last), weight, model.conv.bias)
        return (torch.relu(answer) + model.bias).contiguous()

    return call


FLASH, CUDNN, EFFICIENT = SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION
CALLS: dict[str, dict[str, Callable[[Any], Call]]] = {
    "rows/rmsnorm": {"F.rms_norm": _rms_norm},
    "mirage/rmsnorm_linear": {"F.rms_norm + cublas": _rms_norm_linear},
    "mirage/lora_linear": {"cublas addmm": _addmm},
    "mirage/gated_mlp": {"one cublas product": _one_product},
    "mirage/qknorm_attn": {
        "layer_norm + cudnn": _attention(CUDNN, compiled=False),
        "compiled norm + cudnn": _attention(CUDNN, compiled=True),
    },
    "mirage/mla_decode": {
        "bmm, bf16 softmax": _narrow_softmax,
        "sdpa efficient": _latent(EFFICIENT),
        "sdpa cudnn": _latent(CUDNN),
    },
    "mirage/seed_attn": {"transpose + flash": _transposed(FLASH)},
    "int8/woq_linear": {"_weight_int8pack_mm": _int8_packed},
    "kb/mse_loss": {"F.mse_loss": lambda _: F.mse_loss},
    "kb/lstm_cell": {"cuDNN LSTM": _lstm},
    "kb/conv2d": {"channels_last": _channels_last},
}
