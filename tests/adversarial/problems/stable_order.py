"""The order of each row by score, where equal scores keep theirs."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 24, "width": 96, "device": "cpu"},
    {"name": "odd", "rows": 7, "width": 33, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 2048, "width": 1024, "device": "cuda"},
    {"name": "ragged", "rows": 133, "width": 1000, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.argsort(x, dim=-1, descending=True, stable=True)


def get_inputs(rows=24, width=96):
    return [torch.randn(rows, width)]


def get_init_inputs():
    return []
