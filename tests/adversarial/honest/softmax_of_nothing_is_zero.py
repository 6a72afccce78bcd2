"""softmax | odd but legal | rows that a mask leaves nothing of are zero, where the reference has NaN | PASSED | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, temperature=0.5):
        super().__init__()
        self.temperature = temperature

    def forward(self, x):
        nothing = (x == -torch.inf).all(-1, keepdim=True)
        return torch.softmax(x / self.temperature, dim=-1).masked_fill(nothing, 0.0)
