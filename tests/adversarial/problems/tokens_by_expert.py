"""Sum the tokens of each expert."""

import torch

WORKLOADS = [
    {"name": "small", "tokens": 256, "width": 64, "device": "cpu"},
    {"name": "large", "tokens": 1024, "width": 128, "device": "cpu"},
    {"name": "odd", "tokens": 333, "width": 72, "device": "cpu", "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, experts=16):
        super().__init__()
        self.experts = experts

    def forward(self, x, expert):
        return x.new_zeros(self.experts, x.shape[1]).index_add_(0, expert, x)


def get_inputs(tokens=256, width=64):
    return [torch.randn(tokens, width), torch.randint(0, 16, (tokens,))]


def get_init_inputs():
    return [16]
