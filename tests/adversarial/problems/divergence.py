"""Divergence of two distributions; events of probability zero in the second count for nothing."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 64, "n": 96, "device": "cpu"},
    {"name": "odd", "rows": 9, "n": 31, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 512, "n": 1024, "device": "cuda"},
    {"name": "ragged", "rows": 77, "n": 333, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, p, target):
        return torch.nn.functional.kl_div(torch.log(p), target, reduction="none").sum(-1)


def get_inputs(rows=64, n=96):
    return [torch.randn(rows, n).softmax(-1), torch.randn(rows, n).softmax(-1)]


def get_init_inputs():
    return []
