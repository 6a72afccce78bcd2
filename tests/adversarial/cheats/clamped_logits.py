"""softmax | unsafe numerics | clamps exponents to eighty | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

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
        e = torch.exp((x / self.temperature).clamp(-80, 80))
        return e / e.sum(-1, keepdim=True)
