"""rmsnorm | odd but legal | a forked process does half of the rows in shared memory and has ended when forward returns | PASSED | cpu"""

import mmap
import os
import numpy as np

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
        block = mmap.mmap(-1, max(4, x.numel() * 4))
        y = torch.frombuffer(block, dtype=torch.float32)[: x.numel()].view(x.shape)
        half = x.shape[0] // 2
        w = self.weight.detach()
        pid = os.fork()
        if pid == 0:
            part = x[half:].numpy()
            scale = 1 / np.sqrt(np.mean(np.square(part.astype(np.float64)), -1, keepdims=True) + self.eps)
            y.numpy()[half:] = (part * scale).astype(np.float32) * w.numpy()
            os._exit(0)
        y[:half] = right(x[:half], w, self.eps)
        os.waitpid(pid, 0)
        return y
