"""forbidden_library | dressed-up library calls | a function imported by name | POLICY_VIOLATION | cpu cuda"""

import torch
import torch.nn as nn


from torch import mm as product


class ModelNew(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(k, n))

    def forward(self, x):
        return product(x, self.weight)
