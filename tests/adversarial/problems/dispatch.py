"""Top-1 routing of a mixture of experts: tokens are put into the order of their experts."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "few", "tokens": 96, "hidden": 80, "experts": 16, "device": "cpu"},
    {"name": "few odd", "tokens": 61, "hidden": 72, "experts": 12, "device": "cpu", "held_out": True},
    {"name": "large", "tokens": 2048, "hidden": 1024, "experts": 64, "device": "cuda"},
    {"name": "small", "tokens": 256, "hidden": 1024, "experts": 64, "device": "cuda"},
    {"name": "odd", "tokens": 333, "hidden": 520, "experts": 64, "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def forward(self, x, logits):
        expert = logits.argmax(-1)
        order = torch.argsort(expert, stable=True)
        return x[order]


def get_inputs(tokens=96, hidden=80, experts=16):
    return [torch.randn(tokens, hidden), torch.randn(tokens, experts)]
