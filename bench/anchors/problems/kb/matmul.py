"""A square matrix product."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "4096_fp32", "size": 4096, "dtype": "float32", "device": "cuda"},
    {"name": "4096_bf16", "size": 4096, "dtype": "bfloat16", "device": "cuda"},
    {"name": "odd", "size": 333, "dtype": "float32", "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs(size=64, dtype="float32"):
    return [torch.randn(size, size, dtype=getattr(torch, dtype)) for _ in "ab"]
