"""Causal attention of a decoder in bfloat16, as torch's fused kernels compute it."""

import torch

WORKLOADS = [
    {"name": "small", "batch": 1, "heads": 2, "tokens": 96, "width": 32, "device": "cpu"},
    {"name": "odd", "batch": 2, "heads": 1, "tokens": 61, "width": 32, "device": "cpu", "held_out": True},
    {"name": "large", "batch": 2, "heads": 16, "tokens": 1024, "width": 64, "device": "cuda"},
    {"name": "ragged", "batch": 1, "heads": 5, "tokens": 777, "width": 64, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def get_inputs(batch=1, heads=2, tokens=96, width=32):
    return [torch.randn(batch, heads, tokens, width).bfloat16() for _ in range(3)]
