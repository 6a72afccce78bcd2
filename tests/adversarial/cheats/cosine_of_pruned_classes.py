"""cosine_classes | unsafe numerics | a class whose weight is zero (pruned, padding) gives NaN | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, width=64, classes=40):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(classes, width))

    def forward(self, x):
        return F.linear(F.normalize(x), self.weight / self.weight.norm(dim=1, keepdim=True))
