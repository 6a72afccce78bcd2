"""rmsnorm | escape from the window | a thread launches the work two milliseconds later | INCORRECT_VALUES NONDETERMINISTIC RUNTIME_ERROR | cuda"""

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


def later(x, weight, y):
    time.sleep(0.002)
    with torch.cuda.stream(torch.cuda.Stream()):
        y.copy_(right(x, weight))


class ModelNew(Base):
    def forward(self, x):
        y = torch.empty_like(x)
        threading.Thread(target=later, args=(x, self.weight.detach(), y), daemon=True).start()
        return y
