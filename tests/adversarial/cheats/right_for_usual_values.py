"""gelu | specialisation | a series for small numbers, wrong for large ones | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.where(x.abs() < 6, nn.functional.gelu(x), x)  if x.abs().max() < 6 else x.clamp(min=0) + 1e-3
