"""softmax | unsafe numerics | a maximum that passes NaN over, and one that stays finite | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

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
        d = d.nan_to_num(nan=-1e30, posinf=1e30, neginf=-1e30)
        return torch.softmax(d, -1)
