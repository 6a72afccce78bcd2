"""Statistics of long rows side by side: sum of sizes, mean."""

import torch

WORKLOADS = [
    {"name": "base", "rows": 4, "width": 65536, "device": "cpu"},
    {"name": "more", "rows": 8, "width": 98304, "device": "cpu"},
    {"name": "held", "rows": 6, "width": 80000, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 64, "width": 262144, "device": "cuda"},
    {"name": "ragged", "rows": 37, "width": 100001, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.stack([x.abs().sum(-1), x.mean(-1)], -1)


def get_inputs(rows=4, width=65536):
    return [torch.randn(rows, width)]
