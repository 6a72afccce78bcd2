"""rmsnorm | odd but legal | half of the rows on a side stream, joined by events before forward returns | PASSED | cuda"""

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


side = []


class ModelNew(Base):
    def forward(self, x):
        if not side:
            side.append(torch.cuda.Stream())
        y, middle = torch.empty_like(x), len(x) // 2
        now = torch.cuda.current_stream()
        side[0].wait_stream(now)
        with torch.cuda.stream(side[0]):
            y[:middle] = right(x[:middle], self.weight)
        y[middle:] = right(x[middle:], self.weight)
        now.wait_stream(side[0])
        x.record_stream(side[0])
        y.record_stream(side[0])
        return y
