"""stable_order | unsafe numerics | equal scores in the opposite order | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.argsort(x, dim=-1, stable=True).flip(-1)
