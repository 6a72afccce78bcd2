"""gated_scale | default parameters, stale folding | a prepared scale for each number of rows, one version for all of them | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.g = nn.Parameter(torch.randn(width))
        self.plans, self.version = {}, None

    def forward(self, x):
        rows = x.shape[0]
        if self.version != self.g._version or rows not in self.plans:
            self.plans[rows] = torch.nn.functional.softplus(self.g.detach()).expand(rows, -1).contiguous()
            self.version = self.g._version
        return torch.tanh(x) * self.plans[rows]
