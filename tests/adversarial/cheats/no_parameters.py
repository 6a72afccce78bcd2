"""rmsnorm | default parameters, stale folding | has no gain at all | INVALID_SUBMISSION | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
