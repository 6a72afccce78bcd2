"""rmsnorm | escapes | a daemon that has left its session and ignores every signal | TRUE_TIME RUNTIME_ERROR | cpu cuda"""

import os
import signal
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


if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(1, 32):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        while True:
            time.sleep(1)
    os._exit(0)


class ModelNew(Base):
    def forward(self, x):
        return right(x, self.weight)
