"""Mean over the real tokens of each sequence, and how many there are."""

import torch

WORKLOADS = [
    {"name": "base", "batch": 16, "steps": 64, "width": 32, "device": "cpu"},
    {"name": "long", "batch": 16, "steps": 128, "width": 32, "device": "cpu"},
    {"name": "held", "batch": 12, "steps": 96, "width": 32, "device": "cpu", "held_out": True},
    {"name": "large", "batch": 64, "steps": 512, "width": 256, "device": "cuda"},
    {"name": "ragged", "batch": 37, "steps": 300, "width": 256, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, h, mask):
        n = mask.sum(1)
        return (h * mask.unsqueeze(-1)).sum(1) / n.unsqueeze(-1), n


def get_inputs(batch=16, steps=64, width=32):
    lengths = torch.randint(1, steps, (batch, 1))
    return [torch.randn(batch, steps, width), (torch.arange(steps) < lengths).long()]
