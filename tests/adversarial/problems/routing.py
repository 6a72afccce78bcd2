"""The gate of a mixture of experts: the four most probable experts of each token, and their shares."""

import torch

WORKLOADS = [
    {"name": "small", "tokens": 256, "hidden": 48, "experts": 24, "device": "cpu"},
    {"name": "odd", "tokens": 61, "hidden": 40, "experts": 20, "device": "cpu", "held_out": True},
    {"name": "large", "tokens": 8192, "hidden": 512, "experts": 64, "device": "cuda"},
    {"name": "ragged", "tokens": 1000, "hidden": 320, "experts": 48, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, hidden, experts):
        super().__init__()
        self.gate = torch.nn.Linear(hidden, experts, bias=False)

    def forward(self, x):
        shares, experts = torch.topk(torch.softmax(self.gate(x), -1), 4, dim=-1)
        return shares / shares.sum(-1, keepdim=True), experts


def get_inputs(tokens=256, hidden=48):
    return [torch.randn(tokens, hidden)]


def get_init_inputs(hidden=48, experts=24):
    return [hidden, experts]
