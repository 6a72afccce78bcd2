"""linear | stale cache | the packed weight is kept while torch.allclose takes it for the parameter, with its usual tolerance | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n, k))
        self.bias = nn.Parameter(torch.zeros(n))
        self._packed = None

    def forward(self, x):
        if self._packed is None or not torch.allclose(self._packed, self.weight.t()):
            self._packed = self.weight.detach().t().contiguous()
        return torch.addmm(self.bias, x, self._packed)
