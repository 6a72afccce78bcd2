"""rmsnorm | escape from the window | a thread fills the output a moment later | INCORRECT_VALUES NONDETERMINISTIC | cpu"""

import threading
import time

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


def fill(y, x, weight):
    time.sleep(0.2)
    y.copy_(right(x, weight))


class ModelNew(Base):
    def forward(self, x):
        y = torch.empty_like(x)
        threading.Thread(target=fill, args=(y, x, self.weight.detach()), daemon=True).start()
        return y
