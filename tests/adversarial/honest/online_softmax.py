"""softmax | odd but legal | maximum and sum in one pass over blocks | PASSED | cpu cuda"""

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
        top = torch.full_like(d[:, :1], float('-inf'))
        sum_ = torch.zeros_like(top)
        for part in d.split(16, dim=-1):
            new = torch.maximum(top, part.amax(-1, keepdim=True))
            old = torch.where(top == new, torch.ones_like(top), torch.exp(top - new))
            sum_ = sum_ * old + torch.exp(part - new).sum(-1, keepdim=True)
            top = new
        return torch.exp(d - top) / sum_
