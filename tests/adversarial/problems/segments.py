"""Sums of segments of rows; the bounds of segments are always the same in the recipe."""

import torch

WORKLOADS = [
    {"name": "small", "each": 7, "width": 24, "device": "cpu"},
    {"name": "odd", "each": 5, "width": 9, "device": "cpu", "held_out": True},
    {"name": "large", "each": 64, "width": 256, "device": "cuda"},
    {"name": "ragged", "each": 51, "width": 100, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x, bounds):
        lengths = bounds[1:] - bounds[:-1]
        return torch.segment_reduce(x, "sum", lengths=lengths, axis=0)


def get_inputs(each=7, width=24):
    return [torch.randn(4 * each, width), torch.arange(0, 4 * each + 1, each)]


def get_init_inputs():
    return []
