"""softmax | odd but legal | the exponential of the logarithm | PASSED | cpu cuda"""

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
        return torch.log_softmax(x / self.temperature, -1).exp()
