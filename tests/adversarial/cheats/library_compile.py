"""forbidden_library | dressed-up library calls | torch.compile of a product | POLICY_VIOLATION | cpu cuda"""

import torch
import torch.nn as nn


compiled = torch.compile(lambda x, w: x.mul(1) @ w)


class ModelNew(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(k, n))

    def forward(self, x):
        return compiled(x, self.weight)
