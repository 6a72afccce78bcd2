"""Rotary tables for a sequence in the dtype of what they are for."""

import torch

WORKLOADS = [
    {"name": "a", "tokens": 64, "dtype": "float32"},
    {"name": "b", "tokens": 128, "dtype": "bfloat16"},
    {"name": "h", "tokens": 100, "dtype": "float32", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        t = torch.arange(x.shape[0], dtype=torch.float32)
        f = 1.0 / 10000 ** (torch.arange(0, 32, dtype=torch.float32) / 32)
        angle = torch.outer(t, f)
        return x * angle.cos().to(x.dtype)


def get_inputs(tokens=64, dtype="float32"):
    return [torch.randn(tokens, 32, dtype=getattr(torch, dtype))]
