"""Two outputs in a tuple: mean and variance of each row."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 24, "n": 90, "device": "cpu"},
    {"name": "odd", "rows": 5, "n": 41, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 4096, "n": 2048, "device": "cuda"},
    {"name": "ragged", "rows": 99, "n": 1023, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        mean = x.mean(dim=-1)
        return mean, (x - mean[:, None]).pow(2).mean(dim=-1)


def get_inputs(rows=24, n=90):
    return [torch.randn(rows, n) + 3]


def get_init_inputs():
    return []
