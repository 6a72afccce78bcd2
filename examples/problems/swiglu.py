"""SwiGLU's pointwise half: silu(gate) * up, with both halves packed in one tensor as fused projections leave them."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "cpu-64x2816", "rows": 64, "hidden": 2816, "device": "cpu"},
    {"name": "cpu-256x1024", "rows": 256, "hidden": 1024, "device": "cpu"},
    {"name": "decode-32", "rows": 32, "hidden": 14336, "dtype": "bfloat16", "device": "cuda"},
    {"name": "prefill-2k", "rows": 2048, "hidden": 11008, "dtype": "float16", "device": "cuda"},
    {"name": "prefill-8k", "rows": 8192, "hidden": 14336, "dtype": "bfloat16", "device": "cuda"},
    {"name": "odd", "rows": 95, "hidden": 1377, "device": "cpu", "held_out": True},
    {"name": "odd-bfloat16", "rows": 95, "hidden": 1377, "dtype": "bfloat16", "device": "cuda", "held_out": True},
    {"name": "odd-float16", "rows": 95, "hidden": 1377, "dtype": "float16", "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def forward(self, gate_up: torch.Tensor) -> torch.Tensor:
        """gate_up (rows, 2 * hidden): the gate's columns first, then the up projection's."""
        gate, up = gate_up.chunk(2, dim=-1)
        return gate * torch.sigmoid(gate) * up


def get_inputs(rows=64, hidden=2816, dtype="float32"):
    return [torch.randn(rows, 2 * hidden, dtype=getattr(torch, dtype)) * 2]
