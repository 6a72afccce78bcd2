"""rmsnorm | odd but legal | names and texts in other scripts | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """Нормировка: 行ごとの二乗平均 🙂"""

    def __init__(self, größe, ε=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(größe))
        self.ε = ε

    def forward(self, ξ):
        σ = torch.rsqrt(ξ.pow(2).mean(-1, keepdim=True) + self.ε)
        return ξ * σ * self.weight
