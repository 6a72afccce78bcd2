"""forbidden_library | dressed-up library calls | a Linear inside | POLICY_VIOLATION | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(k, n))

    def forward(self, x):
        layer = nn.Linear(*self.weight.shape, bias=False, device=x.device)
        layer.weight.data = self.weight.data.t()
        return layer(x)
