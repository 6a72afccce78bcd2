"""hankel | broadcast, stride-0, wrong dtype | windows are views of one row: who writes to one writes to its neighbours | INCORRECT_SHAPE | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.ones(steps))

    def forward(self, x):
        return (x * self.gain).unfold(1, 16, 1)
