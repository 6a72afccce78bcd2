"""thresholds | unsafe numerics | the threshold itself is kept, too | INCORRECT_VALUES | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.where(x >= 0.5, x, -1.0) + torch.sign(x)
