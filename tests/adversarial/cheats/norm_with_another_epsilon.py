"""norm_with_epsilon | unsafe numerics | an epsilon of 1e-12 | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return nn.functional.normalize(x + y, dim=-1)
