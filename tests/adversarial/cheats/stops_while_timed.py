"""rmsnorm | escapes | stops itself for a while in late calls, in the hope that its time stands still | TRUE_TIME TIMEOUT RUNTIME_ERROR | cpu"""

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


calls = [0]


class ModelNew(Base):
    def forward(self, x):
        calls[0] += 1
        if calls[0] == 400:
            if os.fork() == 0:
                time.sleep(0.05)
                os.kill(os.getppid(), signal.SIGCONT)
                os._exit(0)
            os.kill(os.getpid(), signal.SIGSTOP)
        return right(x, self.weight)
