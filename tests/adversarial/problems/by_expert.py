"""The order that gathers tokens by expert, within an expert in the order of tokens."""

import torch

WORKLOADS = [
    {"name": "small", "tokens": 512, "device": "cpu"},
    {"name": "odd", "tokens": 777, "device": "cpu", "held_out": True},
    {"name": "large", "tokens": 65536, "device": "cuda"},
    {"name": "ragged", "tokens": 4999, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, experts):
        return torch.argsort(experts, stable=True)


def get_inputs(tokens=512):
    return [torch.randint(0, 8, (tokens,))]


def get_init_inputs():
    return []
