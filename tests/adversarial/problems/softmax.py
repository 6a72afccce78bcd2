"""Softmax over the last axis of large logits, with a temperature given to the constructor."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 24, "n": 80, "device": "cpu"},
    {"name": "odd", "rows": 5, "n": 37, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 2048, "n": 2048, "device": "cuda"},
    {"name": "ragged", "rows": 131, "n": 777, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, temperature=0.5):
        super().__init__()
        self.temperature = temperature

    def forward(self, x):
        return torch.softmax(x / self.temperature, dim=-1)


def get_inputs(rows=24, n=80):
    return [torch.randn(rows, n) * 4]


def get_init_inputs():
    return [0.5]
