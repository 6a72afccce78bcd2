"""Place of each row's largest element: integers out."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 24, "n": 65, "device": "cpu"},
    {"name": "odd", "rows": 5, "n": 31, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 4096, "n": 1024, "device": "cuda"},
    {"name": "ragged", "rows": 99, "n": 1023, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        return x.argmax(dim=-1)


def get_inputs(rows=24, n=65):
    return [torch.randn(rows, n)]


def get_init_inputs():
    return []
