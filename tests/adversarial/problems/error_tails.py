"""The complementary error function, nearly zero for most values above three."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 24, "n": 40, "device": "cpu"},
    {"name": "odd", "rows": 7, "n": 33, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 2048, "n": 1024, "device": "cuda"},
    {"name": "ragged", "rows": 131, "n": 777, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.special.erfc(x)


def get_inputs(rows=24, n=40):
    return [torch.randn(rows, n) * 2]


def get_init_inputs():
    return []
