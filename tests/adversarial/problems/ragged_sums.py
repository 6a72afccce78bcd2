"""Sums of segments of rows between bounds that the recipe draws."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 40, "width": 24, "device": "cpu"},
    {"name": "odd", "rows": 33, "width": 9, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 4096, "width": 128, "device": "cuda"},
    {"name": "ragged", "rows": 777, "width": 100, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x, bounds):
        return torch.segment_reduce(x, "sum", lengths=bounds[1:] - bounds[:-1], axis=0)


def get_inputs(rows=40, width=24):
    inner = torch.randperm(rows - 1)[:5].sort().values + 1
    return [torch.randn(rows, width), torch.cat([torch.tensor([0]), inner, torch.tensor([rows])])]


def get_init_inputs():
    return []
