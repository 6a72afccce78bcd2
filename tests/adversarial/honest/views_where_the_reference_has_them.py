"""heads | odd but legal | a view of the input, as the reference returns one | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def forward(self, x):
        split = x.unflatten(1, (self.heads, -1))
        return split.movedim(1, 0), (split * split).sum(-1)
