"""An activation whose gate may be switched off by a flag that comes as a tensor."""

import torch

WORKLOADS = [
    {"name": "a", "rows": 64, "width": 256},
    {"name": "b", "rows": 96, "width": 768},
    {"name": "h", "rows": 40, "width": 1000, "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x, y, gated):
        return torch.where(gated, torch.sigmoid(y) * x, x)


def get_inputs(rows=64, width=256):
    return [torch.randn(rows, width), torch.randn(rows, width), torch.tensor(True)]
