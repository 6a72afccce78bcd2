"""softmax | precision downgrade | exponentials from a table of a thousand | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

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
        d = (d - d.amax(-1, keepdim=True)).clamp(min=-20)
        position = (d * -50).round().clamp(0, 1000)
        e = torch.exp(position / -50)
        return e / e.sum(-1, keepdim=True)
