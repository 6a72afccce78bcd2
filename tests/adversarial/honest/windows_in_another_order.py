"""hankel | odd but legal | windows lie in memory step by step, each element at a place of its own | PASSED | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.ones(steps))

    def forward(self, x):
        scaled = x * self.gain
        count = x.shape[1] - 15
        return torch.stack([scaled[:, step : step + count] for step in range(16)]).permute(1, 2, 0)
