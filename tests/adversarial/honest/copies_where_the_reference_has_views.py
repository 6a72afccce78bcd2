"""heads | odd but legal | fresh memory where the reference returns a view | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def forward(self, x):
        split = x.reshape(len(x), self.heads, -1).transpose(0, 1).contiguous()
        return split, split.square().sum(-1).t().contiguous()
