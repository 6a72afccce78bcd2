"""A causal depthwise convolution of half precision with a gate, behind a padding."""

import torch

WORKLOADS = [
    {"name": "small", "batch": 4, "length": 128, "device": "cpu"},
    {"name": "odd", "batch": 2, "length": 37, "device": "cpu", "held_out": True},
    {"name": "large", "batch": 4, "length": 2048, "device": "cuda"},
    {"name": "ragged", "batch": 3, "length": 901, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, channels=64):
        super().__init__()
        self.filter = torch.nn.Conv1d(channels, channels, 4, groups=channels, dtype=torch.float16)

    def forward(self, x):
        return torch.nn.functional.silu(self.filter(torch.nn.functional.pad(x, (3, 0))))


def get_inputs(batch=4, length=128):
    return [torch.randn(batch, 64, length, dtype=torch.float16)]


def get_init_inputs():
    return []
