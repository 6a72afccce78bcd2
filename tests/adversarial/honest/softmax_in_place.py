"""softmax | odd but legal | in place on its own copy | PASSED | cpu cuda"""

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
        d = x / self.temperature
        d -= d.amax(-1, keepdim=True)
        d.exp_()
        d /= d.sum(-1, keepdim=True)
        return d
