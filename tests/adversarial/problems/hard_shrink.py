"""Hard shrinkage: what is no larger than a half in size becomes zero."""

import torch

WORKLOADS = [
    {"name": "base", "rows": 32, "width": 256, "device": "cpu"},
    {"name": "long", "rows": 128, "width": 512, "device": "cpu"},
    {"name": "held", "rows": 50, "width": 300, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 4096, "width": 1024, "device": "cuda"},
    {"name": "ragged", "rows": 1371, "width": 1000, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.hardshrink(x, 0.5)


def get_inputs(rows=32, width=256):
    return [torch.randn(rows, width)]
