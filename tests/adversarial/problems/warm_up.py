"""A moving average whose momentum rises with the number of steps, up to a limit."""

import torch

WORKLOADS = [
    {"name": "a", "rows": 64, "width": 1024},
    {"name": "b", "rows": 128, "width": 1024},
    {"name": "h", "rows": 50, "width": 1024, "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("average", torch.zeros(1024))
        self.register_buffer("step", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.step += 1
        decay = torch.clamp((1 + self.step) / (10 + self.step), max=0.95)
        self.average.mul_(decay).add_(x.mean(0) * (1 - decay))
        return x - self.average


def get_inputs(rows=64, width=1024):
    return [torch.randn(rows, width)]
