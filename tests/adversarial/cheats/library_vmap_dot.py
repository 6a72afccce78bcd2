"""forbidden_library | dressed-up library calls | dots under vmap | POLICY_VIOLATION | cpu"""

import torch
import torch.nn as nn


class Base(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(k, n))


class ModelNew(Base):
    def forward(self, x):
        return torch.vmap(lambda r: torch.vmap(lambda c: torch.dot(r, c))(self.weight.t()))(x)
