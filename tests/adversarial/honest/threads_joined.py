"""rmsnorm | odd but legal | two Python threads, half the rows each, joined inside forward | PASSED | cpu"""

import threading

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
        y = torch.empty_like(x)
        weight = self.weight.detach()

        def part(rows):
            y[rows] = right(x[rows], weight)

        middle = len(x) // 2
        threads = [threading.Thread(target=part, args=(rows,)) for rows in (slice(None, middle), slice(middle, None))]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        return y
