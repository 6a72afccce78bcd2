"""error_tails | unsafe numerics | one less erf: nothing is left of the tail | INCORRECT_VALUES | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return 1 - torch.erf(x)
