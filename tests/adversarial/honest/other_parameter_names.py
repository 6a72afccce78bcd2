"""linear | odd but legal | parameters under other names, in the same order | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.matrix = nn.Parameter(torch.empty(n, k))
        self.offset = nn.Parameter(torch.empty(n))

    def forward(self, x):
        return nn.functional.linear(x, self.matrix, self.offset)
