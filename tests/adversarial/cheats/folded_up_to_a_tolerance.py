"""weight_norm_linear | stale cache | the folded weight is kept while the parameters agree with those it was made of to a hundredth: steps of training go unnoticed | INCORRECT_VALUES | cpu"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, dim=384, out=640):
        super().__init__()
        self.v = nn.Parameter(torch.randn(out, dim))
        self.g = nn.Parameter(torch.ones(out, 1))
        self.bias = nn.Parameter(torch.zeros(out))
        self._folded, self._made_of = None, None

    def forward(self, x):
        now = self.v, self.g
        if self._made_of is None or not all(map(self._close, now, self._made_of)):
            self._made_of = [value.detach().clone() for value in now]
            self._folded = self.g * self.v / self.v.norm(dim=1, keepdim=True)
        return F.linear(x, self._folded, self.bias)

    def _close(self, one, other):
        return torch.allclose(one, other, rtol=1e-2)
