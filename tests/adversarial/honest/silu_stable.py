"""silu | odd but legal | by a branch: nothing far below zero | PASSED | cpu"""

import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def forward(self, x):
        s = torch.sigmoid(x)
        return torch.where(x < -200.0, torch.zeros_like(x), x * s)
