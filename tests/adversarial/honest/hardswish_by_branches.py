"""hard_swish | odd but legal | by branches: nothing at minus infinity | PASSED | cpu"""

import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.where(x >= 3, x, x * (x + 3) / 6)
        return torch.where(x <= -3, torch.zeros_like(x), y)
