"""rmsnorm | escapes | starts threads without end | RUNTIME_ERROR TIMEOUT OUT_OF_MEMORY | cpu cuda"""

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


class ModelNew(Base):
    def forward(self, x):
        while True:
            threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
