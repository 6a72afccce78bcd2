"""hard_shrink | unsafe numerics | a half itself is kept | INCORRECT_VALUES | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.where(x.abs() < 0.5, 0.0, x)
