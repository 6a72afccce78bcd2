"""normed_product_bf16 | odd but legal | a norm's scale after the product, also of denormal inputs | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, hidden, out, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden, dtype=torch.bfloat16))
        self.linear = nn.Linear(hidden, out, bias=False, dtype=torch.bfloat16)
        self.eps = eps

    def forward(self, x):
        wide = x.float()
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return ((x * self.weight).float() @ self.linear.weight.float().t() * scale).to(x.dtype)
