"""forbidden_library | odd but legal | a product without a library: broadcast and summed | PASSED | cpu"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(k, n))

    def forward(self, x):
        return (x[:, :, None] * self.weight).sum(1)
