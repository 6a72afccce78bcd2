"""rmsnorm | odd but legal | sets options of torch's compiler under short names | PASSED | cpu cuda"""

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


from torch import _dynamo as dynamo
from torch._inductor import config

config.epilogue_fusion = True
dynamo.config.cache_size_limit = 64


class ModelNew(Base):
    def forward(self, x):
        return right(x, self.weight)
