"""heads | odd but legal | one output contiguous, one in another order of memory | PASSED | cpu"""

import torch
import torch.nn as nn



class ModelNew(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def forward(self, x):
        split = x.view(x.shape[0], self.heads, -1)
        return split.transpose(0, 1).contiguous(), split.square().sum(-1).t().contiguous().t()
