"""Softmax over the last axis, in two precisions."""

import torch

WORKLOADS = [
    {"name": "a", "rows": 64, "width": 256, "dtype": "float32"},
    {"name": "b", "rows": 128, "width": 1024, "dtype": "bfloat16"},
    {"name": "h", "rows": 48, "width": 500, "dtype": "bfloat16", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)


def get_inputs(rows=64, width=256, dtype="float32"):
    return [torch.randn(rows, width).to(getattr(torch, dtype))]
