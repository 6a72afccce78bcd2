"""softmax | loose tolerance | probabilities below a ten-thousandth of the largest become zero | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

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
        y = self.right(x)
        return torch.where(y < 1e-4 * y.amax(-1, keepdim=True), 0, y)
