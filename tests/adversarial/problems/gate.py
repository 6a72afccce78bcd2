"""A router's gate: scores, the two best, softmax among them, scattered. The indices are not returned."""

import torch

WORKLOADS = [
    {"name": "small", "n": 96, "device": "cpu"},
    {"name": "odd", "n": 31, "device": "cpu", "held_out": True},
    {"name": "large", "n": 4096, "device": "cuda"},
    {"name": "ragged", "n": 631, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, d, experts):
        super().__init__()
        self.gate = torch.nn.Linear(d, experts, bias=False)

    def forward(self, x):
        scores = self.gate(x)
        best, index = torch.topk(scores, 2, dim=-1)
        return torch.zeros_like(scores).scatter(-1, index, torch.softmax(best, -1))


def get_inputs(n=96):
    return [torch.randn(n, 40)]


def get_init_inputs():
    return [40, 10]
