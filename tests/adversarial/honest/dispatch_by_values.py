"""softmax | odd but legal | the plain way where numbers are small and finite, the careful one elsewhere | PASSED | cpu cuda"""

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
        if bool(d.abs().max() < 60):
            e = torch.exp(d)
            return e / e.sum(-1, keepdim=True)
        return torch.softmax(d, -1)
