"""softmax | odd but legal | exponentials of base two | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class Base(nn.Module):
    def __init__(self, temperature=0.5):
        super().__init__()
        self.temperature = temperature

    def right(self, x):
        return torch.softmax(x / self.temperature, dim=-1)


class ModelNew(Base):
    def forward(self, x):
        d = x * (1 / self.temperature)
        d = (d - d.amax(-1, keepdim=True)) * 1.4426950408889634
        e = torch.exp2(d)
        return e / e.sum(-1, keepdim=True)
