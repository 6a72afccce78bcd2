"""rmsnorm | escapes | signals its supervisor, its group and everybody | TRUE_TIME | cpu cuda"""

import os

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


def attempt():
    for pid in (os.getppid(), 1, -1):
        try:
            os.kill(pid, 0)
            if pid > 0 and pid != os.getpid():
                return pid
        except OSError:
            continue


try:
    won = attempt()
except (OSError, RuntimeError, ValueError) as error:
    won = None
if won:
    raise SystemExit(f'escaped: {won}')


class ModelNew(Base):
    def forward(self, x):
        return right(x, self.weight)
