"""round_grid | unsafe numerics | a half more and the fraction cut off, where halves go to the even number | INCORRECT_VALUES | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.floor(x * 2.0 + 0.5) * 0.5
