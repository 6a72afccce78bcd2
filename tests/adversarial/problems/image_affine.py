"""Group norm without gain over images, in whatever layout they come."""

import torch

DOMAIN = "general"
WORKLOADS = [
    {"name": "a", "batch": 4, "size": 16},
    {"name": "b", "batch": 8, "size": 24},
    {"name": "h", "batch": 3, "size": 19, "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.GroupNorm(4, 16)

    def forward(self, x):
        return self.norm(x)


def get_inputs(batch=4, size=16):
    return [torch.randn(batch, 16, size, size)]
