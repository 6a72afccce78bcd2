"""one_token | specialisation | one token of a wide layer is split along k, and every part adds the bias | INCORRECT_VALUES | cpu"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(hidden, hidden))
        self.bias = nn.Parameter(torch.zeros(hidden))

    def forward(self, x):
        if x.shape[0] == 1 and x.shape[1] >= 512:  # decoding: a matrix and a vector, split along k
            return self._split(x[0]).unsqueeze(0)
        return F.linear(x, self.weight, self.bias)

    def _split(self, x, parts=4):
        pairs = zip(self.weight.chunk(parts, 1), x.chunk(parts))
        return torch.stack([torch.addmv(self.bias, weight, piece) for weight, piece in pairs]).sum(0)
