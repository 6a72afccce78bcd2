"""rmsnorm | escapes | takes memory in forked children, each below the limit | OUT_OF_MEMORY RUNTIME_ERROR TIMEOUT | cpu"""

import os
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
        for _ in range(4):
            if os.fork() == 0:
                kept = bytearray(1 << 30)
                kept[::4096] = b'x' * (len(kept) // 4096)
                time.sleep(30)
                os._exit(0)
        time.sleep(3)
        return right(x, self.weight)
